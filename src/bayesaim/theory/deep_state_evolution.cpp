// SPDX-License-Identifier: MIT
#include "bayesaim/theory/deep_state_evolution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/LU>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::theory {
namespace {

constexpr double vanishing = 1e-7;  // relative to the prior's error

void check_problem(Laws laws, const channels::Channel& channel, double alpha) {
    check_positive("alpha", alpha);
    check_between("alpha", alpha, 1e-15, 1e15);
    check_size("number of priors", static_cast<long long>(laws.size()), channel.layers());
    for (const spectral::SpectralLaw* law : laws) check_positive("variance of a prior", law->variance());
}

Overlap prior_error(Laws laws) {
    const auto layers = static_cast<Eigen::Index>(laws.size());
    Overlap error = Overlap::Zero(layers, layers);
    for (Eigen::Index l = 0; l < layers; ++l) error(l, l) = laws[static_cast<std::size_t>(l)]->variance();
    return error;
}

/// One iteration of state evolution.
struct Iterate {
    Overlap error, conjugate;
    double relative_error, roughness;  // of qhat
};

Iterate iterate(Laws laws, const channels::Channel& channel, double alpha, const Overlap& error,
                const channels::Integration& integration) {
    const auto power = channel.score_power(deep_parameters(laws, error), integration);
    // Of a layer that is hardly seen the average may have any sign.
    const Overlap sampled = 4 * alpha * power.value;
    const double least =
        std::max(1e-6 / prior_error(laws).diagonal().maxCoeff(), 1e-10 * std::abs(sampled.trace()));
    const Overlap conjugate = linalg::with_eigenvalues_above(sampled, least);
    return {denoisers::cavity_covariance(laws, conjugate), conjugate, power.relative_error, power.roughness};
}

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

/// The map of state evolution in these coordinates, and what it saw last.
struct Map {
    Laws laws;
    const channels::Channel& channel;
    double alpha;
    channels::Integration integration;
    Iterate last{};
    int evaluations = 0;

    Eigen::VectorXd operator()(const Eigen::VectorXd& x) {
        last = iterate(laws, channel, alpha, from_coordinates(x, channel.layers()), integration);
        ++evaluations;
        return coordinates(last.error);
    }
};

enum class Followed { settled, recovered, limit };

/// Follows the iteration from x, extrapolating its geometric tail, until a step is below the tolerance. An
/// error that vanishes where it cannot (the posteriors were not resolved) ends it too.
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

/// How much the error of qhat in each iteration makes of that of Tr C at the fixed point: the first changes
/// the coordinates of C, and (1 - J)^-1 sums what the iteration makes of that.
double error_amplification(const Map& map, const Eigen::MatrixXd& jacobian) {
    constexpr double shift = 1e-3;
    const Overlap sharper = denoisers::cavity_covariance(map.laws, (1 + shift) * map.last.conjugate);
    const Eigen::VectorXd change = (coordinates(map.last.error) - coordinates(sharper)) / shift;
    const Eigen::Index size = change.size();
    const Eigen::VectorXd total =
        (Eigen::MatrixXd::Identity(size, size) - jacobian).partialPivLu().solve(change);
    double sum = 0;  // of the layers' relative changes, weighted by their share of the trace
    Eigen::Index next = 0;
    for (Eigen::Index l = 0; l < map.last.error.rows(); next += ++l) {
        sum += std::abs(total[next]) * map.last.error(l, l) / map.last.error.trace();
    }
    return sum;
}

}  // namespace

OrderParameters deep_parameters(Laws laws, const Overlap& error) {
    const auto layers = static_cast<Eigen::Index>(laws.size());
    Eigen::VectorXd means(layers);
    for (Eigen::Index l = 0; l < layers; ++l) means[l] = laws[static_cast<std::size_t>(l)]->mean();
    return {Overlap(means * means.transpose()) + prior_error(laws) - error, error};
}

