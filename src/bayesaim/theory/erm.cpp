// SPDX-License-Identifier: MIT
#include "bayesaim/theory/erm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <boost/math/tools/minima.hpp>
#include <boost/math/tools/toms748_solve.hpp>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/theory/erm_iteration.hpp"
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
    check_between("regularization", regularization, 0, losses::largest_regularization);
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
    // At a smaller lambda if Shat would be 0, or nearly; J is at most c.
    const double few = 0.05 * std::min(1.0, 2 * alpha * limiting_form(loss).coordinates);
    ErmPoint guess;
    for (double part = 1; !(guess.divergence > few) && part > 1e-3; part *= 0.5)
        guess = options.penalty == Penalty::trace
                    ? SquareErm(teacher, limiting_form(loss), alpha).solve(part * lambda / curvature)
                    : solve_ridge(total, teacher.mean(), limiting_form(loss), alpha, lambda / curvature);
    const bool usable = succeeded(guess.status) && guess.error > 0;
    return iterate_erm(teacher, loss, alpha, lambda, options, usable ? guess.alignment : prior,
                       std::max(guess.response, 1e-3) / curvature);
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
