// SPDX-License-Identifier: MIT
#pragma once
#include <Eigen/Core>

namespace bayesaim::numerics {

/// The x >= 0 that minimises |A x - b|, by the active-set method of Lawson and Hanson (Solving Least Squares
/// Problems, 1974, chapter 23). With w = A'(b - A x), the answer has w_j = 0 where x_j > 0 and w_j <= 0
/// where x_j = 0.
///
/// Columns are scaled to length 1. A and b are transformed in place, so that the columns of the passive set
/// (those with x_j > 0) are triangular: a Householder reflection when a column enters, Givens rotations when
/// one leaves. A column that depends on the passive ones to 1e-10 of its length stays out. b must be finite,
/// A too. Pinned by: NonnegativeLeastSquares.*.
Eigen::VectorXd nonnegative_least_squares(const Eigen::MatrixXd& matrix, const Eigen::VectorXd& target);

}  // namespace bayesaim::numerics
