// SPDX-License-Identifier: MIT
#include "bayesaim/theory/free_entropy.hpp"

#include <cmath>
#include <functional>
#include <limits>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::theory {
namespace {

/// Fixed points closer than this, relative to the larger, are the same one reached from two sides.
constexpr double same_fixed_point = 1e-6;

/// Where `holds` becomes true between low (false) and high (true).
double bisect(double low, double high, double tolerance, const std::function<bool(double)>& holds) {
    while (high - low > tolerance * high) {
        const double middle = 0.5 * (low + high);
        (holds(middle) ? high : low) = middle;
    }
    return 0.5 * (low + high);
}

}  // namespace

std::optional<double> free_entropy(const EstimationCurve& prior, const channels::Channel& channel,
                                   double alpha, const FixedPoint& point,
                                   const StateEvolutionOptions& options) {
    if (point.status == Termination::exact_recovery) return std::numeric_limits<double>::infinity();
    const auto information = channel.information(point.parameters, options.integration);
    if (!information) return std::nullopt;
    const double conjugate = point.scalar_conjugate();
    return -0.25 * point.parameters.overlap(0, 0) * conjugate + prior.free_entropy(conjugate) +
           alpha * *information;
}

BayesOptimal solve_bayes_optimal(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                                 const StateEvolutionOptions& options) {
    BayesOptimal result;
    result.uninformed = solve_state_evolution(prior, channel, alpha, Start::uninformed, options);
    // With exact observations there is one fixed point, because mmse(D)/D is monotone.
    if (channel.exact_observations() || channel.sampled()) {
        result.informed = result.uninformed;
        return result;
    }
    result.informed = solve_state_evolution(prior, channel, alpha, Start::informed, options);
    const double low = result.informed.error(), high = result.uninformed.error();
    result.differ = high - low > same_fixed_point * high;
    if (result.differ) {
        const auto informed = free_entropy(prior, channel, alpha, result.informed, options);
        const auto uninformed = free_entropy(prior, channel, alpha, result.uninformed, options);
        result.informed_wins = informed && uninformed && *informed > *uninformed;
    }
    return result;
}

std::optional<FirstOrderTransition> find_first_order_transition(const EstimationCurve& prior,
                                                                const channels::Channel& channel,
                                                                double lowest, double highest, int scan,
                                                                double tolerance,
                                                                const StateEvolutionOptions& options) {
    check_positive("lowest alpha", lowest);
    if (!(highest > lowest)) throw_invalid("highest alpha", "above the lowest", highest);
    check_at_least("steps of the scan", scan, 2);
    if (channel.exact_observations() || channel.sampled()) return std::nullopt;
    const auto solve = [&](double alpha) { return solve_bayes_optimal(prior, channel, alpha, options); };
    const auto alpha_at = [&](int i) {
        return lowest * std::pow(highest / lowest, static_cast<double>(i) / (scan - 1));
    };
    int first = -1, last = -1;
    for (int i = 0; i < scan; ++i) {
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
                                    : bisect(alpha_at(first - 1), inside_low, tolerance,
                                             [&](double alpha) { return solve(alpha).differ; });
    transition.algorithmic = last == scan - 1 ? inside_high
                                              : bisect(inside_high, alpha_at(last + 1), tolerance,
                                                       [&](double alpha) { return !solve(alpha).differ; });
    transition.information_theoretic =
        bisect(transition.appears, transition.algorithmic, tolerance, [&](double alpha) {
            const BayesOptimal point = solve(alpha);
            return point.differ ? point.informed_wins : alpha > 0.5 * (inside_low + inside_high);
        });
    return transition;
}

}  // namespace bayesaim::theory
