// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/power_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include <boost/math/quadrature/gauss.hpp>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::spectral {
namespace {

/// Gauss's rule on a panel: a pole at the position p, in units where the panel is [-1, 1], costs R^(-2 order)
/// with R + 1/R = |p - 1| + |p + 1|. A pole with R below `near` is subtracted: 3.6^(-32) = 2e-18.
constexpr std::size_t order = 16;
constexpr double near = 3.6;
using Rule = boost::math::quadrature::gauss<double, order>;
/// Half the length of a panel, at most. In X: the poles that are not subtracted are at least pi away. In q:
/// e^q varies little on a panel.
constexpr double longest_in_x = 1.6, longest_in_q = 1.5;

constexpr std::size_t lanes = 8;  // nodes that are summed side by side, in reals, so that loops vectorise
using Lanes = std::array<double, lanes>;
double total(const Lanes& x) { return ((x[0] + x[4]) + (x[1] + x[5])) + ((x[2] + x[6]) + (x[3] + x[7])); }

/// The rule on [-1, 1], ascending. Boost stores the positive half.
struct Nodes {
    std::array<double, order> abscissas, weights;
};
const Nodes& nodes() {
    static const Nodes all = [] {
        Nodes made;
        for (std::size_t k = 0; k < order / 2; ++k) {
            const std::size_t below = order / 2 - 1 - k, above = order / 2 + k;
            made.abscissas[above] = Rule::abscissa()[k];
            made.abscissas[below] = -Rule::abscissa()[k];
            made.weights[above] = made.weights[below] = Rule::weights()[k];
        }
        return made;
    }();
    return all;
}

double exprel(double t) { return t == 0 ? 1 : std::expm1(t) / t; }

Complex log1p(Complex d) {
    return {0.5 * std::log1p(d.real() * (2 + d.real()) + d.imag() * d.imag()),
            std::atan2(d.imag(), 1 + d.real())};
}

Complex logarithm(Complex z) { return {0.5 * std::log(std::norm(z)), std::atan2(z.imag(), z.real())}; }

/// Below |x| = 1/8 series replace differences that would cancel; the omitted terms are below 1e-17.
constexpr double close = 1. / 64;  // |x|^2

Complex polynomial(std::span<const double> coefficients, Complex x) {
    Complex sum = 0;
    for (std::size_t k = coefficients.size(); k-- > 0;) sum = coefficients[k] + x * sum;
    return sum;
}

/// 1/(1 - e^(-x)) - 1/x
Complex regular_part(Complex x) {
    constexpr std::array<double, 5> bernoulli = {1. / 12, -1. / 720, 1. / 30240, -1. / 1209600,
                                                 1. / 47900160};
    return 0.5 + x * polynomial(bernoulli, x * x);
}

/// (e^x - 1)/x
Complex exprel(Complex x) {
    constexpr std::array<double, 10> factorials = {
        1., 1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320, 1. / 362880, 1. / 3628800};
    return polynomial(factorials, x);
}

}  // namespace

/// The panels next to the pole: their nodes, mass and part of G.
struct PowerLaw::Near {
    std::size_t first = 0, last = 0;
    double mass = 0;
    Transform stieltjes{0, 0};
};

