// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/rectangular_curve.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::spectral {
namespace {

constexpr double pi = std::numbers::pi;
constexpr int fewest = 100, most = 1600;      // nodes of a piece: doubled in between
constexpr double wide = 1.15;                 // tau0/s1: above, tau has the digits of a whole bulk
constexpr double narrow = 1e-3;               // tau0/s1 - 1: below, t is nearly on a circle
constexpr double near_the_axis = 0.3;         // (Im z/Re z)^2 of z = 1/t of a pair of complex edges
constexpr double slope_of_large_noise = 1e6;  // beyond, the slope is that of independent entries, to 1/D

/// The sign change of f between low and high, to the last bit. f may vanish at the ends.
template <class Function>
double sign_change(bool rising, Function f, double low, double high) {
    for (int i = 0; i < 300; ++i) {
        const double middle = 0.5 * (low + high);
        if (middle == low || middle == high) break;
        ((f(middle) < 0) == rising ? low : high) = middle;
    }
    return 0.5 * (low + high);
}

/// A step of Newton's method for value = 0, or the middle of the bracket if it leads out of it.
double guarded(double at, double value, double slope, double low, double high) {
    const double next = at - value / slope;
    return next > std::min(low, high) && next < std::max(low, high) ? next : 0.5 * (low + high);
}

}  // namespace

RectangularCurve::RectangularCurve(double inverse_width, double aspect, double noise_variance)
    : inverse_width_(inverse_width),
      root_aspect_(std::sqrt(std::max(aspect, 1 / aspect))),
      sides_(root_aspect_ + 1 / root_aspect_),
      noise_(noise_variance) {
    check_non_negative("inverse width", inverse_width);
    check_positive("aspect", aspect);
    check_positive("noise variance", noise_variance);
    find_edges();
    find_pieces();
    constexpr double tolerance = 2e-13;
    for (int nodes = fewest; nodes <= most; nodes *= 2) {
        sums_ = sums_with(nodes);
        if (std::abs(sums_.mass - 1) <= tolerance &&
            std::abs(second_moment() / (1 + noise_) - 1) <= tolerance)
            break;
    }
}

Complex RectangularCurve::excess(Complex t) const { return t / (1.0 - inverse_width_ * t) + noise_ * t; }

/// d(w^2)/dt
double RectangularCurve::edge_function(double t) const {
    const double h = 1 - inverse_width_ * t;
    return (noise_ - 1 / t) * (noise_ + 1 / t) + (sides_ * inverse_width_ + 2 * noise_) / (h * h) +
           (1 + inverse_width_ * t) / (h * h * h);
}

double RectangularCurve::square_at(double t) const {
    const double c = excess(t).real();
    return (1 + root_aspect_ * c) * (1 + c / root_aspect_) / t;
}

/// Of the angle of t at |t| = tau. 1/V = (1/tau^2 - D^2)/(h + root), the positive root of the quadratic.
double RectangularCurve::cosine(double tau) const {
    const double kappa = inverse_width_, D = noise_, quarter = std::sqrt(root_aspect_);
    const double root = std::hypot(0.5 * (root_aspect_ - 1 / root_aspect_) * kappa,
                                   (quarter - 1 / quarter) * std::sqrt(D * kappa), 1 / tau + D * kappa * tau);
    const double v = (0.5 * sides_ * kappa + D + root) / ((1 / tau - D) * (1 / tau + D));
    return (1 + std::pow(kappa * tau, 2) - v) / (2 * kappa * tau);
}

