// SPDX-License-Identifier: MIT
#include "bayesaim/theory/erm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <boost/math/tools/minima.hpp>
#include <boost/math/tools/toms748_solve.hpp>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/decompositions.hpp"
#include "bayesaim/theory/erm_square.hpp"
#include "bayesaim/theory/points.hpp"

namespace bayesaim::theory {
namespace {

using losses::Alignment;
using losses::Loss;
using losses::SquareForm;
constexpr double infinity = std::numeric_limits<double>::infinity();

void check(const spectral::SpectralLaw& teacher, double alpha, double regularization,
           const ErmOptions& options) {
    if (teacher.aspect() != 1) throw_invalid("aspect of a trained estimate", "1", teacher.aspect());
    check_non_negative("alpha", alpha);
    if (alpha > 0) check_between("alpha", alpha, 1e-12, 1e12);
    check_non_negative("regularization", regularization);
    check_finite("regularization", regularization);
    check_at_least("iterations", options.max_iterations, 1);
    check_positive("tolerance", options.tolerance);
    check_positive("second moment of the teacher", teacher.second_moment());
}

/// As lambda -> 0+ every loss of softmax outputs has the interpolator of `logit`; K - 1 combinations are seen.
SquareForm limiting_form(const Loss& loss) {
    return loss.square_form().value_or(SquareForm{static_cast<double>(loss.pairs() - 1), 0});
}

// ---- penalty frobenius ------------------------------------------------------------------------------------

/// A loss of square form: with s = A/(A + lambda), E = [Q (1 - s)^2 + s^2 nu/c]/(1 - s^2/c), and V = 1/(A + lambda) with
/// A = c/(1 + V) is the root of lambda V^2 + (c + lambda - 1) V = 1.
ErmPoint solve_ridge(double total, double mean, const SquareForm& form, double alpha, double lambda) {
    const double c = 2 * alpha * form.coordinates, nu = form.noise_variance;
    ErmPoint result;
    result.alpha = alpha;
    result.regularization = lambda;
    const bool interpolates = lambda == 0 && c <= 1;
    double s = 1;
    if (interpolates) {
        s = c;
        result.response = infinity;
    } else if (lambda == 0) {
        result.response = 1 / (c - 1);
        result.curvature = c - 1;
    } else {
        const double half = 0.5 * (c + lambda - 1), root = std::hypot(half, std::sqrt(lambda));
        result.response = half > 0 ? 1 / (half + root) : (root - half) / lambda;
        result.curvature = c / (1 + result.response);
        s = result.curvature / (result.curvature + lambda);
    }
    if (c == 1 && lambda == 0 && nu > 0) {
        result.status = Termination::diverged;  // the peak of double descent is infinite here
        result.error = infinity;
        return result;
    }
    const double rest = interpolates ? 1 - c : lambda / (result.curvature + lambda);  // 1 - s
    result.error = interpolates  ? total * rest + (nu > 0 ? c * nu / rest : 0)
                   : lambda == 0 ? nu / (c - 1)
                                 : (total * rest * rest + s * s * nu / c) / (1 - s * s / c);
    result.noise_variance = (result.error + nu) / c;
    result.gain = s;
    result.divergence = 1;
    result.alignment = {total, s * total, s * s * (total + result.noise_variance)};
    result.training_loss =
        interpolates ? 0 : form.coordinates * (result.error + nu) * std::pow(result.curvature / c, 2);
    result.trace = s * mean;
    result.objective = alpha * result.training_loss + 0.5 * lambda * result.alignment.self_overlap;
    if (result.error == 0) result.status = Termination::exact_recovery;
    return result;
}

// ---- any loss: iteration ----------------------------------------------------------------------------------

/// m, q and log V
using State = Eigen::Vector3d;

class Iteration {
  public:
    Iteration(const spectral::SpectralLaw& teacher, const Loss& loss, double alpha, double lambda,
              const ErmOptions& options)
        : law_(&teacher), loss_(&loss), alpha_(alpha), lambda_(lambda), options_(options) {}

