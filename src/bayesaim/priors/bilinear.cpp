// SPDX-License-Identifier: MIT
#include "bayesaim/priors/bilinear.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/bilinear_law.hpp"
#include "bayesaim/spectral/rectangular_law.hpp"

namespace bayesaim::priors {

Bilinear::Bilinear(double width, double aspect) : width_(width) {
    if (aspect == 1) {
        law_ = std::make_shared<spectral::BilinearLaw>(width);
    } else {
        check_positive("width", width);
        law_ = std::make_shared<spectral::RectangularLaw>(width, aspect);
    }
}

std::vector<std::pair<std::string, double>> Bilinear::parameters() const {
    if (law_->aspect() == 1) return {{"width", width_}};
    return {{"width", width_}, {"aspect", law_->aspect()}};
}

linalg::Matrix Bilinear::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                ThreadPool& pool) const {
    const Eigen::Index columns = weight_columns(width_, dim);
    if (law_->aspect() != 1) {
        const Eigen::Index keys = law_->columns(dim);
        const linalg::Matrix factors =
            linalg::gaussian_matrix(dim + keys, columns, RandomStream(seed, Purpose::weights, index), pool);
        const double scale = std::sqrt(static_cast<double>(columns) *
                                       std::sqrt(static_cast<double>(dim) * static_cast<double>(keys)));
        linalg::Matrix result(dim, keys);
        linalg::multiply(1 / scale, factors.topRows(dim), linalg::Transpose::no, factors.bottomRows(keys),
                         linalg::Transpose::yes, 0, result);
        return result;
    }
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
