// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/bilinear_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/spectral/bilinear_curve.hpp"

namespace bayesaim::spectral {
namespace {

/// The roots of x^3 + a x^2 + b x + c = 0, to some digits.
std::array<Complex, 3> cubic_roots(Complex a, Complex b, Complex c) {
    const Complex third = a / 3.0, p = b / 3.0 - third * third,
                  q = third * (third * third - 0.5 * b) + 0.5 * c;
    const Complex root = std::sqrt(q * q + p * p * p);
    const Complex larger = std::norm(root - q) >= std::norm(root + q) ? root - q : -root - q;
    if (larger == 0.0) return {-third, -third, -third};
    Complex u = std::pow(larger, 1.0 / 3);
    const Complex turn(-0.5, 0.5 * std::numbers::sqrt3);
    std::array<Complex, 3> roots;
    for (Complex& x : roots) {
        x = u - p / u - third;
        u *= turn;
    }
    return roots;
}

}  // namespace

BilinearLaw::BilinearLaw(double width) : width_(width) {
    check_positive("width", width);
    check_between("width", width, 1e-6, 1e6);
    const double s = std::sqrt(width * (width + 8));
    const auto edge = [&](double y) {
        return Edge{std::abs(1 / std::sqrt(y) + width * std::sqrt(y) / (width - y)), width * y / (width - y)};
    };
    outer_ = edge(2 * width / (2 + width + s));
    if (width < 1) inner_ = edge(0.5 * width * (2 + width + s) / (1 - width));
}

std::vector<Interval> BilinearLaw::centred_support() const {
    if (inner_.w > 0) return {{-outer_.w, -inner_.w}, {0, 0}, {inner_.w, outer_.w}};
    return {{-outer_.w, outer_.w}};
}

double BilinearLaw::atomic_concentration() const { return width_ < 1 ? std::pow(1 - width_, 2) : 0; }

/// Beyond the outer edge m falls from its value there to 0, in the gap from -rho at the atom to its value at the inner
/// edge: a bracket for Newton.
double BilinearLaw::moment_outside(double u) const {
    double low = u > outer_.w ? 0 : inner_.m, high = u > outer_.w ? outer_.m : -width_;
    const bool rising = u < outer_.w;  // whether the polynomial is negative at the lower end
    double m = u > outer_.w ? std::min(1 / (u * u), 0.5 * outer_.m)
                            : std::max(-width_ - std::pow(width_ * u / (1 - width_), 2), 0.5 * (low + high));
    for (int i = 0; i < 100; ++i) {
        const double one = 1 + m, value = one * one * (m + width_) - width_ * u * u * m;
        ((value < 0) == rising ? low : high) = m;
        double next = m - value / (one * (2 * (m + width_) + one) - width_ * u * u);
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        const double step = std::abs(next - m);
        m = next;
        if (step <= 2e-16 * std::abs(m)) break;
    }
    return m;
}

Complex BilinearLaw::moment(Complex w) const {
    const double u = std::abs(w.real());
    const bool outside = u > outer_.w || u < inner_.w;
    Complex m;
    if (outside && w.imag() < 1e-6 * std::max(u, 1e-3 * outer_.w)) {
        m = moment_outside(u);
        if (w.imag() == 0) return m;
    } else {
        const auto roots = cubic_roots(2 + width_, 1 + 2 * width_ - width_ * w * w, width_);
        const auto height = [&](Complex root) { return ((1.0 + root) / w).imag(); };
        m = *std::min_element(roots.begin(), roots.end(),
                              [&](Complex a, Complex b) { return height(a) < height(b); });
    }
    // Newton for (1 + m)^2 (m + rho) - rho w^2 m = 0, while steps shrink.
    double last = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 8; ++i) {
        const Complex one = 1.0 + m, value = one * one * (m + width_) - width_ * w * w * m,
                      step = value / (one * (2.0 * (m + width_) + one) - width_ * w * w);
        const double size = std::norm(step);
        if (!(size < 0.25 * last) || size == 0) break;
        last = size;
        m -= step;
        if (size < 1e-20 * std::norm(m)) break;
    }
    return m;
}

/// d log(w^2)/dm = 2/(1+m) + 1/(m+rho) - 1/m. On the axis it is negative, and roundings must not change that at an edge,
/// where it is 0.
Complex BilinearLaw::moment_slope(Complex w, Complex m) const {
    const Complex one = 2.0 / (1.0 + m), two = 1.0 / (m + width_), three = 1.0 / m;
    Complex rate = one + two - three;
    if (w.imag() == 0)
        rate = std::min(rate.real(), -1e-9 * (std::abs(one) + std::abs(two) + std::abs(three)));
    return 2.0 / (w * rate);
}

Transform BilinearLaw::stieltjes(Complex w) const {
    const Complex m = moment(w), g = (1.0 + m) / w;
    return {g, (moment_slope(w, m) - g) / w};
}

Transform BilinearLaw::moment_transform(Complex w) const {
    const Complex m = moment(w);
    return {m, moment_slope(w, m)};
}

double BilinearLaw::log_potential(Complex w) const {
    const Complex m = moment(w), g = (1.0 + m) / w, x = g * g / width_;
    return m.real() - 0.5 * std::log(std::norm(g)) + 0.25 * width_ * std::log1p(std::norm(x) - 2 * x.real());
}

// The curve has its digits between these; the engine knows how to go on outside. Values of the denoiser are differences
// that lose digits sooner than the error.
constexpr double smallest_noise = 1e-10, largest_noise = 1e4, largest_noise_of_bulks = 100;

std::optional<ErrorPoint> BilinearLaw::known_error(double noise_variance) const {
    if (noise_variance < smallest_noise || noise_variance > largest_noise) return std::nullopt;
    return BilinearCurve(width_, noise_variance).error();
}

std::vector<CurveBulk> BilinearLaw::known_bulks(double noise_variance) const {
    if (noise_variance < smallest_noise || noise_variance > largest_noise_of_bulks) return {};
    return BilinearCurve(width_, noise_variance).bulks();
}

}  // namespace bayesaim::spectral
