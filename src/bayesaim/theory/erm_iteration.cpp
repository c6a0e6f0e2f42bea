// SPDX-License-Identifier: MIT
#include "bayesaim/theory/erm_iteration.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "bayesaim/linalg/decompositions.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

namespace bayesaim::theory {
namespace {

using losses::Alignment;
using losses::Loss;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Where an iteration stands.
struct Iterate {
    Alignment alignment{};
    double variance = 0;  ///< V
};

/// log E, artanh t and log V: coordinates without bounds, because m = Q - t sqrt(Q E) with |t| < 1 by Schwarz's inequality.
using State = Eigen::Vector3d;

State coordinates(const Iterate& at) {
    constexpr double roundoff = 1e-14;  // close to recovery E is a difference of large numbers
    const double total = at.alignment.total, error = std::max(at.alignment.error(), roundoff * total),
                 t = (total - at.alignment.overlap) / std::sqrt(total * error);
    return {std::log(error), std::atanh(std::clamp(t, roundoff - 1, 1 - roundoff)), std::log(at.variance)};
}

Iterate iterate_at(const State& x, double total) {
    const double error = std::exp(x[0]), t = std::tanh(x[1]), overlap = total - t * std::sqrt(total * error);
    const double slack = error * std::pow(std::cosh(x[1]), -2);  // q - m^2/Q
    return {{total, overlap, slack + overlap * overlap / total}, std::exp(x[2])};
}

class Iteration {
  public:
    Iteration(const spectral::SpectralLaw& teacher, const Loss& loss, double alpha, double lambda,
              const ErmOptions& options)
        : law_(&teacher), loss_(&loss), alpha_(alpha), lambda_(lambda), options_(options) {}

    /// One step of state evolution; V is NaN if it leads nowhere.
    Iterate step(const Iterate& at, const losses::Integration& integration) {
        const double total = law_->second_moment();
        means_ = loss_->means(at.alignment, at.variance, integration);
        const double a = 2 * alpha_ * means_.curvature, signal = 2 * alpha_ * means_.signal,
                     noise = alpha_ * means_.power / (signal * signal);
        if (!(a > 0 && signal > 0 && noise > 1e-30 && noise < 1e30)) return {at.alignment, std::nan("")};
        point_.curvature = a;
        point_.noise_variance = noise;
        if (options_.penalty == Penalty::frobenius) {
            const double gain = point_.gain = signal / (a + lambda_);
            point_.divergence = 1;
            point_.trace = gain * law_->mean();
            return {{total, gain * total, gain * gain * (total + noise)}, 1 / (a + lambda_)};
        }
        const double b = signal / a, threshold = lambda_ / signal;
        const auto tail = spectral::FreeConvolution(*law_, noise).above(threshold);
        point_.gain = b;
        point_.threshold = threshold;
        point_.divergence = tail.divergence;
        point_.zero_fraction = std::max(1 - tail.mass, 0.0);
        point_.trace = b * tail.first;
        return {{total, b * (tail.second + threshold * tail.first - noise * tail.divergence),
                 b * b * tail.second},
                tail.divergence / a};
    }

    /// The fixed point by Broyden's method: few data make the map steep, and its repetition diverges. Means and point, the
    /// last that were evaluated, are those of the result.
    Iterate solve(const Iterate& start, const losses::Integration& integration) {
        Probe now = probe(coordinates(start), integration);
        // Roundoff; and the means of a loss that is not convex jump, as the steps at its nodes do.
        const double floor = loss_->convex() ? 1e-7 : 1e-3;
        bool fresh = false;  // whether the slope is that of this place
        double damping = 0.5;
        while (!now.converged && evaluations_ < options_.max_iterations && std::isfinite(now.size)) {
            if (now.residual.cwiseAbs().maxCoeff() >= most_change) {
                // Far away, as where Shat would be 0, slopes say nothing: a repetition, damped more if it turns around.
                const Probe next = probe(now.x + damping * now.residual, integration);
                if (!(next.residual.dot(now.residual) > 0)) damping *= 0.5;
                if (std::isfinite(next.size)) now = next;
                if (damping < 1e-3) break;
                continue;
            }
            if (slope_.size() == 0) {
                slope_ = slope_at(now, integration);
                fresh = true;
            }
            State step = -linalg::solve_general(slope_, now.residual);
            if (!step.allFinite()) step = damping * now.residual;
            step *= std::min(1.0, most_change / step.cwiseAbs().maxCoeff());
            std::optional<Probe> next = descend(now, step, integration);
            if (!next && fresh) next = descend(now, damping * now.residual, integration);
            if (!next) {
                if (fresh || now.size < floor) break;
                slope_.resize(0, 0);
                continue;
            }
            const State moved = next->x - now.x, changed = next->residual - now.residual;
            slope_ += (changed - slope_ * moved) * moved.transpose() / moved.squaredNorm();
            fresh = false;
            now = *next;
        }
        converged_ = now.converged;
        if (!converged_ && now.size < floor) {
            converged_ = true;
            floor_ = now.size;
        }
        if (now.converged) return now.next;
        const Iterate result = iterate_at(now.x, law_->second_moment());
        step(result, integration);
        return result;
    }