    State step(const State& x, const losses::Integration& integration) {
        const double variance = std::exp(x[2]);
        const double total = law_->second_moment();
        const Alignment at{total, x[0], std::max(x[1], 1e-300)};
        means_ = loss_->means(at, variance, integration);
        const double a = 2 * alpha_ * means_.curvature, signal = 2 * alpha_ * means_.signal,
                     chi = alpha_ * means_.power;
        point_.curvature = a;
        point_.noise_variance = chi / (signal * signal);
        State next;
        if (options_.penalty == Penalty::frobenius) {
            point_.gain = signal / (a + lambda_);
            point_.divergence = 1;
            point_.trace = point_.gain * law_->mean();
            next = {point_.gain * total, point_.gain * point_.gain * (total + point_.noise_variance),
                    -std::log(a + lambda_)};
        } else {
            const double noise = point_.noise_variance, b = signal / a, threshold = lambda_ / signal;
            if (!(noise > 0) || !std::isfinite(noise) || !std::isfinite(b))
                return State::Constant(std::nan(""));
            const auto tail = spectral::FreeConvolution(*law_, noise).above(threshold);
            point_.gain = b;
            point_.threshold = threshold;
            point_.divergence = tail.divergence;
            point_.zero_fraction = 1 - tail.mass;
            point_.trace = b * tail.first;
            next = {b * (tail.second + threshold * tail.first - noise * tail.divergence), b * b * tail.second,
                    std::log(std::max(tail.divergence, 1e-300) / a)};
        }
        return next;
    }

    /// Anderson's mixing of the last steps.
    State solve(State x, const losses::Integration& integration, int& iterations, bool& converged) {
        constexpr int depth = 4;
        std::vector<State> points, residuals;
        converged = false;
        double last = infinity;
        for (; iterations < options_.max_iterations; ++iterations) {
            const State residual = step(x, integration) - x;
            const double size =
                std::hypot(residual[0], residual[1]) / law_->second_moment() + std::abs(residual[2]);
            if (!(std::isfinite(size))) return x;
            if (size < options_.tolerance) {
                converged = true;
                return x + residual;
            }
            if (size > 2 * last) {  // a mixture that leads astray
                points.clear();
                residuals.clear();
            }
            last = size;
            points.push_back(x);
            residuals.push_back(residual);
            if (points.size() > depth) {
                points.erase(points.begin());
                residuals.erase(residuals.begin());
            }
            constexpr double damping = 0.5;
            State next = x + (points.size() == 1 ? damping : 0.7) * residual;
            const auto columns = static_cast<Eigen::Index>(points.size()) - 1;
            if (columns > 0) {
                linalg::Matrix moved(3, columns), changed(3, columns);
                for (Eigen::Index k = 0; k < columns; ++k) {
                    const auto i = static_cast<std::size_t>(k);
                    moved.col(k) = points[i + 1] - points[i];
                    changed.col(k) = residuals[i + 1] - residuals[i];
                }
                linalg::Matrix normal = changed.transpose() * changed;
                normal.diagonal().array() += 1e-14 * normal.trace();
                const Eigen::VectorXd weights = linalg::solve_general(normal, changed.transpose() * residual);
                if (weights.allFinite()) {
                    // Far away the mixture knows nothing, and a large q takes many nodes.
                    constexpr double most = 4;
                    const State mixed = x + residual - (moved + changed) * weights;
                    const auto near = [&](int k) { return mixed[k] > x[k] / most && mixed[k] < x[k] * most; };
                    if (near(0) && near(1) && std::abs(mixed[2] - x[2]) < 3) next = mixed;
                }
            }
            x = next;
        }
        return x;
    }

    ErmPoint finish(const State& x) {
        point_.alpha = alpha_;
        point_.regularization = lambda_;
        point_.alignment = {law_->second_moment(), x[0], x[1]};
        point_.error = point_.alignment.error();
        point_.training_loss = means_.loss;
        point_.response = std::exp(x[2]);
        point_.objective = alpha_ * means_.loss + lambda_ * (options_.penalty == Penalty::trace
                                                                 ? point_.trace
                                                                 : 0.5 * point_.alignment.self_overlap);
        return point_;
    }
    double means_error() const { return means_.relative_error; }

