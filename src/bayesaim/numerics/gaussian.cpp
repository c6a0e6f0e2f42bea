// SPDX-License-Identifier: MIT
#include "bayesaim/numerics/gaussian.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include <Eigen/Core>
#include <boost/math/quadrature/gauss.hpp>

namespace bayesaim::numerics {
namespace {

constexpr double pi = std::numbers::pi;
constexpr double log_sqrt_two_pi = 0.918938533204672741780;
constexpr double inverse_sqrt_two_pi = 0.398942280401432677940;

/// M(x) for x >= 0: (x + 5/4) M(x) is a polynomial in t = (x - 5)/(x + 5), |t| <= 1, to 1e-17 (Chebyshev
/// interpolation of 40-digit values, written in powers of t; the absolute values of the coefficients sum to
/// 1.8, so nothing cancels). Even and odd powers are summed separately: two short chains instead of a long
/// one. X is double or an Eigen array.
template <class X>
X mills_ratio_of_positive(const X& x) {
    const X t = (x - 5.0) / (x + 5.0);
    const X t2 = t * t;
    X even = 7.848857644005267546e-11 * t2 - 1.257160749891007042e-9;
    even = even * t2 + 1.121346541683411578e-8;
    even = even * t2 - 7.41975572921422579e-8;
    even = even * t2 + 3.702020683572326335e-7;
    even = even * t2 - 6.002218041457413548e-7;
    even = even * t2 - 2.064170567761830458e-5;
    even = even * t2 + 4.19176513792362178e-4;
    even = even * t2 - 4.06370728968362363e-3;
    even = even * t2 - 3.239208627525979307e-2;
    even = even * t2 - 3.618870599701357296e-2;
    even = even * t2 + 1.505169402878062095e-1;
    even = even * t2 + 1.205050654470723531;
    X odd = -9.175584031788214703e-10 * t2 + 1.05417458823425975e-8;
    odd = odd * t2 - 7.382350998722691236e-8;
    odd = odd * t2 + 4.672892362993546244e-7;
    odd = odd * t2 - 3.124711381009444824e-6;
    odd = odd * t2 + 2.191368567025674746e-5;
    odd = odd * t2 - 1.337718647839945895e-4;
    odd = odd * t2 + 1.036761710315186178e-4;
    odd = odd * t2 + 1.485751164967262228e-2;
    odd = odd * t2 + 4.683255959472794131e-2;
    odd = odd * t2 - 2.561427412637270249e-2;
    odd = odd * t2 - 3.193862293106660903e-1;
    return (even + t * odd) / (x + 1.25);
}

/// Gauss-Legendre rule on [0, 1].
template <int n>
struct UnitRule {
    using Array = Eigen::Array<double, n, 1>;
    Array node, weight;

