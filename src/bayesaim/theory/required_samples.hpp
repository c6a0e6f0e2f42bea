// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <optional>

#include "bayesaim/theory/bayes_optimal.hpp"

namespace bayesaim::theory {

/// The least alpha whose error is at most `error`, to a relative accuracy of 1e-6, from above: the error falls with alpha,
/// by a jump at a first-order transition. 0 if the error without data is small enough; std::nullopt if no alpha up to
/// `highest` suffices. `proceed` is asked before each point; once it returns false, Stopped is thrown.
std::optional<double> required_samples(const EstimationCurve& prior, const channels::Channel& channel,
                                       double error, const StateEvolutionOptions& options = {},
                                       const std::function<bool()>& proceed = {}, double highest = 1e6);

}  // namespace bayesaim::theory
