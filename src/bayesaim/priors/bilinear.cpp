// SPDX-License-Identifier: MIT
#include "bayesaim/priors/bilinear.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/bilinear_law.hpp"
#include "bayesaim/spectral/rectangular_law.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

namespace bayesaim::priors {

Bilinear::Bilinear(double width, double aspect, double scale) : width_(width), scale_(scale) {
    if (aspect == 1) {
        law_ = std::make_shared<spectral::BilinearLaw>(width);
    } else {
        check_positive("width", width);
        law_ = std::make_shared<spectral::RectangularLaw>(width, aspect);
    }
    law_ = spectral::scaled(std::move(law_), scale);
}

std::vector<std::pair<std::string, double>> Bilinear::parameters() const {
    std::vector<std::pair<std::string, double>> result = {{"width", width_}};
    if (law_->aspect() != 1) result.emplace_back("aspect", law_->aspect());
    if (scale_ != 1) result.emplace_back("scale", scale_);
    return result;
}

linalg::Matrix Bilinear::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                ThreadPool& pool) const {
    const Eigen::Index columns = weight_columns(width_, dim);
    if (law_->aspect() != 1) {
        const Eigen::Index keys = law_->columns(dim);
        const linalg::Matrix factors =
            linalg::gaussian_matrix(dim + keys, columns, RandomStream(seed, Purpose::weights, index), pool);
        const double norm = std::sqrt(static_cast<double>(columns) *
                                      std::sqrt(static_cast<double>(dim) * static_cast<double>(keys)));
        linalg::Matrix result(dim, keys);
        linalg::multiply(scale_ / norm, factors.topRows(dim), linalg::Transpose::no, factors.bottomRows(keys),
                         linalg::Transpose::yes, 0, result);
        return result;
    }
    // Both factors from one stream: W_Q has its first columns, W_K the others.
    const linalg::Matrix both =
        linalg::gaussian_matrix(dim, 2 * columns, RandomStream(seed, Purpose::weights, index), pool);
    linalg::Matrix result(dim, dim);
    linalg::multiply(scale_ / std::sqrt(static_cast<double>(columns) * static_cast<double>(dim)),
                     both.leftCols(columns), linalg::Transpose::no, both.rightCols(columns),
                     linalg::Transpose::yes, 0, result);
    return result;
}

}  // namespace bayesaim::priors
