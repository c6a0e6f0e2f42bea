// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "bayesaim/linalg/decompositions.hpp"
#include "bayesaim/theory/methods.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::theory {
namespace {

constexpr double vanishing = 1e-7;  // relative to the prior's error

/// C in coordinates without bounds: log C_ll, and the correlations.
Eigen::VectorXd coordinates(const Overlap& error) {
    Eigen::VectorXd x(error.rows() * (error.rows() + 1) / 2);
    Eigen::Index next = 0;
    for (Eigen::Index l = 0; l < error.rows(); ++l) {
        x[next++] = std::log(error(l, l));
        for (Eigen::Index k = 0; k < l; ++k) x[next++] = error(l, k) / std::sqrt(error(l, l) * error(k, k));
    }
    return x;
}

Overlap from_coordinates(const Eigen::VectorXd& x, Eigen::Index layers) {
    Overlap error(layers, layers);
    Eigen::Index next = 0;
    for (Eigen::Index l = 0; l < layers; ++l) {
        error(l, l) = std::exp(x[next++]);
        for (Eigen::Index k = 0; k < l; ++k) {
            error(l, k) = error(k, l) = x[next++] * std::sqrt(error(l, l) * error(k, k));
        }
    }
    return error;
}

/// The map of state evolution in these coordinates, and its last result.
struct Map {
    const EstimationCurve& prior;
    const channels::Channel& channel;
    double alpha;
    channels::Integration integration;
    Iterate last{};
    int evaluations = 0;

    Eigen::VectorXd operator()(const Eigen::VectorXd& x) {
        last = iterate(prior, channel, alpha, from_coordinates(x, channel.components()), integration);
        ++evaluations;
        return coordinates(last.error);
    }
};

enum class Followed { settled, recovered, limit };

/// Follows the iteration from x, extrapolating its geometric tail, until a step is below the tolerance or the
/// error vanishes. If it vanishes below the threshold, the posteriors were not resolved: Followed::limit.
Followed follow(Map& map, Eigen::VectorXd& x, double tolerance, double lowest_trace, bool recoverable,
                int most) {
    Eigen::VectorXd last_step = Eigen::VectorXd::Zero(x.size());
    for (int since_jump = 1; map.evaluations < most; ++since_jump) {
        const Eigen::VectorXd reached = map(x), step = reached - x;
        x = reached;
        if (map.last.error.trace() < lowest_trace && step[0] < 0)
            return recoverable ? Followed::recovered : Followed::limit;
        if (step.cwiseAbs().maxCoeff() <= std::max(tolerance, map.last.roughness)) return Followed::settled;
        if (since_jump == 3) {
            const double rate = std::clamp(step.dot(last_step) / last_step.squaredNorm(), 0.0, 0.98);
            x += std::min(rate / (1 - rate), 8.0) * step;  // not too far: the tail is not quite geometric
            since_jump = 0;
        }
        last_step = step;
    }
    return Followed::limit;
}

/// Derivative of the map, by differences that stand out from its roughness.
Eigen::MatrixXd jacobian(Map& map, const Eigen::VectorXd& x) {
    const double shift = std::clamp(10 * map.last.roughness, 0.01, 0.1);
    Eigen::MatrixXd result(x.size(), x.size());
    for (Eigen::Index i = 0; i < x.size(); ++i) {
        Eigen::VectorXd up = x, down = x;
        up[i] += shift;
        down[i] -= shift;
        result.col(i) = (map(up) - map(down)) / (2 * shift);
    }
    return result;
}

/// Relative change of Tr C when the coordinates change: that of the layers, weighted by their share of the trace.
double trace_change(const Overlap& error, const Eigen::VectorXd& change) {
    double sum = 0;
    Eigen::Index next = 0;
    for (Eigen::Index l = 0; l < error.rows(); next += ++l) sum += change[next] * error(l, l) / error.trace();
    return sum;
}

/// Amplification: relative error of Tr C at the fixed point per relative error of qhat in one iteration. The
/// error of qhat changes the coordinates of C, and (1 - J)^-1 sums the effect on all later iterations.
double error_amplification(const Map& map, const Eigen::MatrixXd& one_minus_jacobian) {
    constexpr double shift = 1e-3;
    const Overlap sharper = map.prior.covariance((1 + shift) * map.last.conjugate);
    const Eigen::VectorXd change = (coordinates(map.last.error) - coordinates(sharper)) / shift;
    const Eigen::VectorXd total = linalg::solve_general(one_minus_jacobian, change);
    return trace_change(map.last.error, total.cwiseAbs());
}

/// Relative change of Tr C at the fixed point due to the bias of the curve in one iteration.
double biased_by(const Map& map, const Eigen::MatrixXd& one_minus_jacobian) {
    const Overlap bias = map.prior.covariance_bias(map.last.conjugate);
    if (bias.isZero(0)) return 0;
    const Overlap& error = map.last.error;
    const Eigen::VectorXd change = coordinates(error + bias) - coordinates(error);
    return std::min(1.0, std::abs(trace_change(error, linalg::solve_general(one_minus_jacobian, change))));
}

}  // namespace

FixedPoint solve_newton(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                        Start start, const StateEvolutionOptions& options) {
    if (auto point = solve_parts(prior, channel, alpha, start, options)) return *point;
    const Eigen::Index layers = channel.components();
    const Overlap no_data = prior.prior_error();
    FixedPoint result;
    result.status = Termination::iteration_limit;
    Eigen::VectorXd x = coordinates((start == Start::uninformed ? 1 : informed_error) * no_data);
    const std::optional<double> threshold = strong_recovery(prior, channel);
    const bool recoverable = threshold && alpha > *threshold;
    // First few points, then all of them: the derivative of the map hardly depends on their number.
    constexpr int ratio = 16;
    Map few{prior, channel, alpha, options.integration}, all = few;
    few.integration.points =
        std::max(std::min(options.integration.points, 64), options.integration.points / ratio);
    const double tolerance = channel.sampled() ? 10 * options.sampled_tolerance : options.tolerance;
    const auto followed = follow(few, x, std::max(1e-4, options.sampled_tolerance),
                                 vanishing * no_data.trace(), recoverable, options.max_iterations);
    if (followed == Followed::recovered) return exact_recovery(prior, few.evaluations);
    if (followed == Followed::settled) {
        const Eigen::MatrixXd chord = Eigen::MatrixXd::Identity(x.size(), x.size()) - jacobian(few, x);
        for (int i = 0; i < 12 && result.status != Termination::converged; ++i) {
            const Eigen::VectorXd step = linalg::solve_general(chord, all(x) - x);
            if (!step.allFinite() || step.cwiseAbs().maxCoeff() > 1) break;
            x += step;
            if (step.cwiseAbs().maxCoeff() <= std::max(tolerance, 2 * all.last.roughness))
                result.status = Termination::converged;
        }
        result.relative_error =
            std::hypot(std::hypot(all.last.relative_error * error_amplification(all, chord),
                                  prior.covariance_error(all.last.conjugate)),
                       biased_by(all, chord));
    } else {
        all.last = few.last;
        // An approximation that found no fixed point says nothing.
        result.relative_error =
            prior.covariance_bias(few.last.conjugate).isZero(0) ? few.last.relative_error : 1;
    }
    result.iterations = few.evaluations + all.evaluations;
    result.conjugate = all.last.conjugate;
    result.parameters = parameters_at(prior, from_coordinates(x, layers));
    return result;
}

}  // namespace bayesaim::theory
