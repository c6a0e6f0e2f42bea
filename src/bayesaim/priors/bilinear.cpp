// SPDX-License-Identifier: MIT
#include "bayesaim/priors/bilinear.hpp"

#include <cmath>

#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/wishart.hpp"

namespace bayesaim::priors {

linalg::Matrix Bilinear::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                ThreadPool& pool) const {
    const Eigen::Index columns = weight_columns(width_, dim);
    // Both factors from one stream: W_Q has its first columns, W_K the others.
    const linalg::Matrix both =
        linalg::gaussian_matrix(dim, 2 * columns, RandomStream(seed, Purpose::weights, index), pool);
    linalg::Matrix result(dim, dim);
    linalg::multiply(1 / std::sqrt(static_cast<double>(columns) * static_cast<double>(dim)),
                     both.leftCols(columns), linalg::Transpose::no, both.rightCols(columns),
                     linalg::Transpose::yes, 0, result);
    return result;
}

}  // namespace bayesaim::priors
