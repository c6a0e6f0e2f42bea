// SPDX-License-Identifier: MIT
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::theory {

double weak_recovery_scaled(const channels::Channel& channel, const channels::Integration& integration) {
    const OrderParameters no_data{linalg::scalar_overlap(0), linalg::scalar_overlap(1)};
    return 1 / (4 * channel.score_power(no_data, integration).value(0, 0));
}

std::optional<double> strong_recovery(const EstimationCurve& prior, const channels::Channel& channel) {
    const auto observations = channel.exact_observations();
    if (!observations) return std::nullopt;
    return prior.recovery_ratio() / (2 * *observations);
}

}  // namespace bayesaim::theory