void RectangularCurve::find_edges() {
    const double kappa = inverse_width_, D = noise_;
    const auto edge = [this](double t) { return edge_function(t); };
    // The edge function rises on (0, 1/kappa).
    const double high = std::min(1 / D, 1 / kappa);
    double low = high;
    while (edge_function(low *= 0.5) > 0) {
    }
    first_ = sign_change(true, edge, low, high * (1 - 1e-15));
    // C = c: -D kappa t^2 + (1 + D + kappa c) t - c = 0, a negative and a positive root
    struct Pair {
        double negative, positive;
    };
    const auto where = [&](double c) {
        const double a = -D * kappa, linear = 1 + D + kappa * c,
                     root = std::sqrt(linear * linear + 4 * a * c);
        const double half = linear >= 0 ? -0.5 * (linear + root) : 0.5 * (root - linear);
        return half < 0 ? Pair{-c / half, half / a} : Pair{half / a, -c / half};
    };
    // Zeros of w^2: the inner edge lies between the negative ones, an edge of no meaning between the positive ones.
    const Pair zero = where(-1 / root_aspect_), other = where(-root_aspect_);
    zero_ = zero.negative;
    last_ = -(root_aspect_ > 1 ? sign_change(false, edge, other.negative, zero.negative) : zero.negative);
    if (kappa == 0) return;
    const double meaningless =
        root_aspect_ > 1 ? sign_change(true, edge, other.positive, zero.positive) : zero.positive;
    // The edge function is a polynomial of degree 5 in z = 1/t; what is left is a quadratic.
    const double z1 = 1 / first_, ze = 1 / meaningless, z0 = -1 / last_;
    const double half_sum = 0.5 * (3 * kappa - z1 - ze - z0),
                 product = -D * D * kappa * kappa * kappa / (z1 * ze * z0),
                 distance = (half_sum * half_sum - product) / (half_sum * half_sum);
    if (!(half_sum > 0)) return;
    const double middle = 1 / std::sqrt(product);
    if (distance > 0 && middle > zero.positive && edge_function(middle) < 0) {
        double top = 1 / D;
        while (edge_function(top) <= 0 && top < 1e3 / D) top *= 2;
        gap_low_ = sign_change(false, edge, zero.positive, middle);
        gap_high_ = sign_change(true, edge, middle, top);
    } else if (std::abs(distance) < near_the_axis && first_ < middle && middle < last_) {
        nearly_ = middle;
    } else if (distance < 0 && 1.01 * first_ < middle && 1.01 * middle < last_) {
        nearly_ = last_ > wide * first_ ? middle : 0;
    }
}

void RectangularCurve::find_pieces() {
    const auto by_tau = [&](double low, double high) { pieces_.push_back({std::log(low), std::log(high)}); };
    const auto by_angle = [&](double tau, bool edge) {
        const double angle = edge ? 0 : std::acos(std::clamp(cosine(tau), -1.0, 1.0));
        pieces_.push_back({.low = angle, .high = pi, .angle = true, .least_tau = tau});
    };
    if (gap_high_ > 0) {
        by_tau(first_, gap_low_);
        pieces_.front().high_edge = edge_slope(gap_low_);
        by_angle(gap_high_, true);
    } else if (last_ > wide * first_) {
        // Rules are dense at ends of pieces: a split where bulks nearly merge, or in the middle
        const double split = nearly_ > 0 ? nearly_ : std::sqrt(first_ * last_);
        by_tau(first_, split);
        // Towards the inner edge, which may be close to 0, the angle has more digits.
        constexpr double behind = -0.5;
        double turn = split;
        if (cosine(split) > behind) {
            turn = sign_change(
                false, [&](double tau) { return cosine(tau) - behind; }, split, last_);
            by_tau(split, turn);
        }
        by_angle(turn, false);
    } else if (nearly_ > 0) {
        by_tau(first_, nearly_);
        by_angle(nearly_, false);
    } else {
        by_angle(first_, true);
    }
    if (!pieces_.front().angle) pieces_.front().low_edge = edge_slope(first_);
    for (std::size_t i = 0; i + 1 < pieces_.size(); ++i) {
        Piece& piece = pieces_[i];
        piece.least_w = gap_high_ > 0 ? std::sqrt(square_at(gap_low_))
                                      : values(point(piece, piece.high - piece.low, 0)).w;
    }
}

/// d cos/d log(tau) at an edge, t = tau.
double RectangularCurve::edge_slope(double tau) const { return tau_slopes(tau, 1).cosine; }

