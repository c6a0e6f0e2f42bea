// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/bump_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::spectral {
namespace {

constexpr std::size_t lanes = 8;  // bumps that are summed side by side
using Lanes = std::array<double, lanes>;

double total(const Lanes& sums) {
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

/// s = (u - 2b)^{1/2} (u + 2b)^{1/2} for Im u >= 0: Im s >= 0, and Re s has the sign of Re u.
struct Root {
    double re, im, norm;  // norm = |s|^2
};
inline Root root(double a, double v, double radius) {
    const double q_re = (a - radius) * (a + radius) - v * v, q_im = 2 * a * v;
    const double norm = std::sqrt(q_re * q_re + q_im * q_im);
    const double large = std::sqrt(0.5 * (norm + std::abs(q_re)));
    const double small = 0.5 * std::abs(q_im) / std::max(large, 1e-300);
    return {std::copysign(q_re >= 0 ? large : small, a), q_re >= 0 ? small : large, norm};
}

/// One semicircle: G and G'.
Transform semicircle(Complex u, double variance) {
    const Root s = root(u.real(), u.imag(), 2 * std::sqrt(variance));
    const Complex phi = 2.0 / (u + Complex(s.re, s.im));
    return {phi, -phi / Complex(s.re, s.im)};
}

}  // namespace

BumpLaw::BumpLaw(std::span<const Bump> bumps) : size_(bumps.size()) {
    check_at_least("number of bumps", static_cast<long long>(bumps.size()), 1);
    double sum = 0;
    for (std::size_t i = 0; i < bumps.size(); ++i) {
        check_finite(fmt::format("centre of bump {}", i + 1), bumps[i].centre);
        check_positive(fmt::format("weight of bump {}", i + 1), bumps[i].weight);
        check_non_negative(fmt::format("variance of bump {}", i + 1), bumps[i].variance);
        sum += bumps[i].weight;
    }
    if (std::abs(sum - 1) > 1e-9) throw_invalid("sum of the weights", "1", sum);
    std::vector<Bump> sorted(bumps.begin(), bumps.end());
    std::sort(sorted.begin(), sorted.end(), [](const Bump& a, const Bump& b) { return a.centre < b.centre; });
    for (Bump& bump : sorted) {
        bump.weight /= sum;
        mean_ += bump.weight * bump.centre;
    }
    const std::size_t filled = (size_ + lanes - 1) / lanes * lanes;
    for (std::size_t i = 0; i < filled; ++i) {
        // What fills up is a copy of the last bump: it is singular nowhere else.
        const Bump& bump = sorted[std::min(i, size_ - 1)];
        centres_.push_back(bump.centre - mean_);
        weights_.push_back(i < size_ ? bump.weight : 0);
        variances_.push_back(bump.variance);
        radii_.push_back(2 * std::sqrt(bump.variance));
    }
    std::vector<Interval> parts;
    double last_atom = 0, at_last_atom = 0;
    for (std::size_t i = 0; i < size_; ++i) {
        // Beyond these ends, rounding does not take a point for one inside.
        const double margin = radii_[i] > 0 ? 4e-16 * (std::abs(centres_[i]) + radii_[i]) : 0;
        parts.push_back({centres_[i] - radii_[i] - margin, centres_[i] + radii_[i] + margin});
        variance_ += weights_[i] * (centres_[i] * centres_[i] + variances_[i]);
        radius_ = std::max(radius_, std::abs(centres_[i]) + radii_[i]);
        if (variances_[i] > 0) continue;
        if (at_last_atom > 0 && centres_[i] != last_atom) {
            atomic_concentration_ += at_last_atom * at_last_atom;
            at_last_atom = 0;
        }
        last_atom = centres_[i];
        at_last_atom += weights_[i];
    }
    check_finite("second moment of the bumps", second_moment());
    atomic_concentration_ += at_last_atom * at_last_atom;
    std::sort(parts.begin(), parts.end(), [](const Interval& a, const Interval& b) { return a.low < b.low; });
    for (const Interval& part : parts) {
        if (!support_.empty() && part.low <= support_.back().high) {
            support_.back().high = std::max(support_.back().high, part.high);
        } else {
            support_.push_back(part);
        }
    }
    constexpr double narrow = 0.02;  // radius over the length of the interval
    auto part = support_.begin();
    for (std::size_t i = 0; i < size_; ++i) {
        while (centres_[i] > part->high) ++part;
        if (radii_[i] < narrow * (part->high - part->low)) peaks_.push_back(centres_[i]);
    }
}

std::vector<Bump> BumpLaw::bumps() const {
    std::vector<Bump> result;
    for (std::size_t i = 0; i < size_; ++i)
        result.push_back({centres_[i] + mean_, weights_[i], variances_[i]});
    return result;
}

double BumpLaw::cumulative(double x) const {
    double sum = 0;
    for (std::size_t i = 0; i < size_; ++i) {
        const double u = x - centres_[i];
        if (u >= radii_[i]) {
            sum += weights_[i];
        } else if (u > -radii_[i]) {
            const double t = u / radii_[i];
            sum += weights_[i] * (0.5 + (t * std::sqrt(1 - t * t) + std::asin(t)) * std::numbers::inv_pi);
        }
    }
    return sum;
}

double BumpLaw::quantile(double level) const {
    check_between("level of a quantile", level, 0, 1);
    double low = centres_[0] - radii_[0], high = low;
    for (std::size_t i = 0; i < size_; ++i) {
        low = std::min(low, centres_[i] - radii_[i]);
        high = std::max(high, centres_[i] + radii_[i]);
    }
    // Ends when no number is between them; at rounding of the weights, at the upper end.
    for (double middle = 0.5 * (low + high); low < middle && middle < high; middle = 0.5 * (low + high))
        (cumulative(middle) >= level ? high : low) = middle;
    return high + mean_;
}

Transform BumpLaw::stieltjes(Complex z) const {
    // In reals and in lanes, so that the loop vectorises.
    const double v = z.imag();
    Lanes re{}, im{}, d_re{}, d_im{};
    for (std::size_t first = 0; first < centres_.size(); first += lanes) {
        const double *centre = &centres_[first], *radius = &radii_[first], *weight = &weights_[first];
        for (std::size_t k = 0; k < lanes; ++k) {
            const double a = z.real() - centre[k];
            const Root s = root(a, v, radius[k]);
            const double t_re = a + s.re, t_im = v + s.im;
            const double scale = 2 * weight[k] / (t_re * t_re + t_im * t_im);
            const double p = scale * t_re, m = -scale * t_im;
            const double inverse = 1 / s.norm;
            re[k] += p;
            im[k] += m;
            d_re[k] -= (p * s.re + m * s.im) * inverse;
            d_im[k] -= (m * s.re - p * s.im) * inverse;
        }
    }
    return {{total(re), total(im)}, {total(d_re), total(d_im)}};
}

Transform BumpLaw::moment_transform(Complex z) const {
    const bool far = std::abs(z) > radius_;
    Transform sum{0, 0};
    for (std::size_t i = 0; i < size_; ++i) {
        const auto [phi, slope] = semicircle(z - centres_[i], variances_[i]);
        const double x = centres_[i], b2 = variances_[i];
        Complex value = b2 * phi * phi, derivative = 2 * b2 * phi * slope;
        if (far) {
            const Complex part = x * phi * (x + b2 * phi) / z;
            value += part;
            derivative += (x * slope * (x + 2 * b2 * phi) - part) / z;
        } else {
            value += x * phi;
            derivative += x * slope;
        }
        sum.value += weights_[i] * value;
        sum.derivative += weights_[i] * derivative;
    }
    return sum;
}

double BumpLaw::log_potential(Complex z) const {
    double sum = 0;
    for (std::size_t i = 0; i < size_; ++i) {
        const Complex phi = semicircle(z - centres_[i], variances_[i]).value;
        sum += 0.5 * weights_[i] * (variances_[i] * (phi * phi).real() - std::log(std::norm(phi)));
    }
    return sum;
}

}  // namespace bayesaim::spectral
