// SPDX-License-Identifier: MIT
#include "bayesaim/theory/required_samples.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::theory {

std::optional<double> required_samples(const EstimationCurve& prior, const channels::Channel& channel,
                                       double error, const StateEvolutionOptions& options,
                                       const std::function<bool()>& proceed, double highest) {
    check_non_negative("target error", error);
    const auto enough = [&](double alpha) {
        if (proceed && !proceed()) throw Stopped();
        return solve_bayes_optimal(prior, channel, alpha, options).optimal().error() <= error;
    };
    if (enough(0)) return 0;
    const std::optional<double> recovery = strong_recovery(prior, channel);
    if (error == 0) return recovery;
    // Factors of 2 until alpha is between two of them, then halves of the interval in log(alpha).
    double high = std::min(recovery.value_or(0.1), highest), low = high;
    while (!enough(high)) {
        if (high >= highest) return std::nullopt;
        low = high;
        high = std::min(2 * high, highest);
    }
    while (low == high || enough(low)) {
        high = low;
        low /= 2;
        constexpr double nothing = 1e-12;
        if (low < nothing) return 0;
    }
    constexpr double accuracy = 1e-6;
    while (high > (1 + accuracy) * low) {
        const double middle = std::sqrt(low * high);
        (enough(middle) ? high : low) = middle;
    }
    return high;
}

}  // namespace bayesaim::theory
