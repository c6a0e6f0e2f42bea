// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/rectangular_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::spectral {

RectangularLaw::RectangularLaw(double width, double aspect)
    : width_(width),
      aspect_(aspect),
      longer_(std::max(aspect, 1 / aspect)),
      inverse_width_(std::min(aspect, 1.0) / width) {
    check_positive("aspect", aspect);
    check_between("aspect", aspect, 1e-3, 1e3);
    if (std::abs(aspect - 1) < 1e-6) throw_invalid("aspect of a rectangular law", "different from 1", aspect);
    if (width == std::numeric_limits<double>::infinity()) return;
    check_positive("width", width);
    check_between("width", width, 1e-6, 1e6);
}

/// Edges: d log(w^2)/dm = 1/(1+m) + 1/(b+m) + 1/(rho+m) - 1/m = 0, the outer one at m > 0, the inner one between the two
/// largest of -1, -rho and -b.
std::vector<Interval> RectangularLaw::centred_support() const {
    const double b = longer_, rho = 1 / inverse_width_;
    const auto rate = [&](double m) {
        return 1 / (1 + m) + 1 / (b + m) + (inverse_width_ > 0 ? 1 / (rho + m) : 0) - 1 / m;
    };
    const auto edge = [&](bool rising, double low, double high) {
        for (int i = 0; i < 300; ++i) {
            const double m = 0.5 * (low + high);
            if (m == low || m == high) break;
            ((rate(m) < 0) == rising ? low : high) = m;
        }
        const double m = 0.5 * (low + high);
        return std::sqrt(std::max(0.0, std::sqrt(b) * (1 + m) * (1 + m / b) * (1 + m * inverse_width_) / m));
    };
    double high = 1;
    while (rate(high) < 0) high *= 2;
    const double outer = edge(true, 0, high);
    std::array<double, 3> poles = {-1, -b, -rho};
    std::ranges::sort(poles);
    const double inner = poles[1] < poles[2] ? edge(false, poles[1], poles[2]) : 0;
    if (inner == 0) return {{-outer, outer}};
    if (rho < 1) return {{-outer, -inner}, {0, 0}, {inner, outer}};
    return {{-outer, -inner}, {inner, outer}};
}

double RectangularLaw::atomic_concentration() const {
    if (width_ >= std::min(1.0, aspect_)) return 0;
    return (1 - width_) * (1 - width_ / aspect_);
}

/// Outside the support, on the axis, the root of 1e-9 above is polished at w itself.
Complex RectangularLaw::moment(Complex w) const {
    const double b = longer_, root = std::sqrt(b), inverse = inverse_width_;
    const Complex above = w.imag() > 0 ? w : w + Complex(0, 1e-9 * (std::abs(w) + 1e-6));
    // c3 m^3 + c2 m^2 + c1 m + c0 = 0, divided by its leading coefficient
    const Complex c0 = root, c1 = root * (1 + 1 / b + inverse) - above * above;
    const double c2 = root * ((1 + 1 / b) * inverse + 1 / b), c3 = inverse / root;
    std::array<Complex, 3> roots;
    int count = 3;
    if (c3 < 1e-12 * c2) {
        count = 2;
        const Complex half = 0.5 * c1, distance = std::sqrt(half * half - c2 * c0);
        const Complex larger = -half - (std::real(std::conj(half) * distance) >= 0 ? distance : -distance);
        roots = {larger / c2, c0 / larger, 0.0};
    } else {
        // Durand and Kerner's iteration, from points around a circle that holds the roots
        const double size = 1 + std::max({std::abs(c2), std::abs(c1), std::abs(c0)}) / c3;
        for (int i = 0; i < 3; ++i)
            roots[static_cast<std::size_t>(i)] = std::polar(std::pow(size, 0.2 + 0.3 * i), 0.4 + 2.1 * i);
        for (int step = 0; step < 500; ++step) {
            double change = 0;
            for (std::size_t i = 0; i < 3; ++i) {
                const Complex m = roots[i], value = ((c3 * m + c2) * m + c1) * m + c0,
                              move = value / (c3 * (m - roots[(i + 1) % 3]) * (m - roots[(i + 2) % 3]));
                roots[i] -= move;
                change = std::max(change, std::abs(move) / (1e-300 + std::abs(roots[i])));
            }
            if (change < 1e-13) break;
        }
    }
    const auto height = [&](Complex m) { return ((1.0 + m) / above).imag(); };
    Complex m = *std::min_element(roots.begin(), roots.begin() + count,
                                  [&](Complex x, Complex y) { return height(x) < height(y); });
    double last = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 12; ++i) {
        const Complex value = root * (1.0 + m) * (1.0 + m / b) * (1.0 + inverse * m) - w * w * m;
        const Complex slope =
            root * ((1.0 + m / b) * (1.0 + inverse * m) + (1.0 + m) * (1.0 + inverse * m) / b +
                    inverse * (1.0 + m) * (1.0 + m / b)) -
            w * w;
        const Complex step = value / slope;
        const double size = std::norm(step);
        if (!(size < 0.25 * last) || size == 0) break;
        last = size;
        m -= step;
    }
    return w.imag() > 0 ? m : Complex(m.real());
}

Transform RectangularLaw::moment_transform(Complex w) const {
    const Complex m = moment(w);
    const Complex rate =
        1.0 / (1.0 + m) + 1.0 / (longer_ + m) + inverse_width_ / (1.0 + inverse_width_ * m) - 1.0 / m;
    return {m, 2.0 / (w * rate)};
}

Transform RectangularLaw::stieltjes(Complex w) const {
    const auto [m, slope] = moment_transform(w);
    const Complex g = (1.0 + m) / w;
    return {g, (slope - g) / w};
}

/// The integral of G dw = (1 + m)/2 d log(w^2):
///   m + (1-b)/2 log(1 + m/b) + (1-rho)/2 log(1 + m/rho) - log(m)/2 + log(b)/4
double RectangularLaw::log_potential(Complex w) const {
    const double b = longer_, inverse = inverse_width_;
    const Complex m = moment(w), x = inverse * m;
    const double log_width = 0.5 * std::log1p(std::norm(x) + 2 * x.real());
    const double of_width = inverse > 0 ? 0.5 * (1 - 1 / inverse) * log_width : -0.5 * m.real();
    return m.real() + 0.5 * (1 - b) * std::log(std::abs(1.0 + m / b)) + of_width -
           0.5 * std::log(std::abs(m)) + 0.25 * std::log(b);
}

RectangularCurve RectangularLaw::with_noise(double noise_variance) const {
    return {std::sqrt(aspect_) / width_, aspect_, noise_variance};
}

std::optional<ErrorPoint> RectangularLaw::known_error(double noise_variance) const {
    return with_noise(noise_variance).error();
}

std::optional<double> RectangularLaw::known_free_entropy(double inverse_noise_variance) const {
    return 0.5 * with_noise(1 / inverse_noise_variance).free_entropy();
}

}  // namespace bayesaim::spectral
