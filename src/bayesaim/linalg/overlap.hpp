// SPDX-License-Identifier: MIT
#pragma once
#include <Eigen/Core>

namespace bayesaim::linalg {

/// Most layers that order parameters can have.
inline constexpr int max_layers = 8;

/// An L x L symmetric matrix of order parameters, 1 x 1 for one layer; no heap memory.
using Overlap =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, max_layers, max_layers>;

/// The 1 x 1 order parameter.
inline Overlap scalar_overlap(double value) { return Overlap::Constant(1, 1, value); }

}  // namespace bayesaim::linalg
