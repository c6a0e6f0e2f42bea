// SPDX-License-Identifier: MIT
#include "bayesaim/theory/erm_square.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include <boost/math/tools/toms748_solve.hpp>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::theory {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The root between low and high, where f has values of different signs.
double root_between(const std::function<double(double)>& f, double low, double high, double f_low,
                    double f_high, double tolerance) {
    if (f_low == 0) return low;
    if (f_high == 0) return high;
    std::uintmax_t iterations = 200;
    const auto close = [tolerance](double a, double b) {
        return std::abs(b - a) <= tolerance * std::max(std::abs(a), std::abs(b));
    };
    const auto [a, b] = boost::math::tools::toms748_solve(f, low, high, f_low, f_high, close, iterations);
    return 0.5 * (a + b);
}

/// The limit of E/D as D -> 0 without noise, E0(t): the eigenvalues 0, of weight 1 - rho, become a semicircle of
/// variance (1 - rho) D, which the threshold cuts at t; the others stay far above it.
double recovery_ratio_at(double kernel, double t) {
    return 1 - kernel * kernel + (1 - kernel) * kernel * t * t + kernel * kernel * SemicircleTail(t).e2;
}

/// The t of its minimum, where rho t = (1 - rho) e1(t); e1 decreases.
double least_recovery_ratio(double kernel) {
    const auto slope = [kernel](double t) { return (1 - kernel) * t - kernel * SemicircleTail(t).e1; };
    return root_between(slope, 0, 2, slope(0), slope(2), 1e-15);
}

}  // namespace

SemicircleTail::SemicircleTail(double t) {
    if (t >= 2) return;
    const double u = std::max(t, -2.0), w = std::sqrt((2 - u) * (2 + u)), pi = std::numbers::pi;
    e0 = (std::acos(0.5 * u) - 0.25 * u * w) / pi;
    const double first = w * w * w / (6 * pi), second = e0 + u * w * w * w / (8 * pi);  // of x and x^2
    e1 = first - t * e0;
    e2 = second - 2 * t * first + t * t * e0;
    divergence = second - t * first;
}

double kernel_fraction(const spectral::SpectralLaw& law) {
    const double mean = law.mean(), scale = std::sqrt(law.second_moment());
    if (law.centred_support().front().low + mean < -1e-9 * scale) return -1;
    // v Im G = atom + O(v^2) at a distance v from it; O(sqrt v), which is eliminated, where the density diverges
    const auto seen = [&](double v) { return -v * law.stieltjes({-mean, v}).value.imag(); };
    const double v = 1e-8 * scale, weight = 2 * seen(v / 4) - seen(v);
    return weight > 1e-4 ? std::min(weight, 1.0) : 0;
}

double thresholding_error(double total, double noise, double threshold, const spectral::TailMoments& tail) {
    return total - tail.second - 2 * threshold * tail.first + 2 * noise * tail.divergence;
}

double trace_recovery_ratio(double rho) {
    check_positive("fraction of nonzero eigenvalues", rho);
    if (rho >= 1) return 1;
    return recovery_ratio_at(1 - rho, least_recovery_ratio(1 - rho));
}

SquareErm::SquareErm(const spectral::SpectralLaw& teacher, const losses::SquareForm& form, double alpha)
    : law_(&teacher),
      alpha_(alpha),
      coordinates_(form.coordinates),
      c_(2 * alpha * form.coordinates),
      nu_(form.noise_variance),
      total_(teacher.second_moment()),
      kernel_(kernel_fraction(teacher)),
      guess_((total_ + nu_) / c_) {}

SquareErm::Point SquareErm::point(double noise, double threshold) const {
    ++evaluations_;
    const spectral::FreeConvolution spectrum(*law_, noise);
    Point result{noise, threshold, spectrum.above(threshold)};
    const spectral::TailMoments& tail = result.tail;
    // The difference of large numbers is faster.
    result.error = noise > 1e-3 * total_ ? thresholding_error(total_, noise, threshold, tail)
                                         : spectrum.thresholding_error(threshold);
    result.error_by_noise =
        tail.divergence - 2 * threshold * tail.hilbert + 2 * noise * tail.divergence_growth;
    result.error_by_threshold = 2 * threshold * tail.mass - 4 * noise * tail.hilbert;
    return result;
}

