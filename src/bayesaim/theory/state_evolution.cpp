// SPDX-License-Identifier: MIT
#include "bayesaim/theory/state_evolution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/theory/methods.hpp"

namespace bayesaim::theory {
namespace {

void check_problem(const EstimationCurve& prior, const channels::Channel& channel, double alpha) {
    check_non_negative("alpha", alpha);
    if (alpha > 0) check_between("alpha", alpha, 1e-15, 1e15);
    if (prior.components() != channel.components())
        throw InvalidArgument(fmt::format("channel {} has {} layer(s), got priors of {}", channel.name(),
                                          channel.components(), prior.components()));
}

Method method_for(const channels::Channel& channel, Method asked) {
    const bool one_layer = channel.components() == 1, exact = channel.exact_observations().has_value();
    if (asked == Method::automatic)
        return one_layer && exact ? Method::bracketed : one_layer ? Method::monotone : Method::newton;
    if (asked == Method::bracketed && !(one_layer && exact))
        throw InvalidArgument("method bracketed is only available for one layer with exact observations");
    if (asked == Method::monotone && !one_layer)
        throw InvalidArgument("method monotone is only available for one layer");
    return asked;
}

}  // namespace

Method parse_method(std::string_view name, std::string_view text) {
    return static_cast<Method>(check_one_of(name, text, {"automatic", "bracketed", "monotone", "newton"}));
}

OrderParameters parameters_at(const EstimationCurve& prior, const Overlap& error) {
    Overlap overlap = prior.total() - error;
    overlap.diagonal() = overlap.diagonal().cwiseMax(0);
    return {overlap, error};
}

FixedPoint exact_recovery(const EstimationCurve& prior, int iterations) {
    Overlap infinite = linalg::zero_overlap(prior.components());
    infinite.diagonal().setConstant(std::numeric_limits<double>::infinity());
    return {parameters_at(prior, linalg::zero_overlap(prior.components())), infinite, 0, iterations,
            Termination::exact_recovery};
}

Iterate iterate(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                const Overlap& error, const channels::Integration& integration) {
    const auto power = channel.score_power(parameters_at(prior, error), integration);
    const double v = channel.geometry().variance_factor();
    Overlap conjugate = v * v * alpha * power.value;
    if (channel.geometry().parts() > 1) conjugate = linalg::diagonal_part(conjugate);
    if (prior.components() > 1) {
        // The sampled average of a layer with little information may have any sign.
        const double least =
            std::max(1e-6 / prior.prior_error().diagonal().maxCoeff(), 1e-10 * std::abs(conjugate.trace()));
        conjugate = linalg::with_eigenvalues_above(conjugate, least);
    } else if (!(conjugate(0, 0) > 0)) {
        return {prior.prior_error(), linalg::scalar_overlap(0), 0, 0};
    }
    return {prior.covariance(conjugate), conjugate, power.relative_error, power.roughness};
}

FixedPoint solve_state_evolution(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                                 Start start, const StateEvolutionOptions& options) {
    check_problem(prior, channel, alpha);
    if (prior.prior_error().trace() == 0) return exact_recovery(prior, 0);  // nothing to learn
    if (alpha == 0)
        return {parameters_at(prior, prior.prior_error()),
                linalg::zero_overlap(prior.components())};  // no data
    switch (method_for(channel, options.method)) {
        case Method::bracketed:
            return solve_bracketed(prior, channel, alpha, options);
        case Method::monotone:
            return solve_monotone(prior, channel, alpha, start, options);
        default:
            for (int l = 0; l < prior.components(); ++l)
                check_positive("variance of a prior", prior.prior_error()(l, l));
            return solve_newton(prior, channel, alpha, start, options);
    }
}

std::optional<Neighbour> neighbour_of(double alpha, const FixedPoint& point) {
    const double conjugate = point.conjugate(0, 0);
    if (!(conjugate > 0) || !std::isfinite(conjugate)) return std::nullopt;
    return Neighbour{alpha, 1 / conjugate};
}

channels::GeneralizationError generalization_error(const FixedPoint& point, const channels::Channel& channel,
                                                   const channels::Integration& integration) {
    if (point.status == Termination::exact_recovery) return {};
    return channel.generalization(point.parameters, integration);
}

std::vector<OrderParameters> state_evolution_trajectory(const EstimationCurve& prior,
                                                        const channels::Channel& channel, double alpha,
                                                        int iterations, Start start,
                                                        const StateEvolutionOptions& options) {
    check_problem(prior, channel, alpha);
    Overlap error = (start == Start::uninformed ? 1 : informed_error) * prior.prior_error();
    std::vector<OrderParameters> trajectory{parameters_at(prior, error)};
    for (int i = 0; i < iterations; ++i) {
        error = iterate(prior, channel, alpha, error, options.integration).error;
        trajectory.push_back(parameters_at(prior, error));
    }
    return trajectory;
}

double recovery_growth_rate(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                            const channels::Integration& integration) {
    check_problem(prior, channel, alpha);
    constexpr double near = 1e-5;
    constexpr int iterations = 25;
    const double small = near * prior.prior_error().trace();
    Overlap error = near * prior.prior_error();
    double growth = 1;
    for (int i = 0; i < iterations; ++i) {
        const Overlap next = iterate(prior, channel, alpha, error, integration).error;
        growth = next.trace() / error.trace();
        error = next * (small / next.trace());
    }
    return growth;
}

}  // namespace bayesaim::theory
