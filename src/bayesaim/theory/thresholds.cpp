// SPDX-License-Identifier: MIT
#include "bayesaim/theory/thresholds.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::theory {
namespace {

/// The point between low (false) and high (true) where `holds` becomes true.
double bisect(double low, double high, double tolerance, const std::function<bool(double)>& holds) {
    while (high - low > tolerance * high) {
        const double middle = 0.5 * (low + high);
        (holds(middle) ? high : low) = middle;
    }
    return 0.5 * (low + high);
}

}  // namespace

double weak_recovery_scaled(const channels::Channel& channel, const channels::Integration& integration) {
    if (channel.geometry().parts() == 2) {
        // At small width the two parts have the same error, and all entries of g count alike.
        const Overlap half = 0.5 * Overlap::Identity(2, 2);
        return 1 / channel.score_power({linalg::zero_overlap(2), half}, integration).value.trace();
    }
    const OrderParameters no_data{linalg::scalar_overlap(0), linalg::scalar_overlap(1)};
    const double v = channel.geometry().variance_factor();
    return 1 / (v * v * channel.score_power(no_data, integration).value(0, 0));
}

std::optional<double> strong_recovery(const EstimationCurve& prior, const channels::Channel& channel) {
    const auto observed = channel.observed_combinations();
    if (!observed) return std::nullopt;
    const channels::Geometry geometry = channel.geometry();
    const double counted = prior.recovery_ratio() / (geometry.variance_factor() * *observed);
    if (geometry.parts() == 1) return counted;
    // The diagonal sees S_sym only. When S_sym is known, n T(T-1)/2 numbers are left to find what S_anti adds,
    // (nu - 1/2) d^2 numbers.
    const double pairs = 0.5 * geometry.queries * (geometry.queries - 1);
    return std::max(counted, 0.5 * (prior.recovery_ratio() - 1) / pairs);
}

std::optional<FirstOrderTransition> find_first_order_transition(const EstimationCurve& prior,
                                                                const channels::Channel& channel,
                                                                const TransitionSearch& search,
                                                                const StateEvolutionOptions& options) try {
    check_positive("lowest alpha", search.lowest);
    if (!(search.highest > search.lowest)) throw_invalid("highest alpha", "above the lowest", search.highest);
    check_at_least("steps of the search", search.steps, 2);
    if (channel.observed_combinations() || channel.sampled() || channel.components() > 1) return std::nullopt;
    double fraction = 0;
    const auto solve = [&](double alpha) {
        if (search.progress && !search.progress(fraction)) throw Stopped();
        return solve_bayes_optimal(prior, channel, alpha, options);
    };
    const auto alpha_at = [&](int i) {
        return search.lowest *
               std::pow(search.highest / search.lowest, static_cast<double>(i) / (search.steps - 1));
    };
    int first = -1, last = -1;
    for (int i = 0; i < search.steps; ++i) {
        fraction = static_cast<double>(i) / search.steps;
        if (!solve(alpha_at(i)).differ) {
            if (first >= 0) break;
            continue;
        }
        if (first < 0) first = i;
        last = i;
    }
    if (first < 0) return std::nullopt;

    const double inside_low = alpha_at(first), inside_high = alpha_at(last);
    FirstOrderTransition transition;
    transition.appears = first == 0 ? inside_low
                                    : bisect(alpha_at(first - 1), inside_low, search.tolerance,
                                             [&](double alpha) { return solve(alpha).differ; });
    transition.algorithmic = last == search.steps - 1
                                 ? inside_high
                                 : bisect(inside_high, alpha_at(last + 1), search.tolerance,
                                          [&](double alpha) { return !solve(alpha).differ; });
    transition.information_theoretic =
        bisect(transition.appears, transition.algorithmic, search.tolerance, [&](double alpha) {
            const BayesOptimal point = solve(alpha);
            return point.differ ? point.informed_wins : alpha > 0.5 * (inside_low + inside_high);
        });
    return transition;
} catch (const Stopped&) {
    return std::nullopt;
}

Thresholds find_thresholds(const EstimationCurve& prior, const channels::Channel& channel,
                           const TransitionSearch& search, const StateEvolutionOptions& options) {
    Thresholds result;
    if (channel.layers() == 1)
        result.weak_recovery_scaled =
            weak_recovery_scaled(channel, options.integration) / std::sqrt(prior.aspect());
    result.strong_recovery = result.information_theoretic = result.algorithmic =
        strong_recovery(prior, channel);
    if (const auto transition = find_first_order_transition(prior, channel, search, options)) {
        result.information_theoretic = transition->information_theoretic;
        result.algorithmic = transition->algorithmic;
        result.appears = transition->appears;
    }
    return result;
}

}  // namespace bayesaim::theory
