// SPDX-License-Identifier: MIT
#include "bayesaim/theory/bayes_optimal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bayesaim/theory/free_entropy.hpp"
#include "bayesaim/theory/methods.hpp"
#include "bayesaim/theory/points.hpp"

namespace bayesaim::theory {
namespace {

/// Fixed points closer than this, relative to the larger, are the same one reached from two sides.
constexpr double same_fixed_point = 1e-6;

}  // namespace

BayesOptimal solve_bayes_optimal(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                                 const StateEvolutionOptions& options) {
    BayesOptimal result;
    result.uninformed = solve_state_evolution(prior, channel, alpha, Start::uninformed, options);
    // With exact observations there is one fixed point, because mmse(D)/D is monotone. Several components have no free
    // entropy that would tell which fixed point wins.
    if (channel.exact_observations() || channel.sampled() || channel.components() > 1) {
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

channels::GeneralizationError generalization_error(const EstimationCurve& prior, const FixedPoint& at,
                                                   const channels::Channel& channel,
                                                   const channels::Integration& integration) {
    channels::GeneralizationError result = generalization_error(at, channel, integration);
    const double value = result.bayes_optimal;
    if (at.status == Termination::exact_recovery || !(at.relative_error > 0) || !(value > 0)) return result;
    const double step = std::min(at.relative_error, 0.1);
    const OrderParameters moved = parameters_at(prior, (1 + step) * at.parameters.error);
    const double slope = (channel.generalization(moved, integration).bayes_optimal - value) / (step * value);
    result.relative_error = std::hypot(result.relative_error, slope * at.relative_error);
    return result;
}

TheoryPoint solve_theory(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                         const StateEvolutionOptions& options) {
    const BayesOptimal solution = solve_bayes_optimal(prior, channel, alpha, options);
    constexpr double absent = std::numeric_limits<double>::quiet_NaN();
    return {alpha, solution.optimal(), solution.uninformed.error(),
            options.generalization
                ? generalization_error(prior, solution.optimal(), channel, options.integration)
                : channels::GeneralizationError{absent, absent, absent},
            channel.geometry().parts() > 1};
}

std::vector<TheoryPoint> solve_curve(const EstimationCurve& prior, const channels::Channel& channel,
                                     std::span<const double> alphas, StateEvolutionOptions options,
                                     ThreadPool& pool, const std::function<bool(double)>& progress) {
    options.integration.pool = channel.sampled() ? &pool : nullptr;
    std::vector<TheoryPoint> points(alphas.size());
    points.resize(solve_points(alphas.size(), channel.sampled(), pool, progress, [&](std::size_t i) {
        points[i] = solve_theory(prior, channel, alphas[i], options);
    }));
    return points;
}

Record values(const OrderParameters& parameters) {
    Record record = {{"estimation_error", parameters.error.trace()}};
    if (parameters.error.rows() > 1) {
        record["layer_errors"] = linalg::diagonal_value(parameters.error);
        record["error_matrix"] = linalg::to_value(parameters.error);
    }
    return record;
}

Record values(const TheoryPoint& point) {
    const FixedPoint& at = point.fixed_point;
    const channels::GeneralizationError& generalization = point.generalization;
    Record record = {{"alpha", point.alpha}, {"estimation_error", at.error()}};
    record["standard_error"] = at.relative_error * at.error();
    record.update(values(at.parameters));
    record["overlap"] = linalg::to_value(at.parameters.overlap);
    record["conjugate_overlap"] = linalg::to_value(at.conjugate);
    record["generalization_error"] = generalization.bayes_optimal;
    record["generalization_standard_error"] = generalization.relative_error * generalization.bayes_optimal;
    record["plugin_generalization_error"] = generalization.plug_in;
    record["algorithmic_error"] = point.algorithmic_error;
    record["iterations"] = at.iterations;
    if (point.approximate) record["approximation"] = "two variances";
    record["status"] = to_string(at.status);
    return record;
}

}  // namespace bayesaim::theory
