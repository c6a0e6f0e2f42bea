// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/linalg/blas.hpp"

namespace bayesaim::denoisers {

struct Thresholded {
    linalg::Matrix estimate;     ///< (R - threshold)_+
    linalg::Vector eigenvalues;  ///< of the estimate, ascending
    Eigen::Index zeros = 0;      ///< how many of them are 0
    /// The mean slope of the estimate, [sum_{i != j} (f_i - f_j)/(l_i - l_j) + 2 sum f'_i]/d^2, f(l) = (l - threshold)_+
    double divergence = 0;
};

/// The matrix closest to R under the penalty threshold Tr S, S >= 0: each eigenvalue minus the threshold, or 0.
/// Reads the lower triangle of R.
Thresholded soft_threshold(const linalg::ConstMatrixRef& noisy, double threshold, ThreadPool& pool);

}  // namespace bayesaim::denoisers