/// The point of the curve with theta = u sqrt(D): Newton for log((E + nu)/(c D)) = 0 in log D, between bounds. No point if
/// D is infinite, or 0: then the lambda looked for is at a larger u.
SquareErm::Point SquareErm::at(double u, double tolerance) const {
    if (c_ <= SemicircleTail(u).e2) return {};  // D is infinite
    if (nu_ == 0 && kernel_ >= 0) {
        const double limit = kernel_ > 0 ? recovery_ratio_at(kernel_, u / std::sqrt(kernel_)) : 1 + u * u;
        if (c_ >= limit) return {};  // D is 0
    }
    // From roundoff to the largest that the engine takes
    double low = std::log(1e-22 * total_), high = std::log(1e25 * (total_ + nu_)), x = std::log(guess_);
    for (int iteration = 0; iteration < 200; ++iteration) {
        const double noise = std::exp(x), root = std::sqrt(noise);
        const Point now = point(noise, u * root);
        const double excess = std::log((now.error + nu_) / (c_ * noise));
        if (std::abs(excess) <= tolerance || high - low < 1e-15 * std::abs(x)) {
            guess_ = noise;
            return now;
        }
        (excess > 0 ? low : high) = x;
        const double slope =
            (noise * now.error_by_noise + 0.5 * now.threshold * now.error_by_threshold) / (now.error + nu_) -
            1;
        const double next = x - excess / slope;
        x = slope < 0 && next > low && next < high ? next : 0.5 * (low + high);
    }
    return {};
}

/// Newton in log D and u on log((E + nu)/(c D)) = 0 and log(theta (c - J)/lambda) = 0, or c = J as lambda -> 0+.
SquareErm::Point SquareErm::polished(const Point& start, double lambda) const {
    Point now = start;
    double x = std::log(now.noise), u = now.threshold / std::sqrt(now.noise), last = infinity;
    for (int iteration = 0; iteration < 60; ++iteration) {
        const double noise = now.noise, root = std::sqrt(noise), theta = now.threshold,
                     gap = c_ - now.tail.divergence, level = now.error + nu_;
        const double first = std::log(level / (c_ * noise)),
                     second = lambda > 0 ? std::log(theta * gap / lambda) : gap / c_;
        const double size = std::abs(first) + std::abs(second);
        if (!(size < infinity)) return {};
        // J has the roundoff of H times x: 1e-16/sqrt(D).
        const double roundoff = 1e-15 * std::sqrt(1 + total_ / noise);
        if (size < 1e-14 || (size < 1e-11 + 100 * roundoff && size >= last)) return now;
        last = size;
        const double j_theta = -2 * now.tail.hilbert, scale = lambda > 0 ? -1 / gap : -1 / c_,
                     j_x = noise * now.tail.divergence_growth + 0.5 * theta * j_theta, j_u = root * j_theta;
        const double a = (noise * now.error_by_noise + 0.5 * theta * now.error_by_threshold) / level - 1,
                     b = root * now.error_by_threshold / level, c = (lambda > 0 ? 0.5 : 0) + scale * j_x,
                     d = (lambda > 0 ? 1 / u : 0) + scale * j_u;
        const double determinant = a * d - b * c;
        double dx = -(d * first - b * second) / determinant, du = -(a * second - c * first) / determinant;
        const double part = std::min(1.0, 0.5 / std::max(std::abs(dx) / 6, std::abs(du) / u));
        x += part * dx;
        u += part * du;
        if (!std::isfinite(x) || !(u > 0)) return {};
        now = point(std::exp(x), u * std::exp(0.5 * x));
    }
    return {};
}

SquareErm::Point SquareErm::find(double lambda) const {
    constexpr double rough = 1e-3, exact = 4e-15;
    // As lambda -> 0 the sign of c - J decides.
    const auto excess = [&](double u, double tolerance) {
        const Point point = at(u, tolerance);
        if (point.noise == 0) return -1.0;
        return lambda > 0 ? regularization(point) / lambda - 1 : c_ - point.tail.divergence;
    };
    double low = 0, high = 1;
    while (excess(high, rough) <= 0) {
        low = high;
        high *= 2;
        if (high > 1e20) return {};
    }
    while (high - low > 0.05 * high) {
        const double middle = low > 0 ? std::sqrt(low * high) : 0.5 * high;
        (excess(middle, rough) > 0 ? high : low) = middle;
        if (high < 1e-12) break;
    }
    if (const Point start = at(high, rough); start.noise > 0) {
        if (const Point point = polished(start, lambda); point.noise > 0) return point;
    }
    const auto f = [&](double u) { return excess(u, exact); };
    low *= 0.9;
    high *= 1.1;
    const double f_low = f(low), f_high = f(high);
    if (!(f_low < 0 && f_high > 0)) return {};
    return at(root_between(f, low, high, f_low, f_high, 4e-15), exact);
}