PowerLaw::PowerLaw(double exponent, double width, double cutoff)
    : exponent_(exponent), width_(width), cutoff_(cutoff) {
    check_positive("exponent", exponent);
    check_between("exponent", exponent, 0.05, 5);
    check_positive("width", width);
    if (width > 1) throw_invalid("width", "at most 1 for a power law", width);
    check_between("width", width, 1e-10, 1);
    check_positive("cutoff", cutoff);
    check_between("cutoff", cutoff, 1e-6, 100);
    // int lambda^k dmu = lambda(0)^k int_0^length x0 e^((1 - k gamma) q) dq, q measured from log(x0).
    const double length = std::log1p(width / cutoff);
    const auto integral = [&](double k) { return cutoff * length * exprel((1 - k * exponent) * length); };
    largest_ = 1 / std::sqrt(integral(2));
    mean_ = largest_ * integral(1);
    ends_ = {eigenvalue(width) - mean_, largest_ - mean_};
    const double panels = std::ceil(0.5 * length * std::max(exponent / longest_in_x, 1 / longest_in_q));
    panel_ = 0.5 * length / panels;
    const auto at = [&](double q) {  // measured from log(x0)
        return Place{cutoff * std::exp(q), largest_ * std::exp(-exponent * q)};
    };
    for (double p = 0; p <= panels; ++p) {
        edges_.push_back(at(2 * p * panel_));
        if (p == panels) break;
        middles_.push_back(at((2 * p + 1) * panel_));
        for (std::size_t k = 0; k < order; ++k) {
            const auto [position, value] = at((2 * p + 1 + nodes().abscissas[k]) * panel_);
            eigenvalues_.push_back(value);
            positions_.push_back(position);
            masses_.push_back(position * nodes().weights[k] * panel_);
            first_moments_.push_back(masses_.back() * (value - mean_));
            second_moments_.push_back(first_moments_.back() * (value - mean_));
            variance_ += second_moments_.back();
        }
    }
    edges_.back() = {cutoff + width, eigenvalue(width)};
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
/// eigenvalue. A difference of 1e-7 can be trusted. Round-off of centred eigenvalues, against D^{1/2}, ends it.
double PowerLaw::smallest_resolved_noise() const {
    const double end = cutoff_ + width_, density = end / (exponent_ * eigenvalue(width_));
    const double growth =
        4 / 3. * std::pow(std::numbers::pi, 2) * end * density * density / (3 + 2 * exponent_);
    return std::clamp(1e-7 / growth, std::max(1e-18, 5e-14 * mean_ * mean_), 1e-10);
}

PowerLaw::Near PowerLaw::near_part(Complex z) const {
    const Complex w(z.real() + mean_, z.imag());
    if (w == 0.0) return {};
    const double half = exponent_ * panel_;  // of a panel, in X
    // X at q = log(x0). The pole is in the panel `place`, or above it in the complex plane.
    const Complex start = logarithm(w / largest_);
    const double place = std::floor(-start.real() / (2 * half));
    std::size_t first = middles_.size(), last = 0;
    for (double p = std::max(0.0, place - 1); p <= place + 1 && p < static_cast<double>(middles_.size());
         ++p) {
        const Complex pole = -start / half - (2 * p + 1);
        if (std::sqrt(std::norm(pole - 1.0)) + std::sqrt(std::norm(pole + 1.0)) > near + 1 / near) continue;
        first = std::min(first, static_cast<std::size_t>(p));
        last = static_cast<std::size_t>(p) + 1;
    }
    if (first >= last) return {};

    Near result{first * order, last * order};
    // Again, from an eigenvalue next to w: start has lost digits if |log w| is large.
    const Complex x_middle(0.5 * std::log(std::norm(w / middles_[first].eigenvalue)), start.imag());
    const Complex y_pole = middles_[first].position * std::exp(-x_middle / exponent_);  // e^(q*)
    const Complex residue = y_pole / w;
    Complex sum = 0;
    for (std::size_t panel = first; panel < last; ++panel) {
        const Complex x_panel = x_middle + half * 2 * static_cast<double>(panel - first);
        sum += subtracted_panel(panel, w, x_panel, y_pole, residue);
    }
    // The ends of the range: X and e^q/(w - lambda). At the ends of the support, where all digits count, both
    // come from the distance in z.
    const auto end = [&](std::size_t edge) {
        const auto [position, value] = edges_[edge];
        if (edge > 0 && edge + 1 < edges_.size())
            return std::pair{
                x_middle + half * (2 * static_cast<double>(edge) - 2 * static_cast<double>(first) - 1),
                position / (w - value)};
        const Complex distance(z.real() - (edge == 0 ? ends_.high : ends_.low), z.imag());
        return std::pair{log1p(distance / value), position / distance};
    };
    const auto [a_x, a_ratio] = end(first);
    const auto [b_x, b_ratio] = end(last);
    const Complex difference(0.5 * std::log(std::norm(b_x) / std::norm(a_x)), std::arg(b_x) - std::arg(a_x));
    const Complex g = sum + residue / exponent_ * difference;
    result.mass = edges_[last].position - edges_[first].position;
    result.stieltjes = {g, (-(1 + exponent_) * g + b_ratio - a_ratio) / (exponent_ * w)};
    return result;
}

/// The sum of mass/(w - lambda) - step e^(q*)/(w X) over the nodes of a panel, X = x_middle in its middle.
Complex PowerLaw::subtracted_panel(std::size_t panel, Complex w, Complex x_middle, Complex y_pole,
                                   Complex residue) const {
    const double half = exponent_ * panel_, v = x_middle.imag();
    const double *mass = &masses_[panel * order], *value = &eigenvalues_[panel * order];
    const Nodes& rule = nodes();
    Lanes re{}, im{};
    for (std::size_t i = 0; i < order; i += lanes) {
        for (std::size_t k = 0; k < lanes; ++k) {
            const double d = w.real() - value[i + k], part = mass[i + k] / (d * d + w.imag() * w.imag());
            const double x = x_middle.real() + half * rule.abscissas[i + k], norm = x * x + v * v;
            const double step = panel_ * rule.weights[i + k] / norm;
            const double p = part * d - step * (residue.real() * x + residue.imag() * v);
            const double m = -part * w.imag() - step * (residue.imag() * x - residue.real() * v);
            re[k] += norm > close ? p : 0;
            im[k] += norm > close ? m : 0;
        }
    }
    Complex sum(total(re), total(im));
    for (std::size_t k = 0; k < order; ++k) {
        const Complex x(x_middle.real() + half * rule.abscissas[k], v);
        if (x.real() * x.real() + v * v > close) continue;
        const Complex s = x / exponent_;
        const double y = positions_[panel * order + k];
        const Complex ratio = std::norm(s) < close ? y_pole * exprel(s) : (y - y_pole) / s;
        sum += panel_ * rule.weights[k] / w * (y * regular_part(x) + ratio / exponent_);
    }
    return sum;
}

/// Sums of weight/(w - lambda) and -weight/(w - lambda)^2 over the nodes that are not near.
Transform PowerLaw::far_part(const std::vector<double>& weights, Complex z, const Near& near_nodes) const {
    Lanes re{}, im{}, d_re{}, d_im{};
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
    Transform part{0, 0};
    if (n.last > n.first) {
        part = raise(n.stieltjes, n.mass);
        double moment = 0;
        for (std::size_t i = n.first; i < n.last; ++i) moment += first_moments_[i];
        if (squares) part = raise(part, moment);
    }
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