  private:
    const spectral::SpectralLaw* law_;
    const Loss* loss_;
    double alpha_, lambda_;
    const ErmOptions& options_;
    losses::ProximalMeans means_;
    ErmPoint point_;
};

/// S = 0 is the minimum under the trace penalty if the gradient there, mhat Y, has no eigenvalue above lambda.
std::optional<ErmPoint> solve_zero(const spectral::SpectralLaw& teacher, const Loss& loss, double alpha,
                                   double lambda, const ErmOptions& options) {
    constexpr double none = 1e-12;  // q and V, which are 0 but for a division
    const double total = teacher.second_moment();
    const auto means = loss.means({total, 0, none * total}, none, options.integration);
    const double signal = 2 * alpha * means.signal, noise = alpha * means.power / (signal * signal);
    if (!(lambda / signal >= spectral::FreeConvolution(teacher, noise).edges().back().high))
        return std::nullopt;
    ErmPoint point;
    point.alpha = alpha;
    point.regularization = lambda;
    point.alignment.total = point.error = total;
    point.training_loss = means.loss;
    point.zero_fraction = 1;
    point.curvature = 2 * alpha * means.curvature;
    point.gain = signal / point.curvature;
    point.noise_variance = noise;
    point.threshold = lambda / signal;
    point.objective = alpha * means.loss;
    return point;
}

ErmPoint solve_by_iteration(const spectral::SpectralLaw& teacher, const Loss& loss, double alpha,
                            double lambda, const ErmOptions& options) {
    if (options.penalty == Penalty::trace) {
        if (const auto zero = solve_zero(teacher, loss, alpha, lambda, options)) return *zero;
    }
    // The start: a square loss of the mean curvature of this one, which a softmax of beta = 1 has at about 1/6.
    const double total = teacher.second_moment();
    const Alignment prior{total, 0.5 * total, 0.5 * total};
    const double curvature =
        loss.means(prior, 1e-3, {.shifts = 2, .points = 16}).curvature / limiting_form(loss).coordinates;
    const ErmPoint guess =
        options.penalty == Penalty::trace
            ? SquareErm(teacher, limiting_form(loss), alpha).solve(lambda / curvature)
            : solve_ridge(total, teacher.mean(), limiting_form(loss), alpha, lambda / curvature);
    State x{std::max(guess.alignment.overlap, 1e-3 * total),
            std::max(guess.alignment.self_overlap, 1e-3 * total),
            std::log(std::max(guess.response, 1e-3) / curvature)};
    Iteration iteration(teacher, loss, alpha, lambda, options);
    int iterations = 0;
    bool converged = false;
    // A rule of half the points first; what the rest of them changes is an estimate of the error, from above.
    losses::Integration half = options.integration;
    half.points = std::max(1, half.points / 2);
    x = iteration.solve(x, half, iterations, converged);
    const double rough = iteration.finish(x).error;
    if (converged) x = iteration.solve(x, options.integration, iterations, converged);
    ErmPoint point = iteration.finish(x);
    point.relative_error = std::max(std::abs(rough / point.error - 1), iteration.means_error());
    point.iterations = iterations;
    point.status = !std::isfinite(point.error) ? Termination::diverged
                   : converged                 ? Termination::converged
                                               : Termination::iteration_limit;
    return point;
}

ErmPoint solve(const spectral::SpectralLaw& teacher, const Loss& loss, double alpha, double lambda,
               const ErmOptions& options) {
    if (alpha == 0) {
        ErmPoint nothing;
        nothing.regularization = lambda;
        nothing.alignment.total = nothing.error = teacher.second_moment();
        nothing.zero_fraction = 1;
        return nothing;
    }
    const auto form = loss.square_form();
    if (form || lambda == 0) {
        const SquareForm used = form ? *form : limiting_form(loss);
        return options.penalty == Penalty::trace
                   ? SquareErm(teacher, used, alpha).solve(lambda)
                   : solve_ridge(teacher.second_moment(), teacher.mean(), used, alpha, lambda);
    }
    return solve_by_iteration(teacher, loss, alpha, lambda, options);
}

void complete(ErmPoint& point, const Loss& loss, const ErmOptions& options) {
    if (point.status == Termination::exact_recovery || !std::isfinite(point.error)) return;
    point.generalization_error = loss.generalization(point.alignment, options.integration);
}

/// The lambda of least error by Brent's search in log lambda, after a look at all of its decades.
ErmPoint search_optimal(const spectral::SpectralLaw& teacher, const Loss& loss, double alpha,
                        const ErmOptions& options) {
    ErmPoint best = solve(teacher, loss, alpha, 0, options);
    if (best.status == Termination::exact_recovery || alpha == 0) return best;
    const double decade = std::numbers::ln10;
    double around = std::nan("");
    for (int k = -9; k <= 3; ++k) {
        const ErmPoint point = solve(teacher, loss, alpha, std::exp(0.5 * k * decade), options);
        if (succeeded(point.status) && !(point.error >= best.error)) {
            best = point;
            around = 0.5 * k * decade;
        }
    }
    if (std::isnan(around)) return best;
    const auto error = [&](double log_lambda) {
        const ErmPoint point = solve(teacher, loss, alpha, std::exp(log_lambda), options);
        return succeeded(point.status) ? point.error : infinity;
    };
    const auto [log_lambda, least] =
        boost::math::tools::brent_find_minima(error, around - 0.5 * decade, around + 0.5 * decade, 20);
    return least < best.error ? solve(teacher, loss, alpha, std::exp(log_lambda), options) : best;
}

}  // namespace

ErmPoint solve_erm(const spectral::SpectralLaw& teacher, const Loss& loss, double alpha,
                   double regularization, const ErmOptions& options) {
    check(teacher, alpha, regularization, options);
    ErmPoint point = solve(teacher, loss, alpha, regularization, options);
    complete(point, loss, options);
    return point;
}

ErmPoint solve_optimal_erm(const spectral::SpectralLaw& teacher, const Loss& loss, double alpha,
                           const ErmOptions& options) {
    check(teacher, alpha, 0, options);
    const auto form = loss.square_form();
    ErmPoint point = form && options.penalty == Penalty::trace && alpha > 0
                         ? SquareErm(teacher, *form, alpha).solve_optimal()
                         : search_optimal(teacher, loss, alpha, options);
    complete(point, loss, options);
    return point;
}

std::vector<ErmPoint> solve_erm_curve(const spectral::SpectralLaw& teacher, const Loss& loss,
                                      std::span<const double> alphas, std::optional<double> regularization,
                                      ErmOptions options, ThreadPool& pool,
                                      const std::function<bool(double)>& progress) {
    options.integration.pool = loss.sampled() ? &pool : nullptr;
    std::vector<ErmPoint> points(alphas.size());
    points.resize(solve_points(alphas.size(), loss.sampled(), pool, progress, [&](std::size_t i) {
        points[i] = regularization ? solve_erm(teacher, loss, alphas[i], *regularization, options)
                                   : solve_optimal_erm(teacher, loss, alphas[i], options);
    }));
    return points;
}

ErmThresholds erm_thresholds(const spectral::SpectralLaw& teacher, const Loss& loss, Penalty penalty) {
    const SquareForm form = limiting_form(loss);
    const double unit = 2 * form.coordinates, nu = form.noise_variance;
    ErmThresholds result;
    if (penalty == Penalty::frobenius) {
        (nu > 0 ? result.interpolation : result.recovery) = 1 / unit;
        return result;
    }
    const double kernel = kernel_fraction(teacher), total = teacher.second_moment();
    if (nu == 0) {
        if (kernel >= 0) result.recovery = trace_recovery_ratio(1 - kernel) / unit;
        return result;
    }
    // c = J(D, 0) with D J = E(D, 0) + nu
    const auto excess = [&](double log_noise) {
        const double noise = std::exp(log_noise);
        const auto tail = spectral::FreeConvolution(teacher, noise).above(0);
        return (thresholding_error(total, noise, 0, tail) + nu) / (noise * tail.divergence) - 1;
    };
    double low = std::log(nu), high = low;
    while (excess(low) < 0) low -= 1;
    while (excess(high) > 0) high += 1;
    if (low == high) return result;
    std::uintmax_t iterations = 200;
    const auto [a, b] = boost::math::tools::toms748_solve(
        excess, low, high, [](double x, double y) { return std::abs(x - y) < 1e-14; }, iterations);
    result.interpolation =
        spectral::FreeConvolution(teacher, std::exp(0.5 * (a + b))).above(0).divergence / unit;
    return result;
}

struct TrainedSpectrum::Impl {
    spectral::FreeConvolution spectrum;
    double gain, threshold;
    Penalty penalty;
};

TrainedSpectrum::TrainedSpectrum(const spectral::SpectralLaw& teacher, const ErmPoint& point, Penalty penalty)
    : impl_(new Impl{spectral::FreeConvolution(teacher, point.noise_variance), point.gain, point.threshold,
                     penalty}) {}

TrainedSpectrum::~TrainedSpectrum() = default;

double TrainedSpectrum::density(double s) const {
    if (impl_->penalty == Penalty::trace && s < 0) return 0;
    return impl_->spectrum.at(impl_->threshold + s / impl_->gain).density / impl_->gain;
}

std::vector<spectral::Interval> TrainedSpectrum::edges() const {
    std::vector<spectral::Interval> edges;
    for (const auto& [low, high] : impl_->spectrum.edges()) {
        const auto image = [&](double x) {
            const double s = impl_->gain * (x - impl_->threshold);
            return impl_->penalty == Penalty::trace ? std::max(s, 0.0) : s;
        };
        if (image(high) > image(low)) edges.push_back({image(low), image(high)});
    }
    return edges;
}

Record values(const ErmPoint& point) {
    return {{"alpha", point.alpha},
            {"regularization", point.regularization},
            {"estimation_error", point.error},
            {"standard_error", point.relative_error * point.error},
            {"generalization_error", point.generalization_error},
            {"training_loss", point.training_loss},
            {"zero_fraction", point.zero_fraction},
            {"overlap", point.alignment.overlap},
            {"self_overlap", point.alignment.self_overlap},
            {"trace", point.trace},
            {"objective", point.objective},
            {"noise_variance", point.noise_variance},
            {"gain", point.gain},
            {"threshold", point.threshold},
            {"iterations", point.iterations},
            {"status", to_string(point.status)}};
}

}  // namespace bayesaim::theory