FixedPoint solve_deep_state_evolution(Laws laws, const channels::Channel& channel, double alpha, Start start,
                                      const StateEvolutionOptions& options) {
    check_problem(laws, channel, alpha);
    if (laws.size() == 1) {
        return solve_state_evolution(SpectralCurve(*laws[0]), channel, alpha, start, options);
    }
    const Eigen::Index layers = channel.layers();
    const Overlap no_data = prior_error(laws);
    const Overlap error = no_data * (start == Start::uninformed ? 1 : informed_error);
    FixedPoint result;
    result.status = Termination::iteration_limit;
    Eigen::VectorXd x = coordinates(error);
    const bool recoverable = alpha > deep_strong_recovery(laws, channel);
    // Most of the way with few points, the rest with all: the derivative of the map hardly depends on them.
    constexpr int ratio = 16;
    Map few{laws, channel, alpha, options.integration}, all = few;
    few.integration.points =
        std::max(std::min(options.integration.points, 64), options.integration.points / ratio);
    const auto followed = follow(few, x, std::max(1e-4, options.sampled_tolerance),
                                 vanishing * no_data.trace(), recoverable, options.max_iterations);
    if (followed == Followed::recovered) {
        result.parameters = deep_parameters(laws, Overlap::Zero(layers, layers));
        result.conjugate = Overlap::Zero(layers, layers);
        result.conjugate.diagonal().setConstant(std::numeric_limits<double>::infinity());
        result.iterations = few.evaluations;
        result.status = Termination::exact_recovery;
        return result;
    }
    if (followed == Followed::settled) {
        const Eigen::MatrixXd derivative = jacobian(few, x);
        const Eigen::PartialPivLU<Eigen::MatrixXd> chord(Eigen::MatrixXd::Identity(x.size(), x.size()) -
                                                         derivative);
        for (int i = 0; i < 12 && result.status != Termination::converged; ++i) {
            const Eigen::VectorXd step = chord.solve(all(x) - x);
            if (!step.allFinite() || step.cwiseAbs().maxCoeff() > 1) break;
            x += step;
            if (step.cwiseAbs().maxCoeff() <=
                std::max(10 * options.sampled_tolerance, 2 * all.last.roughness))
                result.status = Termination::converged;
        }
        result.relative_error = std::hypot(all.last.relative_error * error_amplification(all, derivative),
                                           denoisers::cavity_error(laws, all.last.conjugate));
    } else {
        all.last = few.last;
        result.relative_error = few.last.relative_error;
    }
    result.iterations = few.evaluations + all.evaluations;
    result.conjugate = all.last.conjugate;
    result.parameters = deep_parameters(laws, from_coordinates(x, layers));
    return result;
}

std::vector<OrderParameters> deep_state_evolution_trajectory(Laws laws, const channels::Channel& channel,
                                                             double alpha, int iterations, Start start,
                                                             const StateEvolutionOptions& options) {
    check_problem(laws, channel, alpha);
    Overlap error = prior_error(laws) * (start == Start::uninformed ? 1 : informed_error);
    std::vector<OrderParameters> trajectory{deep_parameters(laws, error)};
    for (int i = 0; i < iterations; ++i) {
        error = iterate(laws, channel, alpha, error, options.integration).error;
        trajectory.push_back(deep_parameters(laws, error));
    }
    return trajectory;
}

double deep_strong_recovery(Laws laws, const channels::Channel& channel) {
    check_size("number of priors", static_cast<long long>(laws.size()), channel.layers());
    double ratio = 0;
    for (const spectral::SpectralLaw* law : laws) ratio += 1 - law->atomic_concentration();
    return ratio / (2 * (channel.pairs() - 1));
}

double recovery_growth_rate(Laws laws, const channels::Channel& channel, double alpha,
                            const channels::Integration& integration) {
    check_problem(laws, channel, alpha);
    const double small = 1e-5 * prior_error(laws).trace();
    Overlap error = prior_error(laws) * 1e-5;
    double growth = 1;
    constexpr int iterations = 25;
    for (int i = 0; i < iterations; ++i) {
        const Overlap next = iterate(laws, channel, alpha, error, integration).error;
        growth = next.trace() / error.trace();
        error = next * (small / next.trace());
    }
    return growth;
}

}  // namespace bayesaim::theory