ErmPoint SquareErm::finish(const Point& point, double lambda, bool interpolates) const {
    const spectral::TailMoments& tail = point.tail;
    ErmPoint result;
    result.alpha = alpha_;
    result.regularization = lambda;
    result.error = c_ * point.noise - nu_;
    // Without noise both forms are the same, but this one does not cancel if it is close to 0.
    if (nu_ > 0) result.error = point.error;
    result.alignment = {total_, tail.second + point.threshold * tail.first - point.noise * tail.divergence,
                        tail.second};
    result.zero_fraction = std::max(1 - tail.mass, 0.0);
    result.trace = tail.first;
    result.gain = 1;
    result.noise_variance = point.noise;
    result.threshold = point.threshold;
    result.divergence = tail.divergence;
    result.curvature = interpolates ? 0 : c_ - tail.divergence;
    result.response = interpolates ? infinity : tail.divergence / result.curvature;
    result.training_loss = coordinates_ * (result.error + nu_) * std::pow(result.curvature / c_, 2);
    result.objective = alpha_ * result.training_loss + lambda * tail.first;
    result.iterations = evaluations_;
    if (point.noise == 0) {  // none was found
        result.status = Termination::iteration_limit;
        result.error = total_;
        result.alignment = {total_, 0, 0};
    }
    return result;
}

ErmPoint SquareErm::recovered(double lambda) const {
    ErmPoint result;
    result.alpha = alpha_;
    result.regularization = lambda;
    result.alignment = {total_, total_, total_};
    result.trace = law_->mean();
    result.gain = 1;
    // The rank does not go to rho: some eigenvalues vanish with lambda, but are not 0.
    if (kernel_ > 0) {
        const auto f = [&](double t) { return recovery_ratio_at(kernel_, t) - c_; };
        const double least = least_recovery_ratio(kernel_);
        double high = 2;
        while (f(high) < 0) high *= 2;
        const double t = f(least) < 0 ? root_between(f, least, high, f(least), f(high), 1e-15) : least;
        result.zero_fraction = kernel_ * (1 - SemicircleTail(t).e0);
    }
    result.status = Termination::exact_recovery;
    return result;
}

ErmPoint SquareErm::solve(double lambda) const {
    evaluations_ = 0;
    // The error is of the order lambda^2; below roundoff it is the limit.
    constexpr double nothing = 1e-13;
    if (lambda <= nothing * c_ * std::sqrt(total_) && nu_ == 0 && kernel_ >= 0 &&
        c_ >= trace_recovery_ratio(1 - kernel_))
        return recovered(lambda);
    if (lambda == 0) {
        // Least squares on the cone, if it does not interpolate.
        const Point point = at(0, 4e-15);
        if (point.noise > 0 && c_ > point.tail.divergence) return finish(point, 0, false);
    }
    return finish(find(lambda), lambda, lambda == 0);
}

ErmPoint SquareErm::solve_optimal() const {
    const ErmPoint ridgeless = solve(0);
    if (ridgeless.status != Termination::converged) return ridgeless;
    // E may have two minima along the curve, at 0+ and inside: all of it is looked at, up to where Shat is 0.
    const double first = ridgeless.threshold / std::sqrt(ridgeless.noise_variance),
                 last = first + 2 + 4 / std::sqrt(c_);
    constexpr int steps = 40;
    constexpr double exact = 4e-15;
    const auto u_of = [&](double k) { return first + (last - first) * std::pow(k / steps, 2); };
    double least = ridgeless.error;
    int best = 0;
    for (int k = 1; k <= steps; ++k) {
        const Point point = at(u_of(k), 1e-6);
        if (point.noise > 0 && c_ * point.noise - nu_ < least) {
            least = c_ * point.noise - nu_;
            best = k;
        }
    }
    if (best == 0) return ridgeless;
    // At an extremum of E along the curve dE/dtheta = 0 at fixed D.
    const auto slope = [&](double u) { return at(u, exact).error_by_threshold; };
    double u = u_of(best);
    const double low = u_of(best - 1), high = u_of(best + 1), f_low = slope(low), f_high = slope(high);
    if (f_low < 0 && f_high > 0) u = root_between(slope, low, high, f_low, f_high, 1e-13);
    const Point point = at(u, exact);
    return finish(point, regularization(point), false);
}

}  // namespace bayesaim::theory
