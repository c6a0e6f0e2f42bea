// SPDX-License-Identifier: MIT
#include "bayesaim/theory/free_entropy.hpp"

#include <limits>

namespace bayesaim::theory {

std::optional<double> free_entropy(const EstimationCurve& prior, const channels::Channel& channel,
                                   double alpha, const FixedPoint& point,
                                   const StateEvolutionOptions& options) {
    if (prior.components() > 1) return std::nullopt;
    if (point.status == Termination::exact_recovery) return std::numeric_limits<double>::infinity();
    const auto information = channel.information(point.parameters, options.integration);
    if (!information) return std::nullopt;
    const double conjugate = point.conjugate(0, 0);
    const double halves = 2 / channel.geometry().variance_factor();
    return halves * (prior.free_entropy(conjugate) - 0.25 * point.parameters.overlap(0, 0) * conjugate) +
           alpha * *information;
}

}  // namespace bayesaim::theory
