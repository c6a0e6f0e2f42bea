// SPDX-License-Identifier: MIT
#pragma once
#include <optional>

#include "bayesaim/theory/free_entropy.hpp"

namespace bayesaim::theory {

/// Weak recovery at small width, in alpha/rho: below it the error is that of no data. With Q = 1,
///   1 / (4 F(q = 0)).
double weak_recovery_scaled(const channels::Channel& channel, const channels::Integration& integration = {});

/// Strong recovery: the alpha from which the error is exactly zero,
///   recovery_ratio / (2 m) for a channel with m exact observations; nothing for others.
/// For tied attention recovery_ratio = 2 rho - rho^2 (1 for rho >= 1): with softmax 2/(T^2+T-2) (rho -
/// rho^2/2).
std::optional<double> strong_recovery(const EstimationCurve& prior, const channels::Channel& channel);

}  // namespace bayesaim::theory
