// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/power_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <boost/math/quadrature/gauss.hpp>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::spectral {
namespace {

/// Gauss's rule on a panel: a pole at the position p, in units where the panel is [-1, 1], costs
/// |p + sqrt(p^2 - 1)|^(-2 order). A pole with a number below `near` is subtracted: 3.6^(-32) = 2e-18.
constexpr std::size_t order = 16;
constexpr double near = 3.6;
using Rule = boost::math::quadrature::gauss<double, order>;
/// Half the length of a panel, at most. In X: the poles that are not subtracted are at least pi away. In q:
/// e^q varies little on a panel.
constexpr double longest_in_x = 1.6, longest_in_q = 1.5;

/// Node k = 0 .. order - 1 of the rule on [-1, 1], ascending, and its weight. Boost stores the positive half.
double abscissa(std::size_t k) {
    constexpr std::size_t half = order / 2;
    return k < half ? -Rule::abscissa()[half - 1 - k] : Rule::abscissa()[k - half];
}
double weight(std::size_t k) {
    constexpr std::size_t half = order / 2;
    return k < half ? Rule::weights()[half - 1 - k] : Rule::weights()[k - half];
}

double exprel(double t) { return t == 0 ? 1 : std::expm1(t) / t; }

Complex expm1(Complex s) {
    const double half_sine = std::sin(0.5 * s.imag());
    return {std::expm1(s.real()) * std::cos(s.imag()) - 2 * half_sine * half_sine,
            std::exp(s.real()) * std::sin(s.imag())};
}

Complex log1p(Complex d) {
    return {0.5 * std::log1p(d.real() * (2 + d.real()) + d.imag() * d.imag()),
            std::atan2(d.imag(), 1 + d.real())};
}

Complex logarithm(Complex z) { return {0.5 * std::log(std::norm(z)), std::atan2(z.imag(), z.real())}; }

/// 1/(1 - e^(-x)) - 1/x for |x| <= 1/4: the omitted term is below 1e-17.
Complex regular_part(Complex x) {
    constexpr std::array<double, 6> bernoulli = {1. / 12,       -1. / 720,     1. / 30240,
                                                 -1. / 1209600, 1. / 47900160, -691. / 1307674368000};
    const Complex square = x * x;
    Complex sum = 0;
    for (std::size_t k = bernoulli.size(); k-- > 0;) sum = bernoulli[k] + square * sum;
    return 0.5 + x * sum;
}

}  // namespace

/// The panels next to the pole: their nodes, mass, first moment about the mean, and part of G.
struct PowerLaw::Near {
    std::size_t first = 0, last = 0;
    double mass = 0, moment = 0;
    Transform stieltjes{0, 0};
};

PowerLaw::PowerLaw(double exponent, double width, double cutoff)
    : exponent_(exponent), width_(width), cutoff_(cutoff) {
    check_positive("exponent", exponent);
    check_between("exponent", exponent, 0.01, 10);
    check_positive("width", width);
    if (width > 1) throw_invalid("width", "at most 1 for a power law", width);
    check_positive("cutoff", cutoff);
    check_between("cutoff", cutoff, 1e-9, 100);
    // int lambda^k dmu = lambda(0)^k int_0^length x0 e^((1 - k gamma) q) dq, q measured from log(x0).
    const double length = std::log1p(width / cutoff);
    const auto integral = [&](double k) { return cutoff * length * exprel((1 - k * exponent) * length); };
    largest_ = 1 / std::sqrt(integral(2));
    mean_ = largest_ * integral(1);
    ends_ = {eigenvalue(width) - mean_, largest_ - mean_};
    const double panels = std::ceil(0.5 * length * std::max(exponent / longest_in_x, 1 / longest_in_q));
    panel_ = 0.5 * length / panels;
    for (double p = 0; p < panels; ++p) {
        for (std::size_t k = 0; k < order; ++k) {
            const double q = (2 * p + 1 + abscissa(k)) * panel_;
            eigenvalues_.push_back(largest_ * std::exp(-exponent * q));
            positions_.push_back(cutoff * std::exp(q));
            masses_.push_back(positions_.back() * weight(k) * panel_);
            const double centred = eigenvalues_.back() - mean_;
            first_moments_.push_back(masses_.back() * centred);
            second_moments_.push_back(first_moments_.back() * centred);
            variance_ += second_moments_.back();
        }
    }
    variance_ += (1 - width) * mean_ * mean_;
}

