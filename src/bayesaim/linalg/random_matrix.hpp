// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/blas.hpp"

/// Random matrices. Entry (i, j) depends on the stream and on (i, j) only, not on the number of threads.
namespace bayesaim::linalg {

/// Independent N(0, 1) entries.
Matrix gaussian_matrix(Eigen::Index rows, Eigen::Index cols, const RandomStream& stream, ThreadPool& pool);

/// Gaussian orthogonal ensemble: symmetric, variance 1/d off the diagonal and 2/d on it; spectrum on [-2, 2].
Matrix gaussian_orthogonal_ensemble(Eigen::Index dim, const RandomStream& stream, ThreadPool& pool);

}  // namespace bayesaim::linalg
