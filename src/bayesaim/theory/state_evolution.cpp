// SPDX-License-Identifier: MIT
#include "bayesaim/theory/state_evolution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <boost/math/tools/toms748_solve.hpp>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::theory {
namespace {

using linalg::scalar_overlap;

OrderParameters parameters_at(const EstimationCurve& prior, double error) {
    return {scalar_overlap(std::max(0.0, prior.total() - error)), scalar_overlap(error)};
}

FixedPoint exact_recovery(const EstimationCurve& prior, int iterations) {
    return {parameters_at(prior, 0), scalar_overlap(std::numeric_limits<double>::infinity()), 0, iterations,
            Termination::exact_recovery};
}

/// One iteration of state evolution, with what is needed to judge it.
struct Iterate {
    double next_error = 0;      // mmse(1/qhat)
    double conjugate = 0;       // qhat
    double sampling_error = 0;  // standard error of log next_error
};

Iterate iterate(const EstimationCurve& prior, const channels::Channel& channel, double alpha, double error,
                const StateEvolutionOptions& options) {
    const auto power = channel.score_power(parameters_at(prior, error), options.integration);
    const double conjugate = 4 * alpha * power.value(0, 0);
    if (!(conjugate > 0)) return {prior.prior_error(), 0, 0};
    const auto [next, slope] = prior.at(1 / conjugate);
    // d log mmse / d log qhat = -D mmse'(D) / mmse(D)
    return {next, conjugate, power.relative_error * slope / (conjugate * next)};
}

/// mmse(D)/D = c, decreasing in D from recovery_ratio() to 0: inverse interpolation in log D inside a
/// bracket.
FixedPoint solve_exact_observations(const EstimationCurve& prior, double c,
                                    const StateEvolutionOptions& options) {
    const double limit = prior.recovery_ratio(), scale = prior.prior_error();
    if (c >= limit) return exact_recovery(prior, 0);
    // mmse <= prior error gives the upper end; below the lower one the engine is not asked, the ratio is
    // linear there.
    const double smallest = 1e-10 * scale;
    double low = std::log(smallest), high = std::log(scale / c);
    double x = std::clamp(std::log(scale) + std::log(1 / c - 1 / limit), low, high);
    auto accuracy = EstimationCurve::Accuracy::coarse;
    struct {
        double x = 0, excess = 0, log_slope = 0;
    } previous;
    FixedPoint result;
    const auto finish = [&](double noise_variance, Termination status) {
        result.parameters = parameters_at(prior, c * noise_variance);
        result.conjugate = scalar_overlap(1 / noise_variance);
        result.status = status;
        return result;
    };
    for (result.iterations = 1; result.iterations <= options.max_iterations; ++result.iterations) {
        const double noise_variance = std::exp(x);
        const auto [error, slope] = prior.at(noise_variance, accuracy);
        const double ratio = error / noise_variance, excess = std::log(ratio / c);
        (excess > 0 ? low : high) = x;
        if (excess < 0 && noise_variance <= smallest) {
            return finish(noise_variance * (limit - c) / (limit - ratio), Termination::converged);
        }
        const double log_slope = slope / ratio - 1;  // of the ratio, against log D; negative
        double next = x - excess / log_slope, left = std::pow(next - x, 2);  // Newton squares the distance
        if (previous.excess != excess && result.iterations > 1) {
            // Inverse cubic interpolation of both points and slopes: the product of the distances is squared.
            const double range = excess - previous.excess, part = -previous.excess / range, rest = 1 - part;
            const double start = previous.x + part * range / previous.log_slope,
                         end = x - rest * range / log_slope;
            const double refined =
                rest * rest * (2 * part * previous.x + start) + part * part * (2 * rest * x + end);
            left = std::pow((refined - x) * (refined - previous.x), 2);
            next = refined;
        }
        previous = {x, excess, log_slope};
        if (left <= 0.1 * options.tolerance && accuracy == EstimationCurve::Accuracy::full) {
            return finish(std::exp(next), Termination::converged);
        }
        if (std::abs(next - x) < 1e-2) accuracy = EstimationCurve::Accuracy::full;
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        x = next;
    }
    return finish(std::exp(x), Termination::iteration_limit);
}

/// Follows the monotone map E -> mmse(1/qhat(E)) in x = log E from one side to the first fixed point. The
/// residual r(x) = log mmse - x keeps its sign on the way; the secant rule lengthens the steps, and where it
/// oversteps the root is bracketed.
FixedPoint follow_iteration(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                            Start start, const StateEvolutionOptions& options) {
    constexpr double longest = 20;  // a secant step, in plain steps
    const double direction = start == Start::uninformed ? -1 : 1;
    const double prior_log_error = std::log(prior.prior_error());
    const double vanishing = prior_log_error + std::log(1e-14);
    const double tolerance = channel.sampled() ? options.sampled_tolerance : options.tolerance;
    FixedPoint result;
    result.iterations = 0;
    double sampling_error = 0;
    const auto residual = [&](double x) {
        const double error = std::exp(x);
        const Iterate it = iterate(prior, channel, alpha, error, options);
        ++result.iterations;
        result.parameters = parameters_at(prior, error);
        result.conjugate = scalar_overlap(it.conjugate);
        sampling_error = it.sampling_error;
        return std::log(it.next_error) - x;
    };
    // Such a channel has no exact recovery: an error that small is only beyond what double precision
    // resolves.
    const auto unresolved = [&] {
        result.status = Termination::iteration_limit;
        return result;
    };
    double x = prior_log_error + (start == Start::uninformed ? 0 : std::log(informed_error));
    double r = residual(x), slope = -1;
    if (start == Start::informed &&
        r < 0) {  // the fixed point, if there is one, is closer still to the truth
        x = vanishing;
        r = residual(x);
        if (r < 0) return unresolved();
    }
    while (std::abs(r) > tolerance) {
        if (result.iterations >= options.max_iterations) {
            result.status = Termination::iteration_limit;
            return result;
        }
        const double step = slope < 0 ? std::clamp(-1 / slope, 1.0, longest) : 1;
        const double next = std::clamp(x + step * r, vanishing, prior_log_error);
        const double next_r = residual(next);
        if (next == vanishing && next_r < 0) return unresolved();
        slope = next != x ? (next_r - r) / (next - x) : -1;
        if (next_r * direction < 0 && std::abs(next_r) > tolerance) {
            std::uintmax_t left =
                static_cast<std::uintmax_t>(std::max(1, options.max_iterations - result.iterations));
            const auto close = [&](double a, double b) { return std::abs(b - a) <= tolerance; };
            const auto [low, high] =
                next < x ? boost::math::tools::toms748_solve(residual, next, x, next_r, r, close, left)
                         : boost::math::tools::toms748_solve(residual, x, next, r, next_r, close, left);
            residual(0.5 * (low + high));
            if (!close(low, high)) result.status = Termination::iteration_limit;
            break;
        }
        x = next;
        r = next_r;
    }
    result.relative_error = sampling_error / std::max(std::abs(slope), 1e-3);
    return result;
}

void check_problem(const channels::Channel& channel, double alpha) {
    check_positive("alpha", alpha);
    check_between("alpha", alpha, 1e-15, 1e15);
    check_size("layers of the channel", channel.layers(), 1);
}

}  // namespace

FixedPoint solve_state_evolution(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                                 Start start, const StateEvolutionOptions& options) {
    check_problem(channel, alpha);
    if (prior.prior_error() == 0) return exact_recovery(prior, 0);  // nothing to learn
    if (const auto observations = channel.exact_observations()) {
        return solve_exact_observations(prior, 2 * alpha * *observations, options);
    }
    return follow_iteration(prior, channel, alpha, start, options);
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
    check_problem(channel, alpha);
    double error = prior.prior_error() * (start == Start::uninformed ? 1 : informed_error);
    std::vector<OrderParameters> trajectory{parameters_at(prior, error)};
    for (int i = 0; i < iterations; ++i) {
        error = iterate(prior, channel, alpha, error, options).next_error;
        trajectory.push_back(parameters_at(prior, error));
    }
    return trajectory;
}

}  // namespace bayesaim::theory