double PowerLaw::eigenvalue(double x) const {
    return largest_ * std::exp(-exponent_ * std::log1p(x / cutoff_));
}

std::vector<Interval> PowerLaw::centred_support() const {
    if (width_ == 1) return {ends_};
    if (ends_.low > -mean_) return {{-mean_, -mean_}, ends_};
    return {{-mean_, ends_.high}};
}

/// As D -> 0, mmse(D)/D differs from its limit by (4 pi^2/3) D int f^2 dmu, where f is the density. At lambda
/// it is y/(gamma lambda), y = x + x0, so that the integral is about y f^2/(3 + 2 gamma) at the smallest
/// eigenvalue. A difference of 1e-7 can be trusted. Below D = 1e-18 round-off of centred eigenvalues counts.
double PowerLaw::smallest_resolved_noise() const {
    const double end = cutoff_ + width_, density = end / (exponent_ * eigenvalue(width_));
    const double growth =
        4 / 3. * std::pow(std::numbers::pi, 2) * end * density * density / (3 + 2 * exponent_);
    return std::clamp(1e-7 / growth, 1e-18, 1e-10);
}

PowerLaw::Near PowerLaw::near_part(Complex z) const {
    const Complex w(z.real() + mean_, z.imag());
    if (w == 0.0) return {};
    const std::size_t panels = masses_.size() / order;
    const double half = exponent_ * panel_;  // in X
    const auto middle = [&](std::size_t panel) {
        return (2 * static_cast<double>(panel) + 1) * panel_;  // in q, from log(x0)
    };
    // X at q = log(x0), and from it in the middle of each panel.
    const Complex start = logarithm(w / largest_);
    std::size_t first = panels, last = 0;
    const double place = std::floor(-start.real() / (2 * half));
    for (double p = std::max(0.0, place - 1); p <= place + 1 && p < static_cast<double>(panels); ++p) {
        const auto panel = static_cast<std::size_t>(p);
        const Complex pole = -(start + exponent_ * middle(panel)) / half;
        const Complex root = std::sqrt(pole * pole - 1.0);
        if (std::max(std::norm(pole + root), std::norm(pole - root)) > near * near) continue;
        first = std::min(first, panel);
        last = panel + 1;
    }
    if (first >= last) return {};

    Near result{first * order, last * order};
    // Again, from a number next to w: start has lost digits if |log w| is large.
    const double q_middle = middle(first);
    const Complex x_middle = logarithm(w / (largest_ * std::exp(-exponent_ * q_middle)));
    const Complex y_pole = cutoff_ * std::exp(q_middle - x_middle / exponent_);  // e^(q*)
    Complex sum = 0;
    for (std::size_t i = result.first; i < result.last; ++i) {
        const std::size_t k = i % order;
        const double shift = 2 * static_cast<double>(i / order - first) + abscissa(k);
        const Complex x = x_middle + half * shift;
        const double step = weight(k) * panel_;
        if (std::norm(x) > 0.0625) {
            sum += masses_[i] / (1.0 - eigenvalues_[i] / w) - step * y_pole / x;
        } else {
            const Complex s = x / exponent_;
            const Complex ratio = s == 0.0 ? 1.0 : expm1(s) / s;
            sum += step * (positions_[i] * regular_part(x) + y_pole * ratio / exponent_);
        }
        result.moment += first_moments_[i];
    }
    // The ends of the range, with their distances from w. At the ends of the support every digit counts.
    struct End {
        Complex x, distance;
        double position;
    };
    const auto end = [&](std::size_t boundary) -> End {
        const double q = 2 * static_cast<double>(boundary) * panel_;
        if (boundary == 0 || boundary == panels) {
            const double value = boundary == 0 ? largest_ : eigenvalue(width_);
            const Complex distance(z.real() - (boundary == 0 ? ends_.high : ends_.low), z.imag());
            return {log1p(distance / value), distance, boundary == 0 ? cutoff_ : cutoff_ + width_};
        }
        return {x_middle + half * (2 * static_cast<double>(boundary - first) - 1),
                w - largest_ * std::exp(-exponent_ * q), cutoff_ * std::exp(q)};
    };
    const End a = end(first), b = end(last);
    sum += y_pole / exponent_ * (logarithm(b.x) - logarithm(a.x));
    const Complex g = sum / w;
    result.mass = b.position - a.position;
    result.stieltjes = {
        g, (-(1 + exponent_) * g + b.position / b.distance - a.position / a.distance) / (exponent_ * w)};
    return result;
}

