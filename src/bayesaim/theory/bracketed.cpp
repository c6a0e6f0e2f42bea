// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <limits>

#include "bayesaim/theory/methods.hpp"

namespace bayesaim::theory {

using linalg::scalar_overlap;

FixedPoint solve_bracketed(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                           const StateEvolutionOptions& options) {
    const double c = channel.geometry().variance_factor() * alpha * channel.exact_observations().value(),
                 limit = prior.recovery_ratio(), scale = prior.prior_error()(0, 0);
    if (c >= limit) return exact_recovery(prior, 0);
    // mmse <= prior error gives the upper end. Below the lower end the ratio is linear in D.
    const double lowest = std::log(prior.smallest_noise());
    double low = lowest, high = std::log(scale / c);
    // D/(1/c - 1/limit) varies slowly: the prior's error at small c, and finite at recovery.
    double level = std::log(scale);
    if (options.neighbour) {
        const double distance = alpha / (options.neighbour->alpha * c) - 1 / limit;
        if (distance > 0) level = std::log(options.neighbour->noise_variance / distance);
    }
    double x = std::clamp(level + std::log(1 / c - 1 / limit), low, high);
    struct {
        double x = 0, excess = 0, log_slope = 0;
    } previous;
    FixedPoint result;
    const auto finish = [&](double noise_variance, Termination status) {
        result.parameters = parameters_at(prior, scalar_overlap(c * noise_variance));
        result.conjugate = scalar_overlap(1 / noise_variance);
        result.status = status;
        return result;
    };
    for (result.iterations = 1; result.iterations <= options.max_iterations; ++result.iterations) {
        const double noise_variance = std::exp(x);
        const auto [error, slope] = prior.at(noise_variance);
        const double ratio = error / noise_variance, excess = std::log(ratio / c);
        // A rounding below recovery, the ratio is c up to roundings at every D that is left.
        constexpr double roundoff = 8 * std::numeric_limits<double>::epsilon();
        if (std::abs(excess) <= roundoff) return finish(noise_variance, Termination::converged);
        (excess > 0 ? low : high) = x;
        if (excess < 0 && x <= lowest) {
            // Linear next to the limit only: eigenvalues far below the noise keep the ratio far from it.
            const bool linear = limit - ratio < 0.01 * limit;
            return finish(noise_variance * (limit - c) / (limit - ratio),
                          linear ? Termination::converged : Termination::iteration_limit);
        }
        // Between two neighbours roundings of the ratio decide: no number is nearer.
        const double middle = 0.5 * (low + high);
        if (middle <= low || middle >= high) return finish(noise_variance, Termination::converged);
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
        if (left <= 0.1 * options.tolerance) return finish(std::exp(next), Termination::converged);
        // The lower end itself is tried if it has not been.
        if (!(next > low && next < high))
            next = next <= lowest && low == lowest ? lowest : middle;
        x = next;
    }
    return finish(std::exp(x), Termination::iteration_limit);
}

}  // namespace bayesaim::theory