/// The curve F(tau, cos) = 0 near a point: d cos/d log(tau).
RectangularCurve::Slopes RectangularCurve::tau_slopes(double tau, double c) const {
    const double kappa = inverse_width_, x = kappa * tau, v = 1 + x * (x - 2 * c),
                 a = sides_ * kappa + 2 * noise_, by_v = a / (v * v) + 2 * (1 - x * x) / (v * v * v);
    const double by_tau = 2 / (tau * tau * tau) - 2 * kappa * x / (v * v) - by_v * 2 * kappa * (x - c);
    return {-by_tau / (by_v * 2 * kappa), by_tau, by_v};
}

double RectangularCurve::tau_at(double angle, double least_tau) const {
    const double kappa = inverse_width_, D = noise_, one_less = 2 * std::pow(std::sin(0.5 * angle), 2),
                 c = std::cos(angle);
    const auto step_from = [&](double tau) {
        const double h = 1 - kappa * tau, v = h * h + 2 * kappa * tau * one_less,
                     dv = 2 * kappa * (one_less - h), x = kappa * tau, a = sides_ * kappa + 2 * D;
        const double value = (D - 1 / tau) * (D + 1 / tau) + a / v + (1 - x * x) / (v * v);
        const double slope = 2 / (tau * tau * tau) - a / (v * v) * dv - 2 * kappa * x / (v * v) -
                             2 * (1 - x * x) / (v * v * v) * dv;
        return value / slope;
    };
    double low = least_tau, high = last_, tau = low + (high - low) * 0.5 * one_less;
    const bool circle = high - low < narrow * low;  // the cosine has lost its digits, Newton needs no bracket
    if (!circle) {
        for (int i = 0; i < 10; ++i) {
            tau = 0.5 * (low + high);
            (cosine(tau) > c ? low : high) = tau;
        }
    }
    for (int i = 0; i < 60; ++i) {
        double next = tau - step_from(tau);
        if (!circle && !(next >= low && next <= high)) {
            next = 0.5 * (low + high);
            (cosine(next) > c ? low : high) = next;
        }
        const double change = std::abs(next - tau);
        tau = next;
        if (change <= 4e-16 * tau) break;
    }
    return tau;
}

RectangularCurve::Point RectangularCurve::point(const Piece& piece, double from_low, double from_high) const {
    const double at = from_low < from_high ? piece.low + from_low : piece.high - from_high;
    if (piece.angle) {
        const double tau = tau_at(at, piece.least_tau), x = inverse_width_ * tau;
        const Slopes slopes = tau_slopes(tau, std::cos(at));
        const double tau_slope = slopes.by_v * 2 * x * std::sin(at) / slopes.by_tau;
        const Complex t = std::polar(tau, -at);
        return {t, t * Complex(tau_slope / tau, -1)};
    }
    const double tau = std::exp(at), c = std::clamp(cosine(tau), -1.0, 1.0);
    // Next to an edge 1 - cos is proportional to the distance, and has no digits as a difference.
    constexpr double next_to = 1e-9;
    double one_less = 1 - c;
    if (piece.low_edge != 0 && from_low < next_to) one_less = -piece.low_edge * from_low;
    if (piece.high_edge != 0 && from_high < next_to) one_less = piece.high_edge * from_high;
    const double sine = std::sqrt(std::max(0.0, one_less * (2 - one_less)));
    const Complex t = tau * Complex(c, -sine);
    return {t, sine > 0 ? t * Complex(1, tau_slopes(tau, c).cosine / sine) : Complex(0)};
}

RectangularCurve::Values RectangularCurve::values(const Point& at) const {
    const Complex t = at.t, c = excess(t), one = 1.0 + root_aspect_ * c, two = 1.0 + c / root_aspect_;
    const Complex h = 1.0 - inverse_width_ * t;
    const Complex rate = noise_ * noise_ - 1.0 / (t * t) + (sides_ * inverse_width_ + 2 * noise_) / (h * h) +
                         (1.0 + inverse_width_ * t) / (h * h * h);
    const double w = std::sqrt(std::abs(one) * std::abs(two) / std::abs(t));
    return {w, (rate * at.t_slope).real() / (2 * w), c, one / w, two / w};
}