/// Sums of weight/(w - lambda) and -weight/(w - lambda)^2 over the nodes that are not near.
Transform PowerLaw::far_part(const std::vector<double>& weights, Complex z, const Near& near_nodes) const {
    constexpr std::size_t lanes = 8;  // summed side by side, in reals, so that the loop vectorises
    std::array<double, lanes> re{}, im{}, d_re{}, d_im{};
    const double u = z.real() + mean_, v = z.imag();
    const auto add = [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; i += lanes) {
            for (std::size_t k = 0; k < lanes; ++k) {
                const double a = u - eigenvalues_[i + k], inverse = 1 / (a * a + v * v);
                const double p = a * inverse, m = -v * inverse, mass = weights[i + k];
                re[k] += mass * p;
                im[k] += mass * m;
                d_re[k] -= mass * (p * p - m * m);
                d_im[k] -= mass * 2 * p * m;
            }
        }
    };
    add(0, near_nodes.first);
    add(near_nodes.last, weights.size());
    const auto total = [](const std::array<double, lanes>& x) {
        return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7]));
    };
    return {{total(re), total(im)}, {total(d_re), total(d_im)}};
}

/// G without the atom.
Transform PowerLaw::bulk(Complex z) const {
    const Near n = near_part(z);
    const Transform far = far_part(masses_, z, n);
    return {far.value + n.stieltjes.value, far.derivative + n.stieltjes.derivative};
}

Transform PowerLaw::stieltjes(Complex z) const {
    Transform g = bulk(z);
    if (width_ < 1) {
        const Complex inverse = 1.0 / (z + mean_);
        g.value += (1 - width_) * inverse;
        g.derivative -= (1 - width_) * inverse * inverse;
    }
    return g;
}

/// M = int x dmu/(z - x) = (1/z) int x^2 dmu/(z - x), since int x dmu = 0: the first form for |z| < mean, the
/// second for larger ones, where the first would cancel.
Transform PowerLaw::moment_transform(Complex z) const {
    const bool squares = std::abs(z) > mean_;
    const Near n = near_part(z);
    // int x^k dmu/(z - x) = z int x^(k-1) dmu/(z - x) - int x^(k-1) dmu on the near panels.
    const auto raise = [&](const Transform& t, double moment) -> Transform {
        return {z * t.value - moment, t.value + z * t.derivative};
    };
    Transform part = n.last > n.first ? raise(n.stieltjes, n.mass) : Transform{0, 0};
    if (squares && n.last > n.first) part = raise(part, n.moment);
    const Transform far = far_part(squares ? second_moments_ : first_moments_, z, n);
    Complex value = far.value + part.value, derivative = far.derivative + part.derivative;
    if (width_ < 1) {
        const Complex inverse = 1.0 / (z + mean_),
                      atom = (1 - width_) * (squares ? mean_ * mean_ : -mean_) * inverse;
        value += atom;
        derivative -= atom * inverse;
    }
    if (squares) {
        value /= z;
        derivative = (derivative - value) / z;
    }
    return {value, derivative};
}

double PowerLaw::log_potential(Complex z) const {
    const Complex w = z + mean_;
    const auto log_distance = [&](double end) { return 0.5 * std::log(std::norm(z - end)); };
    const double atom = width_ < 1 ? (1 - width_) * 0.5 * std::log(std::norm(w)) : 0;
    return atom + (cutoff_ + width_) * log_distance(ends_.low) - cutoff_ * log_distance(ends_.high) -
           exponent_ * ((w * bulk(z).value).real() - width_);
}

}  // namespace bayesaim::spectral
