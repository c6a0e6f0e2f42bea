// SPDX-License-Identifier: MIT
#include "bayesaim/priors/wishart.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"

namespace bayesaim::priors {

linalg::Matrix Wishart::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                               ThreadPool& pool) const {
    check_at_least("dimension", dim, 1);
    const double d = static_cast<double>(dim), r = std::round(width_ * d);
    if (r < 1) throw_invalid("width * dimension", "at least 0.5, so that W has a column", width_ * d);
    const RandomStream stream(seed, Purpose::weights, index);
    return linalg::gram(1 / std::sqrt(r * d),
                        linalg::gaussian_matrix(dim, static_cast<Eigen::Index>(r), stream, pool));
}

}  // namespace bayesaim::priors
