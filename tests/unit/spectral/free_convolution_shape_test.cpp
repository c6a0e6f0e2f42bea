// SPDX-License-Identifier: MIT
// Positivity, monotonicity and continuity of the spectrum; laws made of atoms.
#include <numbers>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bayesaim/spectral/atomic_law.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

#include "support/generators.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::spectral {
namespace {

constexpr double pi = std::numbers::pi;

/// Up to seven atoms anywhere.
AtomicLaw random_atoms() {
    const int count = test::integer(1, 7);
    std::vector<double> positions, weights;
    double total = 0;
    for (int i = 0; i < count; ++i) {
        positions.push_back(test::uniform(-3, 3));
        weights.push_back(test::log_uniform(1e-3, 1));
        total += weights.back();
    }
    for (double& weight : weights) weight /= total;
    return {positions, weights};
}

/// Points across the support, its gaps and as much beyond; none is the outer edge.
std::vector<double> grid(const FreeConvolution& spectrum, int count) {
    const double low = spectrum.edges().front().low, high = spectrum.edges().back().high;
    std::vector<double> points;
    for (int i = 0; i < count; ++i) points.push_back(low + (high - low) * (2 * (i + 0.37) / count - 0.5));
    return points;
}

/// Density not negative, zero outside the bulks only; shrinkage increasing and continuous.
void check_shape(const SpectralLaw& law, double noise) {
    const FreeConvolution spectrum(law, noise);
    const auto edges = spectrum.edges();
    const double roundoff = 32 * test::epsilon * (std::abs(law.mean()) + std::sqrt(law.variance() + noise));
    double last = -test::infinity;
    for (const double lambda : grid(spectrum, 200)) {
        const SpectrumPoint point = spectrum.at(lambda);
        bool inside = false;
        for (const Interval& bulk : edges) inside = inside || (bulk.low < lambda && lambda < bulk.high);
        RC_ASSERT((inside ? point.density > 0 : point.density == 0));
        RC_ASSERT(point.denoised >= last - roundoff);
        RC_ASSERT(test::scaled_error(point.denoised, lambda - 2 * noise * point.hilbert,
                                     std::abs(lambda) + 1) <= 1e-9);
        last = point.denoised;
    }
    for (std::size_t i = 0; i < edges.size(); ++i) {
        RC_ASSERT(edges[i].low < edges[i].high);
        if (i > 0) RC_ASSERT(edges[i - 1].high < edges[i].low);
        for (const double edge : {edges[i].low, edges[i].high}) {
            // Square root on the outer side: a step of 1e-12 moves the shrinkage by 1e-6.
            const double step = 1e-12 * (edges[i].high - edges[i].low) +
                                4 * test::epsilon * (std::abs(edge) + std::abs(law.mean()));
            const double jump = spectrum.at(edge + step).denoised - spectrum.at(edge - step).denoised;
            RC_ASSERT(jump >= -roundoff);
            RC_ASSERT(jump <= 1e-4 * std::sqrt(law.variance() + noise));
        }
    }
}

RC_GTEST_PROP(FreeConvolution, WishartDensityIsNotNegativeAndShrinkageIsIncreasingAndContinuous, ()) {
    const double width = test::log_uniform(1e-4, 1e4), noise = test::log_uniform(1e-8, 1e8);
    RC_LOG() << "width " << width << ", noise variance " << noise << '\n';
    check_shape(MarchenkoPasturLaw(width), noise);
}

RC_GTEST_PROP(FreeConvolution, AtomsDensityIsNotNegativeAndShrinkageIsIncreasingAndContinuous, ()) {
    const AtomicLaw law = random_atoms();
    check_shape(law, test::log_uniform(1e-6, 1e4));
}

RC_GTEST_PROP(FreeConvolution, AtomsKeepMassMeanSecondMomentAndErrorIdentity, ()) {
    const AtomicLaw law = random_atoms();
    const double noise = test::log_uniform(1e-10, 1e4);
    RC_LOG() << "noise variance " << noise << '\n';
    const FreeConvolution spectrum(law, noise);
    const double scale = std::sqrt(law.second_moment() + noise);
    RC_ASSERT(test::relative_error(spectrum.mass(), 1) <= 1e-10);
    RC_ASSERT(test::scaled_error(spectrum.mean(), law.mean(), scale) <= 1e-10);
    RC_ASSERT(test::scaled_error(spectrum.second_moment(), law.second_moment() + noise, scale * scale) <=
              1e-10);
    const double by_density = noise - 4 * pi * pi * noise * noise / 3 * spectrum.integral_of_density_cubed();
    RC_ASSERT(test::scaled_error(spectrum.mmse(), by_density, noise) <= 1e-10);
    RC_ASSERT(spectrum.mmse() >= 0);
    RC_ASSERT(spectrum.mmse() <= std::min(noise, law.variance()) * (1 + 1e-10));
}

RC_GTEST_PROP(FreeConvolution, TheMeanShiftsTheSpectrumAndNothingElse, ()) {
    const double shift = test::uniform(-50, 50), noise = test::log_uniform(1e-3, 1e3);
    const std::vector<double> at_zero{-1, 0.5, 2}, weights{0.2, 0.3, 0.5};
    std::vector<double> moved = at_zero;
    for (double& x : moved) x += shift;
    const AtomicLaw law(at_zero, weights), moved_law(moved, weights);
    const FreeConvolution a(law, noise), b(moved_law, noise);
    constexpr double roundoff = 1e-11;  // of positions near 50, in an error of at least 1e-3
    RC_ASSERT(test::relative_error(b.mmse(), a.mmse()) <= roundoff);
    const SpectrumPoint p = a.at(0.3), q = b.at(0.3 + shift);
    RC_ASSERT(test::scaled_error(q.density, p.density, 1 + p.density) <= roundoff);
    RC_ASSERT(test::scaled_error(q.denoised - shift, p.denoised, 1 + std::abs(shift)) <= roundoff);
}

TEST(FreeConvolution, OneAtomIsKnownExactlyAndLeavesTheSemicircle) {
    const AtomicLaw law(std::vector<double>{3});
    for (const double noise : {1e-10, 0.25, 1e10}) {
        const FreeConvolution spectrum(law, noise);
        const double radius = 2 * std::sqrt(noise);
        EXPECT_LE(std::abs(spectrum.mmse()), 1e-15 * noise) << noise;
        EXPECT_LE(std::abs(spectrum.mmse_derivative()), 1e-12) << noise;
        ASSERT_EQ(spectrum.edges().size(), 1U);
        const double roundoff = 8 * test::epsilon * (3 + radius);
        EXPECT_NEAR(spectrum.edges()[0].high, 3 + radius, roundoff) << noise;
        for (const double part : {-1.5, -0.9, 0.0, 0.5, 2.0}) {
            const SpectrumPoint point = spectrum.at(3 + part * radius);
            const double semicircle =
                std::abs(part) < 1 ? std::sqrt(1 - part * part) / (pi * std::sqrt(noise)) : 0;
            EXPECT_NEAR(point.density, semicircle, 1e-10 / std::sqrt(noise)) << noise << ", " << part;
            // Outside, where no eigenvalue is for large d, the formula goes on as sqrt(x^2 - 4 D).
            const double outside = std::copysign(radius * std::sqrt(std::max(0.0, part * part - 1)), part);
            EXPECT_NEAR(point.denoised, 3 + outside, roundoff) << noise << ", " << part;
        }
    }
}

/// Middles of n cells of equal probability under Marchenko-Pastur, width > 1.
std::vector<double> marchenko_pastur_quantiles(double width, int n) {
    const double s = std::sqrt(width), middle = 1 / s + s;
    std::vector<double> quantiles;
    constexpr int steps = 400'000;
    double below = 0;
    for (int k = 0; k < steps && static_cast<int>(quantiles.size()) < n; ++k) {
        // x = middle - 2 cos(theta): density s sqrt(...)/(2 pi x) dx = s 4 sin^2 / (2 pi x) dtheta
        const double theta = pi * (k + 0.5) / steps, x = middle - 2 * std::cos(theta);
        const double mass = 2 * s * std::pow(std::sin(theta), 2) / (pi * x) * (pi / steps);
        const double level = (static_cast<double>(quantiles.size()) + 0.5) / n;
        if (below + mass >= level)
            quantiles.push_back(x + (level - below - 0.5 * mass) / mass * 2 * std::sin(theta) * pi / steps);
        below += mass;
    }
    return quantiles;
}

TEST(FreeConvolution, ManyAtomsAreCloseToTheLawTheyAreTakenFrom) {
    const MarchenkoPasturLaw continuous(2);
    const auto quantiles = marchenko_pastur_quantiles(2, 2000);
    ASSERT_EQ(quantiles.size(), 2000U);
    const AtomicLaw atoms(quantiles);
    constexpr double discretisation = 1.0 / 2000;  // from the ends of the spectrum
    EXPECT_NEAR(atoms.variance(), 1, discretisation);
    for (const double noise : {0.01, 0.1, 1.0, 10.0}) {
        const FreeConvolution a(atoms, noise), b(continuous, noise);
        EXPECT_LE(test::relative_error(a.mass(), 1), 1e-10);
        EXPECT_LE(test::relative_error(a.mmse(), b.mmse()), discretisation) << noise;
        EXPECT_NEAR(a.log_energy(), b.log_energy(), discretisation) << noise;
        for (const double lambda : {0.5, 1.5, 3.0, 8.0}) {
            EXPECT_NEAR(a.at(lambda).density, b.at(lambda).density, discretisation) << lambda;
            EXPECT_NEAR(a.at(lambda).denoised, b.at(lambda).denoised, discretisation) << lambda;
        }
    }
    // With little noise each atom is seen.
    EXPECT_EQ(FreeConvolution(AtomicLaw(std::vector<double>{-2, -1, 0, 1, 2}), 1e-3).edges().size(), 5U);
}

TEST(FreeConvolution, UnequalAtomsHaveBulksOfTheirWeight) {
    const std::vector<double> positions{-1, 0.5, 2}, weights{0.2, 0.3, 0.5};
    const AtomicLaw law(positions, weights);
    const double noise = 1e-8;
    const FreeConvolution spectrum(law, noise);
    const auto edges = spectrum.edges();
    ASSERT_EQ(edges.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {  // a semicircle of radius 2 sqrt(weight D); corrections of order D
        EXPECT_NEAR(0.5 * (edges[i].low + edges[i].high), positions[i], 10 * noise);
        EXPECT_LE(test::relative_error(edges[i].high - edges[i].low, 4 * std::sqrt(weights[i] * noise)),
                  1e-6);
        EXPECT_LE(test::relative_error(spectrum.at(positions[i]).density, std::sqrt(weights[i] / noise) / pi),
                  1e-6);
    }
}

/// Midpoint sums between points of the spectrum. Under the map c - h cos(t) the edges are smooth.
TEST(FreeConvolution, CumulativeIsTheIntegralOfTheDensity) {
    const std::vector<double> positions{-1, 0, 2.5}, weights{0.3, 0.5, 0.2};
    const AtomicLaw atoms(positions, weights);
    const MarchenkoPasturLaw narrow(0.2), wide(3);
    for (const SpectralLaw* law : std::vector<const SpectralLaw*>{&atoms, &narrow, &wide}) {
        for (const double noise : {1e-4, 0.06, 0.5, 20.0}) {
            const FreeConvolution spectrum(*law, noise);
            double sum = 0;
            for (const Interval& bulk : spectrum.edges()) {
                EXPECT_NEAR(spectrum.cumulative(bulk.low), sum, 1e-8);
                constexpr int count = 2000;
                const double centre = 0.5 * (bulk.low + bulk.high), half = 0.5 * (bulk.high - bulk.low);
                for (int i = 0; i < count; ++i) {
                    const double angle = pi * (i + 0.5) / count;
                    const double lambda = centre - half * std::cos(angle);
                    sum += spectrum.at(lambda).density * half * std::sin(angle) * pi / count;
                    if (i % 250 == 3) {
                        const double next = centre - half * std::cos(angle + 0.5 * pi / count);
                        EXPECT_NEAR(spectrum.cumulative(next), sum, 1e-6) << noise << ", lambda = " << next;
                    }
                }
                EXPECT_NEAR(spectrum.cumulative(bulk.high), sum, 1e-8);
            }
            EXPECT_EQ(spectrum.cumulative(spectrum.edges().front().low - 1), 0);
            EXPECT_NEAR(spectrum.cumulative(spectrum.edges().back().high + 1), 1, 1e-12);
        }
    }
}

TEST(FreeConvolution, LogPotentialHasTheHilbertTransformAsSlope) {
    for (const double width : {0.2, 3.0}) {
        const MarchenkoPasturLaw law(width);
        const FreeConvolution spectrum(law, 0.3);
        constexpr double step = 1e-4;
        for (const double lambda : grid(spectrum, 40)) {
            const double slope =
                (spectrum.log_potential(lambda + step) - spectrum.log_potential(lambda - step)) / (2 * step);
            EXPECT_NEAR(slope, spectrum.at(lambda).hilbert, 1e-4)
                << lambda;  // next to edges; step^2 elsewhere
        }
        EXPECT_NEAR(spectrum.log_potential(1e6), std::log(1e6 - law.mean()), 1e-11);
    }
}

}  // namespace
}  // namespace bayesaim::spectral