    bool converged() const { return converged_; }
    int evaluations() const { return evaluations_; }

    ErmPoint finish(const Iterate& at) {
        point_.alpha = alpha_;
        point_.regularization = lambda_;
        point_.alignment = at.alignment;
        point_.error = at.alignment.error();
        point_.training_loss = means_.loss;
        point_.response = at.variance;
        point_.objective =
            alpha_ * means_.loss +
            lambda_ * (options_.penalty == Penalty::trace ? point_.trace : 0.5 * at.alignment.self_overlap);
        return point_;
    }
    /// Of the means, or of what is left of the residuals.
    double relative_error() const { return std::max(means_.relative_error, 10 * floor_); }

  private:
    static constexpr double most_change = 2;  // of a coordinate in one step

    /// A place and how far its step goes from there.
    struct Probe {
        State x, residual;
        Iterate next{};
        double size = infinity;  ///< of relative changes
        bool converged = false;
    };
    Probe probe(const State& x, const losses::Integration& integration) {
        ++evaluations_;
        const double total = law_->second_moment();
        const Iterate now = iterate_at(x, total), next = step(now, integration);
        Probe result{x, (coordinates(next) - x).cwiseMin(most_change).cwiseMax(-most_change), next};
        if (!std::isfinite(next.variance)) return result;
        const double error = now.alignment.error();
        result.size = std::abs(next.alignment.error() - error) / error +
                      std::abs(next.alignment.overlap - now.alignment.overlap) / total +
                      std::abs(next.variance / now.variance - 1);
        constexpr double roundoff = 1e-13;
        result.converged = result.size < options_.tolerance + roundoff * total / error;
        return result;
    }

    linalg::Matrix slope_at(const Probe& now, const losses::Integration& integration) {
        constexpr double h = 1e-4;
        linalg::Matrix slope(3, 3);
        for (int k = 0; k < 3; ++k)
            slope.col(k) = (probe(now.x + h * State::Unit(k), integration).residual - now.residual) / h;
        return slope;
    }

    /// A part of the step that makes the residual smaller; none if no part does.
    std::optional<Probe> descend(const Probe& now, const State& step,
                                 const losses::Integration& integration) {
        for (const double part : {1.0, 0.4, 0.15, 0.05, 0.01}) {
            const Probe next = probe(now.x + part * step, integration);
            if (next.converged) return next;
            if (std::isfinite(next.size) && next.residual.norm() < (1 - 0.1 * part) * now.residual.norm())
                return next;
        }
        return std::nullopt;
    }

    const spectral::SpectralLaw* law_;
    const Loss* loss_;
    double alpha_, lambda_;
    const ErmOptions& options_;
    losses::ProximalMeans means_;
    ErmPoint point_;
    linalg::Matrix slope_;  // of the residual
    double floor_ = 0;
    int evaluations_ = 0;
    bool converged_ = false;
};

}  // namespace

ErmPoint iterate_erm(const spectral::SpectralLaw& teacher, const Loss& loss, double alpha, double lambda,
                     const ErmOptions& options, const Alignment& start, double response) {
    Iteration iteration(teacher, loss, alpha, lambda, options);
    // A rule of half the points first; what the rest of them changes is an estimate of the error, from above.
    losses::Integration half = options.integration;
    half.points = std::max(1, half.points / 2);
    Iterate x = iteration.solve({start, response}, half);
    const double rough = x.alignment.error();
    if (iteration.converged()) x = iteration.solve(x, options.integration);
    ErmPoint point = iteration.finish(x);
    point.relative_error = std::max(std::abs(rough / point.error - 1), iteration.relative_error());
    point.iterations = iteration.evaluations();
    point.status = iteration.converged() ? Termination::converged : Termination::iteration_limit;
    return point;
}

}  // namespace bayesaim::theory