    UnitRule() {
        static_assert(n % 2 == 0);
        using Gauss = boost::math::quadrature::gauss<long double, n>;
        for (int i = 0; i < n / 2; ++i) {
            const long double x = Gauss::abscissa()[static_cast<std::size_t>(i)];
            node[2 * i] = static_cast<double>((1 - x) / 2);
            node[2 * i + 1] = static_cast<double>((1 + x) / 2);
            weight[2 * i] = static_cast<double>(Gauss::weights()[static_cast<std::size_t>(i)] / 2);
            weight[2 * i + 1] = weight[2 * i];
        }
    }
};

/// G(h, a) = int_0^inf exp(-a y - y^2/2) h / (h^2 + (a + y)^2) dy for h, a >= 0. The poles of the integrand
/// lie at the distance sqrt(h^2 + a^2) from the path; 24 nodes give 1e-15 if the distance is 2 or more.
double edge_integral(double h, double a) {
    static const UnitRule<24> rule;
    constexpr double decay = 38;  // the integrand is dropped below exp(-38)
    const double length = 2 * decay / (a + std::sqrt(a * a + 2 * decay));
    const UnitRule<24>::Array y = length * rule.node;
    return h * length * (rule.weight * (-y * (a + 0.5 * y)).exp() / (h * h + (a + y).square())).sum();
}

/// int_0^a (1 - exp(-z)) / z dy / 2 with z = (k^2 + y^2)/2: an entire function, for k^2 + a^2 <= 4.
double centre_integral(double k, double a) {
    static const UnitRule<12> rule;
    const UnitRule<12>::Array z = (0.5 * (k * k + (a * rule.node).square())).max(1e-300);
    return -0.5 * a * (rule.weight * (-z).expm1() / z).sum();
}

}  // namespace

double normal_density(double x) {
    const double square = x * x;
    const double lost = std::fma(x, x, -square);  // x^2 = square + lost
    if (!std::isfinite(lost)) return std::isnan(x) ? x : 0;
    return inverse_sqrt_two_pi * std::exp(-0.5 * square) * (1 - 0.5 * lost);
}

double mills_ratio(double x) {
    if (x < 0) return normal_cdf(-x) / normal_density(x);
    return std::isinf(x) ? 0 : mills_ratio_of_positive(x);
}

double normal_cdf(double x) {
    const double tail = normal_density(x) * mills_ratio(std::abs(x));
    return x < 0 ? tail : 1 - tail;
}

double log_normal_cdf(double x) {
    if (x < 0) return std::log(mills_ratio(-x)) - 0.5 * x * x - log_sqrt_two_pi;
    return std::log1p(-normal_cdf(-x));
}

double inverse_mills_ratio(double x) {
    return x < 0 ? 1 / mills_ratio(-x) : normal_density(x) / normal_cdf(x);
}

void scaled_log_normal_cdf(std::span<const double> x, std::span<double> scaled, std::span<double> slope) {
    constexpr std::size_t width = 16;
    using Chunk = Eigen::Array<double, width, 1>;
    for (std::size_t done = 0; done < x.size(); done += width) {
        const std::size_t count = std::min(width, x.size() - done);
        Chunk at = Chunk::Zero();
        std::copy_n(x.data() + done, count, at.data());
        // With e = phi(max(x, 0)), e M is 1 - Phi(x) for x >= 0 and exp(x^2/2) Phi(x) for x < 0. No branches:
        // at 0, where `positive` passes from 0 to 1, both are 1/2. The floor avoids denormal numbers, which
        // are slow.
        const Chunk positive = (at * 1e300).min(1.0).max(0.0);
        const Chunk e = inverse_sqrt_two_pi * (-0.5 * at.max(0.0).square()).max(-700.0).exp();
        const Chunk tail = e * mills_ratio_of_positive<Chunk>(at.abs());
        const Chunk scaled_cdf = positive + (1.0 - 2.0 * positive) * tail;
        const Chunk logs = scaled_cdf.log();
        const Chunk slopes = e / scaled_cdf;
        std::copy_n(logs.data(), count, scaled.data() + done);
        std::copy_n(slopes.data(), count, slope.data() + done);
    }
}

/// With s = sqrt(1 - c^2), a1 = (k2 - c k1)/s, a2 = (k1 - c k2)/s, the region is a wedge. Its corner has the
/// distance R, R^2 = k1^2 + a1^2 = k2^2 + a2^2, from the origin, and its edges pass the origin at |k1| and
/// |k2|. In polar coordinates its mass is a sum over the two edges. Far from the origin:
///   Phi2 = [k1, k2 > 0] - sign(k1) I1 - sign(k2) I2,      S = exp(-R^2/2)/(2 pi) = phi(k) phi(a),
///   I = S G(|k|, -a) for a <= 0,   I = Phi(-|k|) - S G(|k|, a) for a > 0,
/// where no sum cancels unless c is close to -1. The sum is evaluated in units of S or of phi(k1), k1 <= k2,
/// so that nothing underflows. Near the origin:
///   Phi2 = acos(-c)/(2 pi) + sum_i (Phi(k_i) - 1/2)/2 + k_i/(2 pi) int_0^{a_i} (1 - exp(-rho^2/2))/rho^2 dy,
/// rho^2 = k_i^2 + y^2.
BivariateNormalCdf bivariate_normal_cdf(double k1, double k2, double c) {
    if (k1 > k2) {
        BivariateNormalCdf result = bivariate_normal_cdf(k2, k1, c);
        std::swap(result.ratio1, result.ratio2);
        return result;
    }
    constexpr double centre_radius_squared = 4;
    const double s = std::sqrt((1 - c) * (1 + c));
    const double a1 = std::fma(-c, k1, k2) / s, a2 = std::fma(-c, k2, k1) / s;
    const double radius_squared = k1 * k1 + a1 * a1;

    if (radius_squared < centre_radius_squared) {
        const double edges = k1 * centre_integral(k1, a1) + k2 * centre_integral(k2, a2);
        const double strips = std::erf(k1 / std::numbers::sqrt2) + std::erf(k2 / std::numbers::sqrt2);
        const double p = (std::acos(-c) + edges) / (2 * pi) + 0.25 * strips;
        return {std::log(p), normal_density(k1) * normal_cdf(a1) / p, normal_density(k2) * normal_cdf(a2) / p,
                std::exp(-0.5 * radius_squared) / (2 * pi * s * p)};
    }

    const double g1 = edge_integral(std::abs(k1), std::abs(a1));
    const double g2 = edge_integral(std::abs(k2), std::abs(a2));
    if (k1 > 0) {  // the complement is small
        const double unit = std::exp(-0.5 * radius_squared) / (2 * pi);
        const double outside1 = a1 > 0 ? normal_cdf(-k1) - unit * g1 : unit * g1;
        const double outside2 = a2 > 0 ? normal_cdf(-k2) - unit * g2 : unit * g2;
        const double p = 1 - (outside1 + outside2);
        return {std::log1p(-(outside1 + outside2)), normal_density(k1) * normal_cdf(a1) / p,
                normal_density(k2) * normal_cdf(a2) / p, unit / (s * p)};
    }
    const double sign2 = k2 > 0 ? -1 : 1;
    if (a1 <= 0) {  // then a2 <= 0; units of S
        const double p = g1 + sign2 * g2;
        return {std::log(p) - 0.5 * radius_squared - 2 * log_sqrt_two_pi, mills_ratio(-a1) / p,
                mills_ratio(-a2) / p, 1 / (s * p)};
    }
    // In units of phi(k1), S is phi(a1).
    const double unit = normal_density(a1);
    const double density2 = std::exp(0.5 * (k1 - k2) * (k1 + k2));
    const double edge2 = a2 > 0 ? density2 * mills_ratio(std::abs(k2)) - unit * g2 : unit * g2;
    const double p = mills_ratio(-k1) - unit * g1 + sign2 * edge2;
    return {std::log(p) - 0.5 * k1 * k1 - log_sqrt_two_pi, normal_cdf(a1) / p,
            (a2 > 0 ? density2 * normal_cdf(a2) : unit * mills_ratio(-a2)) / p, unit / (s * p)};
}

}  // namespace bayesaim::numerics
