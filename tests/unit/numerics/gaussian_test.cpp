// SPDX-License-Identifier: MIT
#include "bayesaim/numerics/gaussian.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include <boost/math/quadrature/exp_sinh.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <gtest/gtest.h>

namespace {

using namespace bayesaim::numerics;
/// 113 bits with a wide exponent: 34 digits, and exp(-1e5) is an ordinary number.
using Exact = boost::multiprecision::number<boost::multiprecision::cpp_bin_float<
    113, boost::multiprecision::digit_base_2, void, std::int32_t, -100'000'000, 100'000'000>>;

constexpr double roundoff = 2e-15;  // a handful of rounded operations
// Of a1 and a2, which enter as exp(-a^2/2), and of Phi2 near the origin, where it is as small as 0.005.
constexpr double bivariate_roundoff = 1e-13;
constexpr double infinity = std::numeric_limits<double>::infinity();

Exact exact_density(const Exact& x) {
    return exp(-x * x / 2) / sqrt(boost::math::constants::two_pi<Exact>());
}

/// By erfc, and below -20 by Laplace's fraction Phi(-x) = phi(x) / (x + 1/(x + 2/(x + 3/(x + ...)))).
Exact exact_cdf(const Exact& x) {
    if (x > -20) return boost::math::erfc(Exact(-x / sqrt(Exact(2)))) / 2;
    Exact fraction = -x;
    for (int i = 60; i > 0; --i) fraction = -x + i / fraction;
    return exact_density(x) / fraction;
}

double relative_error(double value, const Exact& exact) {
    const Exact difference = abs(Exact(value) - exact);
    return static_cast<double>(exact == 0 ? difference : Exact(difference / abs(exact)));
}

/// int_{-inf}^{k1} phi(x) Phi((k2 - c x)/s) dx for k1 <= k2, k1 <= 0: the integrand is largest at or near k1.
Exact exact_tail_cdf(const Exact& k1, const Exact& k2, const Exact& c) {
    const Exact s = sqrt(1 - c * c);
    const Exact scale = 1 + abs(k1) + abs(k2);
    static boost::math::quadrature::exp_sinh<Exact> quadrature;
    const auto integrand = [&](const Exact& v) {
        const Exact x = k1 - v / scale;
        if (v > 60 * scale) return Exact(0);
        return Exact(exp((k1 - x) * (k1 + x) / 2) * exact_cdf((k2 - c * x) / s));
    };
    return quadrature.integrate(integrand, Exact(1e-14)) / scale * exact_density(k1);
}

struct ExactBivariate {
    Exact log_probability, ratio1, ratio2, density_ratio;
};

ExactBivariate exact_bivariate(double k1, double k2, double c) {
    const Exact s = sqrt(1 - Exact(c) * c);
    const Exact low = std::min(k1, k2), high = std::max(k1, k2);
    Exact probability, log_probability;
    if (low <= 0) {
        probability = exact_tail_cdf(low, high, c);
        log_probability = log(probability);
    } else {
        const Exact outside = exact_cdf(-low) + exact_cdf(-high) - exact_tail_cdf(-high, -low, c);
        probability = 1 - outside;
        log_probability = log1p(Exact(-outside));
    }
    const Exact a1 = (Exact(k2) - Exact(c) * k1) / s, a2 = (Exact(k1) - Exact(c) * k2) / s;
    return {log_probability, exact_density(k1) * exact_cdf(a1) / probability,
            exact_density(k2) * exact_cdf(a2) / probability,
            exact_density(k1) * exact_density(a1) / (s * probability)};
}

const std::vector<double> line = {-1e4,  -300, -40.5, -38, -12, -5, -2.5, -1, -0.3,
                                  -1e-8, 0,    1e-8,  0.4, 1.5, 4,  8,    20, 37};

TEST(Gaussian, CdfAndItsLogarithmAgreeWithHighPrecision) {
    for (const double x : line) {
        EXPECT_LT(relative_error(log_normal_cdf(x), log(exact_cdf(x))), roundoff) << "x = " << x;
        const Exact slope = exact_density(x) / exact_cdf(x);
        EXPECT_LT(relative_error(inverse_mills_ratio(x), slope), roundoff) << "x = " << x;
        if (std::abs(x) > 37.5) continue;  // normal numbers only
        EXPECT_LT(relative_error(normal_density(x), exact_density(x)), roundoff) << "x = " << x;
        EXPECT_LT(relative_error(normal_cdf(x), exact_cdf(x)), roundoff) << "x = " << x;
        EXPECT_LT(relative_error(mills_ratio(x), exact_cdf(-x) / exact_density(x)), roundoff) << "x = " << x;
    }
}

TEST(Gaussian, LimitsAreReachedWithoutNan) {
    EXPECT_EQ(log_normal_cdf(infinity), 0);
    EXPECT_EQ(log_normal_cdf(-infinity), -infinity);
    EXPECT_NEAR(log_normal_cdf(-1e150) / -5e299, 1, roundoff);
    EXPECT_NEAR(inverse_mills_ratio(-1e150) / 1e150, 1, roundoff);
    EXPECT_EQ(inverse_mills_ratio(infinity), 0);
    EXPECT_EQ(normal_cdf(infinity), 1);
    EXPECT_EQ(normal_cdf(-infinity), 0);
    EXPECT_EQ(normal_density(infinity), 0);
    EXPECT_TRUE(std::isnan(normal_cdf(std::nan(""))));
}

TEST(Gaussian, BatchEqualsScalar) {
    std::vector<double> scaled(line.size()), slope(line.size());
    scaled_log_normal_cdf(line, scaled, slope);
    for (std::size_t i = 0; i < line.size(); ++i) {
        const double x = line[i], scaled_off = 0.5 * std::min(x, 0.0) * x;
        EXPECT_NEAR(scaled[i] - scaled_off, log_normal_cdf(x), roundoff * (1 + scaled_off)) << "x = " << x;
        const double expected = x < 0 ? std::log(mills_ratio(-x) * normal_density(0)) : log_normal_cdf(x);
        EXPECT_NEAR(scaled[i], expected, roundoff * (1 + std::abs(expected))) << "x = " << x;
        const double rounding_of_square = 1e-16 * x * x;  // in exp(-x^2/2)
        EXPECT_NEAR(slope[i] / inverse_mills_ratio(x), 1, roundoff + rounding_of_square) << "x = " << x;
    }
}

void expect_agreement(double k1, double k2, double c, double tolerance) {
    const BivariateNormalCdf result = bivariate_normal_cdf(k1, k2, c);
    const ExactBivariate exact = exact_bivariate(k1, k2, c);
    const auto expect_near = [&](double value, const Exact& expected, const char* name) {
        if (abs(expected) < 1e-290) return;  // normal numbers only
        EXPECT_LT(relative_error(value, expected), tolerance)
            << name << " at k1 = " << k1 << ", k2 = " << k2 << ", c = " << c;
    };
    expect_near(result.log_probability, exact.log_probability, "log Phi2");
    expect_near(result.ratio1, exact.ratio1, "ratio1");
    expect_near(result.ratio2, exact.ratio2, "ratio2");
    expect_near(result.density_ratio, exact.density_ratio, "density ratio");
}

TEST(BivariateNormalCdf, AgreesWithHighPrecisionQuadrature) {
    const std::vector<double> grid = {-300, -40, -7, -1.2, -0.5, 0, 0.7, 2, 6};
    for (const double c : {1.0 / 3, -1.0 / 3}) {
        for (std::size_t i = 0; i < grid.size(); ++i) {
            for (std::size_t j = 0; j <= i; ++j) {  // (k1, k2) and (k2, k1) in turn
                const bool swapped = (i + j) % 2 == 1;
                const double k1 = grid[swapped ? j : i], k2 = grid[swapped ? i : j];
                expect_agreement(k1, k2, c, bivariate_roundoff);
            }
        }
    }
}

TEST(BivariateNormalCdf, AgreesOnBothSidesOfTheSwitchBetweenCentreAndTail) {
    for (const double c : {1.0 / 3, -1.0 / 3, 0.9, -0.9, 0.0}) {
        for (const double radius : {1.999, 2.001}) {
            for (int i = 0; i < 8; ++i) {
                const double angle = 0.05 + 0.25 * i * std::numbers::pi;
                const double k1 = radius * std::cos(angle);
                const double k2 = c * k1 + std::sqrt(1 - c * c) * radius * std::sin(angle);
                expect_agreement(k1, k2, c, bivariate_roundoff);
            }
        }
    }
}

TEST(BivariateNormalCdf, HessianFollowsFromTheRatios) {
    const double h = 1e-5, finite_difference = 1e-8;  // h^2 times third derivatives, and roundoff / h
    for (const double c : {1.0 / 3, -1.0 / 3}) {
        for (const double k1 : {-6.0, -0.7, 1.1}) {
            for (const double k2 : {-8.0, -0.2, 2.0}) {
                const auto [log_p, r1, r2, p] = bivariate_normal_cdf(k1, k2, c);
                const auto right = bivariate_normal_cdf(k1 + h, k2, c);
                const auto left = bivariate_normal_cdf(k1 - h, k2, c);
                const auto slope = [&](auto member) { return (right.*member - left.*member) / (2 * h); };
                EXPECT_NEAR(slope(&BivariateNormalCdf::log_probability), r1, finite_difference * (1 - log_p));
                EXPECT_NEAR(slope(&BivariateNormalCdf::ratio1), -r1 * (k1 + r1) - c * p, finite_difference);
                EXPECT_NEAR(slope(&BivariateNormalCdf::ratio2), p - r1 * r2, finite_difference);
            }
        }
    }
}

TEST(BivariateNormalCdf, DoesNotUnderflow) {
    const BivariateNormalCdf far = bivariate_normal_cdf(-1e100, -1e100, -1.0 / 3);
    EXPECT_NEAR(far.log_probability / -1.5e200, 1, roundoff);  // -k^2/(1 + c)
    EXPECT_NEAR(far.ratio1 / 1.5e100, 1, roundoff);            // -k/(1 + c)
    const BivariateNormalCdf near_one = bivariate_normal_cdf(1e100, 1e100, 1.0 / 3);
    EXPECT_EQ(near_one.log_probability, 0);
    EXPECT_EQ(near_one.ratio1, 0);
}

}  // namespace
