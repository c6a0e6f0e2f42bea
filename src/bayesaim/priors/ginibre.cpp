// SPDX-License-Identifier: MIT
#include "bayesaim/priors/ginibre.hpp"

#include <cmath>
#include <limits>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/spectral/rectangular_law.hpp"

namespace bayesaim::priors {

Ginibre::Ginibre(double aspect) {
    if (aspect == 1) {
        law_ = std::make_shared<spectral::MarchenkoPasturLaw>(spectral::MarchenkoPasturLaw::semicircle());
    } else {
        law_ = std::make_shared<spectral::RectangularLaw>(std::numeric_limits<double>::infinity(), aspect);
    }
}

std::vector<std::pair<std::string, double>> Ginibre::parameters() const {
    if (law_->aspect() == 1) return {};
    return {{"aspect", law_->aspect()}};
}

linalg::Matrix Ginibre::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                               ThreadPool& pool) const {
    check_at_least("dimension", dim, 1);
    const Eigen::Index keys = law_->columns(dim);
    // sqrt(sqrt(d^2)) is sqrt(d) to the last bit.
    return linalg::gaussian_matrix(dim, keys, RandomStream(seed, Purpose::weights, index), pool) /
           std::sqrt(std::sqrt(static_cast<double>(dim) * static_cast<double>(keys)));
}

}  // namespace bayesaim::priors
