// SPDX-License-Identifier: MIT
#pragma once
#include <optional>

#include "bayesaim/theory/state_evolution.hpp"

namespace bayesaim::theory {

/// Free entropy of a fixed point of one layer, per d^2, up to a constant that is the same for all fixed
/// points at one alpha:
///   (2/v) (-q qhat/4 + I_in(qhat)) + alpha I_out(q):
/// a symmetric matrix (v = 2) has d^2/2 entries, any other (v = 1) twice as many.
/// Returns std::nullopt for several layers and for channels without I_out; infinity at exact recovery.
std::optional<double> free_entropy(const EstimationCurve& prior, const channels::Channel& channel,
                                   double alpha, const FixedPoint& point,
                                   const StateEvolutionOptions& options = {});

}  // namespace bayesaim::theory
