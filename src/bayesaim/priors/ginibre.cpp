// SPDX-License-Identifier: MIT
#include "bayesaim/priors/ginibre.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"

namespace bayesaim::priors {

linalg::Matrix Ginibre::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                               ThreadPool& pool) const {
    check_at_least("dimension", dim, 1);
    return linalg::gaussian_matrix(dim, dim, RandomStream(seed, Purpose::weights, index), pool) /
           std::sqrt(static_cast<double>(dim));
}

}  // namespace bayesaim::priors
