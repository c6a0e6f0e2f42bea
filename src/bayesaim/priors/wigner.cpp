// SPDX-License-Identifier: MIT
#include "bayesaim/priors/wigner.hpp"

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"

namespace bayesaim::priors {

linalg::Matrix Wigner::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                              ThreadPool& pool) const {
    check_at_least("dimension", dim, 1);
    return linalg::gaussian_orthogonal_ensemble(dim, RandomStream(seed, Purpose::weights, index), pool);
}

}  // namespace bayesaim::priors
