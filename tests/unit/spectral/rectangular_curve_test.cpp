// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/rectangular_curve.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include <Eigen/Eigenvalues>
#include <gtest/gtest.h>

#include "bayesaim/core/random.hpp"
#include "bayesaim/spectral/bilinear_law.hpp"
#include "bayesaim/spectral/rectangular_law.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::spectral {
namespace {

constexpr double pi = std::numbers::pi;

RectangularCurve curve_of(double width, double aspect, double D) {
    return {std::sqrt(aspect) / width, aspect, D};
}

/// Widths, aspects and noises over decades, with one and two bulks and next to where they merge.
struct Draw {
    double width, aspect, noise;
};
std::vector<Draw> draws(int count) {
    std::vector<Draw> result;
    const RandomStream stream(7, Purpose::noise);
    std::vector<double> uniform(static_cast<std::size_t>(3 * count));
    stream.fill_uniform(uniform);
    for (int i = 0; i < count; ++i) {
        const double* u = &uniform[static_cast<std::size_t>(3 * i)];
        const double noise = i % 2 == 0 ? std::pow(10, -8 + 13 * u[2]) : std::pow(10, -2 + 3.5 * u[2]);
        result.push_back({std::pow(10, -3 + 5 * u[0]), 1 + std::pow(10, -3 + 4.3 * u[1]), noise});
    }
    return result;
}

/// g1 by the quartic for x = g1 g2, w^2 x = (1 + sqrt(b) C)(1 + C/sqrt(b)), C = x/(1 - kappa x) + D x; in a bulk the root
/// with Im g1 < 0.
Complex resolvent_by_quartic(double width, double b, double D, double w) {
    const double kappa = std::sqrt(b) / width, k = std::sqrt(b) + 1 / std::sqrt(b);
    // With h = 1 - kappa x and C h = x (1 + D h): h^2 w^2 x = h^2 + k x h (1 + D h) + x^2 (1 + D h)^2
    // in powers of x, h = 1 - kappa x, 1 + D h = e - D kappa x, e = 1 + D
    const double e = 1 + D, a = D * kappa;
    const double c0 = 1, c1 = -2 * kappa + k * e - w * w,
                 c2 = kappa * kappa - k * (a + kappa * e) + e * e + 2 * kappa * w * w,
                 c3 = k * kappa * a - 2 * e * a - kappa * kappa * w * w, c4 = a * a;
    Eigen::Matrix4d companion = Eigen::Matrix4d::Zero();
    companion.bottomLeftCorner<3, 3>().setIdentity();
    companion.col(3) << -c0 / c4, -c1 / c4, -c2 / c4, -c3 / c4;
    Complex best = 0;
    const Eigen::Vector4cd roots = companion.eigenvalues();
    for (const Complex& x : roots) {
        const Complex c = x / (1.0 - kappa * x) + D * x, g1 = (1.0 + std::sqrt(b) * c) / w;
        if (g1.imag() < best.imag()) best = g1;
    }
    return best;
}

TEST(RectangularCurve, MassAndSecondMomentAreKnown) {
    for (const auto& [width, aspect, D] : draws(300)) {
        const RectangularCurve curve = curve_of(width, aspect, D);
        EXPECT_NEAR(curve.mass(), 1, 1e-11) << width << " " << aspect << " " << D;
        EXPECT_NEAR(curve.second_moment() / (1 + D), 1, 1e-11) << width << " " << aspect << " " << D;
    }
}

TEST(RectangularCurve, AgreesWithTheQuartic) {
    for (const auto& [width, aspect, D] :
         {Draw{0.5, 2, 0.5}, {0.5, 2, 0.02}, {0.1, 3, 1}, {2, 1.5, 0.3}, {1, 20, 0.1}, {0.5, 1.05, 0.09}}) {
        const RectangularCurve curve = curve_of(width, aspect, D);
        for (const Interval& bulk : curve.edges()) {
            for (const double x : {0.01, 0.2, 0.5, 0.7, 0.99}) {
                const double w = bulk.low + x * (bulk.high - bulk.low);
                const Complex g = resolvent_by_quartic(width, aspect, D, w);
                const SpectrumPoint at = curve.at(w);
                EXPECT_NEAR(at.density, -g.imag() / pi, 1e-9) << width << " " << aspect << " " << w;
                EXPECT_NEAR(at.hilbert, g.real(), 1e-9) << width << " " << aspect << " " << w;
                EXPECT_NEAR(
                    at.denoised,
                    w - D * (2 / std::sqrt(aspect) * g.real() + (aspect - 1) / (std::sqrt(aspect) * w)),
                    1e-9);
            }
        }
    }
}

/// Next to aspect 1 the law of square weights, whose curve is another parametrisation.
TEST(RectangularCurve, AspectOneIsTheSquareLaw) {
    for (const double width : {0.1, 0.5, 1.0, 2.0}) {
        for (const double D : {0.01, 0.1, 0.5, 1.0, 2.0, 10.0}) {
            const ErrorPoint square = error_point(BilinearLaw(width), D);
            EXPECT_NEAR(curve_of(width, 1, D).error().error, square.error, 1e-9) << width << " " << D;
            const RectangularCurve near = curve_of(width, 1.002, D);
            EXPECT_NEAR(near.error().error, square.error, 2e-3 * square.error) << width << " " << D;
            EXPECT_NEAR(near.error().slope, square.slope, 4e-3) << width << " " << D;
            EXPECT_NEAR(curve_of(width, 1, D).free_entropy(),
                        2 * prior_free_entropy(BilinearLaw(width), 1 / D), 1e-9 / D)
                << width << " " << D;
        }
    }
}

/// Bulks of noise and signal are about to merge, or just did: the error is smooth there.
TEST(RectangularCurve, ErrorIsSmoothWhereBulksMerge) {
    for (const auto& [width, aspect] : {std::pair(0.5, 2.0), {0.1, 5.0}, {0.3, 1.1}}) {
        double two = 1e-4, one = 1e3;
        while (one / two > 1 + 1e-12) {
            const double D = std::sqrt(one * two);
            (curve_of(width, aspect, D).edges().size() == 2 ? two : one) = D;
        }
        for (const double x : {1 - 1e-3, 1 - 1e-6, 1 - 1e-10, 1.0, 1 + 1e-10, 1 + 1e-6, 1 + 1e-3}) {
            const RectangularCurve at = curve_of(width, aspect, one * x);
            EXPECT_NEAR(at.mass(), 1, 1e-11) << width << " " << x;
            const double left = curve_of(width, aspect, one * (x - 1e-4)).error().error,
                         right = curve_of(width, aspect, one * (x + 1e-4)).error().error;
            EXPECT_NEAR((right - left) / (2e-4 * one), at.error().slope, 1e-6) << width << " " << x;
        }
    }
}

TEST(RectangularCurve, SlopeIsTheDerivativeOfTheError) {
    for (const auto& [width, aspect, D] : draws(80)) {
        if (D > 100) continue;  // digits of the slope are lost as D^2
        constexpr double h = 1e-4;
        const double difference = (curve_of(width, aspect, D * (1 + h)).error().error -
                                   curve_of(width, aspect, D * (1 - h)).error().error) /
                                  (2 * h * D);
        EXPECT_NEAR(curve_of(width, aspect, D).error().slope, difference, 3e-6 * difference + 1e-9)
            << width << " " << aspect << " " << D;
    }
}

/// The two forms of the error, and the published one with mu^3.
TEST(RectangularCurve, ErrorIsTheIntegralOfTheDensityCubed) {
    for (const auto& [width, b, D] : {Draw{0.5, 2, 0.5}, {2, 3, 0.2}, {0.3, 1.5, 2}}) {
        const RectangularCurve curve = curve_of(width, b, D);
        double cubes = 0, inverse_squares = 0;
        for (const Interval& bulk : curve.edges()) {
            constexpr int nodes = 400;
            for (int i = 0; i < nodes; ++i) {  // midpoints in the cosine map; both signs
                const double angle = (i + 0.5) * pi / nodes, half = 0.5 * (bulk.high - bulk.low),
                             w = 0.5 * (bulk.low + bulk.high) - half * std::cos(angle),
                             weight = 2 * half * std::sin(angle) * pi / nodes, density = curve.at(w).density;
                cubes += weight * std::pow(density, 3);
                inverse_squares += weight * density / (w * w);
            }
        }
        const double expected =
            D - D * D / std::pow(b, 1.5) * (4 * pi * pi / 3 * cubes + (b - 1) * (b - 1) * inverse_squares);
        EXPECT_NEAR(curve.error().error, expected, 1e-8) << width << " " << b;
    }
}

TEST(RectangularCurve, FreeEntropyIsTheIntegralOfTheOverlap) {
    for (const auto& [width, aspect, D] : draws(60)) {
        if (D > 30) continue;  // the difference of logarithms has no digits
        constexpr double h = 1e-4;
        const double difference = (curve_of(width, aspect, D * (1 + h)).free_entropy() -
                                   curve_of(width, aspect, D * (1 - h)).free_entropy()) /
                                  (2 * h * D);
        const double overlap = 1 - curve_of(width, aspect, D).error().error;
        EXPECT_NEAR(-2 * D * D * difference / overlap, 1, 1e-6) << width << " " << aspect << " " << D;
    }
    EXPECT_NEAR(curve_of(0.5, 2, 1e5).free_entropy(), 0.25e-10, 1e-12);  // qhat^2/4
}

/// S and its transpose: width counts in the dimension of the rows.
TEST(RectangularLaw, TransposedMatricesHaveTheSameLaw) {
    for (const double aspect : {1.3, 2.0, 7.0}) {
        const RectangularLaw law(0.4, aspect), transposed(0.4 / aspect, 1 / aspect);
        for (const double D : {0.01, 0.5, 3.0}) {
            const ErrorPoint one = error_point(law, D), other = error_point(transposed, D);
            EXPECT_NEAR(one.error, other.error, 1e-13);
            EXPECT_NEAR(one.slope, other.slope, 1e-9);
            EXPECT_NEAR(prior_free_entropy(law, 1 / D), prior_free_entropy(transposed, 1 / D), 1e-11 / D);
            EXPECT_NEAR(law.with_noise(D).at(1.7).denoised, transposed.with_noise(D).at(1.7).denoised, 1e-12);
        }
        EXPECT_NEAR(law.atomic_concentration(), transposed.atomic_concentration(), 1e-15);
        EXPECT_EQ(law.columns(30), static_cast<std::ptrdiff_t>(std::llround(30 * aspect)));
    }
}

/// Matrices of rank r have r (d1 + d2 - r) parameters.
TEST(RectangularLaw, WithoutNoiseTheErrorCountsParameters) {
    for (const auto& [width, aspect] :
         {std::pair(0.5, 2.0), {0.1, 3.0}, {0.2, 0.5}, {0.9, 1.2}, {1.5, 2.0}, {3.0, 2.0}}) {
        const RectangularLaw law(width, aspect);
        const double expected = width < std::min(1.0, aspect) ? width * (1 + aspect - width) / aspect : 1;
        EXPECT_NEAR(1 - law.atomic_concentration(), expected, 1e-14);
        EXPECT_NEAR(error_point(law, 1e-9).error / 1e-9, expected, 1e-6) << width << " " << aspect;
        EXPECT_NEAR(error_point(law, 1e-9).slope, expected, 1e-6) << width << " " << aspect;
    }
}

TEST(RectangularLaw, IndependentEntriesAreShrunkAlike) {
    const RectangularLaw law(std::numeric_limits<double>::infinity(), 2);
    for (const double D : {1e-4, 0.1, 1.0, 30.0}) {
        EXPECT_NEAR(error_point(law, D).error, D / (1 + D), 1e-13);
        EXPECT_NEAR(error_point(law, D).slope, 1 / ((1 + D) * (1 + D)), 1e-9);
        const RectangularCurve curve = law.with_noise(D);
        ASSERT_EQ(curve.edges().size(), 1u);
        // Marchenko and Pastur: sigma^2 = (1 + D)(sqrt(b) + 1/sqrt(b) +- 2)
        EXPECT_NEAR(curve.edges()[0].high, std::sqrt((1 + D) * (1.5 * std::numbers::sqrt2 + 2)), 1e-12);
        EXPECT_NEAR(curve.edges()[0].low, std::sqrt((1 + D) * (1.5 * std::numbers::sqrt2 - 2)), 1e-12);
        for (const double x : {0.01, 0.3, 0.6, 0.99}) {
            const double w = curve.edges()[0].low + x * (curve.edges()[0].high - curve.edges()[0].low);
            EXPECT_NEAR(curve.at(w).denoised, w / (1 + D), 1e-12 * w) << D << " " << x;
        }
        EXPECT_NEAR(2 * prior_free_entropy(law, 1 / D), 0.5 / D - 0.5 * std::log1p(1 / D),
                    1e-12 * (1 + 1 / D));
    }
}

/// Far away G is the series of the moments: with A = S S^T/sqrt(b), tr A = 1 ..., and m is small.
TEST(RectangularLaw, TransformsAreThoseOfTheSupport) {
    for (const auto& [width, aspect] : {std::pair(0.5, 2.0), {0.3, 0.7}, {2.0, 3.0}, {1e4, 2.0}}) {
        const RectangularLaw law(width, aspect);
        const auto support = law.centred_support();
        const double b = std::max(aspect, 1 / aspect), outer = support.back().high,
                     inner = support.back().low;
        const Complex far(40 * outer, 30 * outer);
        EXPECT_LE(std::abs(law.moment_transform(far).value * far * far / std::sqrt(b) - 1.0), 1e-3);
        // G has an imaginary part inside the support only
        EXPECT_LT(law.stieltjes({0.5 * (inner + outer), 1e-9}).value.imag(), -1e-3);
        EXPECT_GT(law.stieltjes({1.01 * outer, 1e-9}).value.imag(), -1e-4);
        EXPECT_GT(law.stieltjes({0.99 * inner, 1e-9}).value.imag(), -1e-4);
        for (const double u : {0.9 * inner, 1.1 * outer, 3 * outer}) {
            const Transform at = law.stieltjes(u);
            EXPECT_LT(at.derivative.real(), 0);
            const double h = 1e-5;
            EXPECT_NEAR((law.log_potential(u + h) - law.log_potential(u - h)) / (2 * h), at.value.real(),
                        1e-7);
            EXPECT_NEAR((law.stieltjes(u + h).value.real() - law.stieltjes(u - h).value.real()) / (2 * h),
                        at.derivative.real(), 1e-5 * std::abs(at.derivative.real()));
        }
        // As D -> 0 bulks of the signal end where the support does.
        EXPECT_NEAR(law.with_noise(1e-10).edges().back().high, outer, 1e-7);
    }
}

TEST(RectangularLaw, RefusesWhatHasNoMeaning) {
    test::expect_invalid([] { RectangularLaw(0.5, 0); }, "aspect must be positive");
    test::expect_invalid([] { RectangularLaw(0.5, -2); }, "aspect must be positive");
    test::expect_invalid([] { RectangularLaw(0.5, 1); },
                         "aspect of a rectangular law must be different from 1");
    test::expect_invalid([] { RectangularLaw(0, 2); }, "width must be positive");
    test::expect_invalid([] { FreeConvolution(RectangularLaw(0.5, 2), 0.1); },
                         "aspect of the law of a free convolution must be 1, got 2");
}

}  // namespace
}  // namespace bayesaim::spectral