/// f w = Re[1/t - D^2 t + (k + s) s/t] with s = t/(1 - kappa t). In a bulk Re(1/t - D^2 t) = Re t (1/tau^2 - D^2), and the
/// equation of the curve gives the bracket without a difference.
double RectangularCurve::denoised(Complex t, double w) const {
    const Complex inverse = 1.0 / (1.0 - inverse_width_ * t);
    double bracket = 0;
    if (t.imag() == 0) {
        bracket = (1 / t.real() - noise_) * (1 / t.real() + noise_);
    } else {
        const double v = std::norm(inverse), x = inverse_width_ * std::abs(t);
        bracket = (sides_ * inverse_width_ + 2 * noise_) * v + (1 - x) * (1 + x) * v * v;
    }
    return (t.real() * bracket + ((sides_ + t * inverse) * inverse).real()) / w;
}

/// int log|w - x| dmu_D, the integral of g1 dw:
///   Re[sqrt(b) C + (1-b)/2 log(1 + C/sqrt(b)) - log(t)/2 + sqrt(b)/(2 kappa) log(1 - kappa t) - sqrt(b) D t/2]
double RectangularCurve::potential(Complex t) const {
    const double b = root_aspect_ * root_aspect_, kappa = inverse_width_;
    const Complex c = excess(t), x = kappa * t;
    const double log_h = kappa == 0 ? -t.real() : 0.5 * std::log1p(std::norm(x) - 2 * x.real()) / kappa;
    return root_aspect_ * c.real() + 0.5 * (1 - b) * std::log(std::abs(1.0 + c / root_aspect_)) -
           0.5 * std::log(std::abs(t)) + 0.5 * root_aspect_ * (log_h - noise_ * t.real());
}

/// Along a bulk int |g2|^2 dmu_D changes with D by dg at fixed w. From C_t t_D = -C_t (k + 2 C)/(dw^2/dt),
///   dg1 dw = sqrt(b) (t dw - C_t (k + 2 C) dt/(2 w))/w,   dg2 = dg1/b,
/// which is regular at edges.
RectangularCurve::Sums RectangularCurve::sums_with(int nodes) const {
    constexpr double reach = 3.2;  // exp(-pi sinh(reach)) is a rounding
    const double step = 2 * reach / nodes;
    Sums sums;
    for (const Piece& piece : pieces_) {
        const double length = piece.high - piece.low;
        for (int j = 0; j <= nodes; ++j) {
            const double x = -reach + j * step, stretch = pi * std::sinh(x);
            const double above = 1 / (1 + std::exp(-stretch)), below = 1 / (1 + std::exp(stretch));
            const double weight = length * step * pi * std::cosh(x) * above * below;
            const Point now = point(piece, length * above, length * below);
            if (!(now.t.imag() < 0)) continue;
            const Values to = values(now);
            const double dw = -weight * to.w_slope, density = -to.g1.imag() / pi,  // w falls
                mass = 2 * density * dw;
            const Complex h = 1.0 - inverse_width_ * now.t, c_slope = 1.0 / (h * h) + noise_;
            const Complex moved =
                (now.t * dw + c_slope * (sides_ + 2.0 * to.c) * now.t_slope * weight / (2 * to.w)) / to.w;
            const Complex one_moved = root_aspect_ * moved, two_moved = moved / root_aspect_;
            sums.mass += mass;
            sums.square += mass * to.w * to.w;
            sums.resolvent += mass * std::norm(to.g2);
            sums.resolvent_slope += 2 * (-one_moved.imag() / pi * std::norm(to.g2) +
                                         2 * density * (to.g2 * std::conj(two_moved)).real());
            sums.overlap += mass * std::pow(denoised(now.t, to.w), 2);
            sums.energy += mass * potential(now.t);
        }
    }
    return sums;
}

