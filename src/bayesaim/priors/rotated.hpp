// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <functional>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/linalg/blas.hpp"

namespace bayesaim::priors {

/// The numbers quantile((i + 1/2)/d), i = 0 .. d-1.
linalg::Vector quantiles(Eigen::Index dim, const std::function<double(double)>& quantile);

/// O diag(values) O^T, O Haar distributed.
linalg::Matrix rotated(const linalg::Vector& values, std::uint64_t seed, std::uint64_t index,
                       ThreadPool& pool);

/// O diag(values) P^T, O and P Haar distributed and independent.
linalg::Matrix rotated_on_both_sides(const linalg::Vector& values, std::uint64_t seed, std::uint64_t index,
                                     ThreadPool& pool);

}  // namespace bayesaim::priors
