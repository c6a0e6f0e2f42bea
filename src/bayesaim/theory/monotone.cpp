// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include <boost/math/tools/toms748_solve.hpp>

#include "bayesaim/theory/methods.hpp"

namespace bayesaim::theory {
namespace {

/// Standard error of log C after an iteration: d log mmse / d log qhat = -D mmse'(D) / mmse(D).
double sampling_error(const EstimationCurve& prior, const Iterate& last) {
    if (last.relative_error == 0) return 0;
    const double conjugate = last.conjugate(0, 0);
    return last.relative_error * prior.at(1 / conjugate).slope / (conjugate * last.error(0, 0));
}

}  // namespace

FixedPoint solve_monotone(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                          Start start, const StateEvolutionOptions& options) {
    constexpr double longest = 20;  // a secant step, in plain steps
    const double direction = start == Start::uninformed ? -1 : 1;
    const double prior_log_error = std::log(prior.prior_error()(0, 0));
    const double vanishing = prior_log_error + std::log(1e-20);
    const double tolerance = channel.sampled() ? options.sampled_tolerance : options.tolerance;
    FixedPoint result;
    Iterate last;
    const auto residual = [&](double x) {
        const Overlap error = linalg::scalar_overlap(std::exp(x));
        last = iterate(prior, channel, alpha, error, options.integration);
        ++result.iterations;
        result.parameters = parameters_at(prior, error);
        result.conjugate = last.conjugate;
        return std::log(last.error(0, 0)) - x;
    };
    const auto unsettled = [&] {
        result.status = Termination::iteration_limit;
        return result;
    };
    double x = prior_log_error + (start == Start::uninformed ? 0 : std::log(informed_error));
    double r = residual(x), slope = -1;
    if (start == Start::informed && r < 0) {  // a fixed point can only be even closer to the truth
        x = vanishing;
        r = residual(x);
        if (r < 0) return unsettled();
    }
    while (std::abs(r) > tolerance) {
        if (result.iterations >= options.max_iterations) return unsettled();
        const double length = slope < 0 ? std::clamp(-1 / slope, 1.0, longest) : 1;
        const double next = std::clamp(x + length * r, vanishing, prior_log_error);
        const double next_r = residual(next);
        // The channel has no exact recovery: double precision does not resolve an error that small.
        if (next == vanishing && next_r < 0) return unsettled();
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
    result.relative_error = sampling_error(prior, last) / std::max(std::abs(slope), 1e-3);
    return result;
}

}  // namespace bayesaim::theory