double RectangularCurve::mass() const { return sums_.mass; }

double RectangularCurve::second_moment() const { return sums_.square / root_aspect_; }

ErrorPoint RectangularCurve::error() const {
    const double D = noise_, share = root_aspect_ * D * sums_.resolvent;
    const double error = D < 1 ? D * (1 - share) : 1 - sums_.overlap / root_aspect_;
    const double slope = D > slope_of_large_noise
                             ? 1 / (1 + D) / (1 + D)
                             : 1 - 2 * share - root_aspect_ * D * D * sums_.resolvent_slope;
    return {error, slope};
}

/// The constant makes I_in(0) = 0: noise alone has int log|x| = l + log(D)/2, l = -1/2 + (1-b)/2 log(1 - 1/b) + log(b)/4,
/// and Sigma = -1/4 + (1-b)/2 (l - log(b)/4) + log(D)/2.
double RectangularCurve::free_entropy() const {
    const double b = root_aspect_ * root_aspect_, more = b - 1;
    const double noise_log = -0.5 + 0.25 * std::log(b) - (more > 0 ? 0.5 * more * std::log(more / b) : 0.0);
    const double constant = -0.25 + 0.5 * more * (noise_log + 0.25 * std::log(b));
    const double log_mean = more > 0 ? potential(zero_) : 0;
    return 0.5 / noise_ + 0.5 * std::log(noise_) - (sums_.energy + more * log_mean - constant) / b;
}

std::vector<Interval> RectangularCurve::edges() const {
    const auto at = [this](double t) { return std::sqrt(std::max(0.0, square_at(t))); };
    if (gap_high_ == 0) return {{at(-last_), at(first_)}};
    return {{at(-last_), at(gap_high_)}, {at(gap_low_), at(first_)}};
}

/// t real between low and high, where w falls from low to high.
SpectrumPoint RectangularCurve::outside(double low, double high, double w) const {
    double t = low > 0 ? std::sqrt(low * high) : 0.5 * (low + high);
    for (int i = 0; i < 200; ++i) {
        const double value = square_at(t) - w * w;
        (value > 0 ? low : high) = t;
        const double next = guarded(t, value, edge_function(t), low, high), change = std::abs(next - t);
        t = next;
        if (change <= 2e-16 * std::abs(t)) break;
    }
    const double g1 = (1 + root_aspect_ * excess(t).real()) / w;
    return {0, g1, denoised(t, w)};
}

SpectrumPoint RectangularCurve::at(double singular_value) const {
    const double w = std::abs(singular_value);
    const auto reflected = [&](SpectrumPoint point) {
        if (singular_value < 0) point = {point.density, -point.hilbert, -point.denoised};
        return point;
    };
    if (w == 0) return {};
    const std::vector<Interval> bulks = edges();
    if (w >= bulks.back().high) {
        // w^2 > 1/t next to t = 0
        return reflected(outside(std::min(0.5 * first_, 1 / (w * w)), first_, w));
    }
    if (w <= bulks.front().low) return reflected(outside(-last_, zero_, w));
    if (bulks.size() == 2 && w >= bulks[0].high && w <= bulks[1].low)
        return reflected(outside(gap_low_, gap_high_, w));
    // w falls along the pieces.
    std::size_t index = 0;
    while (index + 1 < pieces_.size() && w < pieces_[index].least_w) ++index;
    const Piece& piece = pieces_[index];
    double low = piece.low, high = piece.high, x = 0.5 * (low + high);
    Point now{};
    Values to{};
    for (int i = 0; i < 100; ++i) {
        now = point(piece, x - piece.low, piece.high - x);
        to = values(now);
        (to.w > w ? low : high) = x;
        const double next = guarded(x, to.w - w, to.w_slope, low, high), change = std::abs(next - x);
        if (change <= 1e-15 * (piece.high - piece.low)) break;
        x = next;
    }
    return reflected({-to.g1.imag() / pi, to.g1.real(), denoised(now.t, w)});
}

}  // namespace bayesaim::spectral
