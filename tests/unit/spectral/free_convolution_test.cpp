// SPDX-License-Identifier: MIT
// Reference values, closed forms, limits and identities of the engine.
#include "bayesaim/spectral/free_convolution.hpp"

#include <numbers>
#include <vector>

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bayesaim/spectral/atomic_law.hpp"
#include "bayesaim/spectral/bump_law.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

#include "support/expect_invalid.hpp"
#include "support/generators.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::spectral {
namespace {

constexpr double pi = std::numbers::pi;

double wishart_mmse(double width, double noise) { return mmse(MarchenkoPasturLaw(width), noise); }

/// f'(x) by central differences of sixth order with relative step 1/50: the finite-difference error is 1e-9,
/// and round-off of f is multiplied by 50 f/(x f').
template <class Function>
double derivative(Function f, double x) {
    const double h = 0.02 * x;
    return (45 * (f(x + h) - f(x - h)) - 9 * (f(x + 2 * h) - f(x - 2 * h)) + (f(x + 3 * h) - f(x - 3 * h))) /
           (60 * h);
}

TEST(FreeConvolution, MmseHasItsReferenceValues) {
    struct Reference {
        double width, noise, mmse;
    };
    // From an independent implementation, to 11 digits.
    constexpr Reference table[] = {
        {0.5, 0.01, 0.00742272770}, {0.5, 0.1, 0.0665414932026}, {0.5, 0.5, 0.249259331846},
        {0.5, 2, 0.575614203128},   {0.5, 10, 0.893927689667},   {0.1, 0.1, 0.018877467338},
        {0.1, 2, 0.326600472058},   {1, 0.1, 0.0805456705107},   {1, 2, 0.619214839305},
        {2, 0.1, 0.0865469970099},  {2, 2, 0.642450507665}};
    test::WorstError worst(1e-9);
    for (const auto& [width, noise, value] : table) {
        worst.add(test::relative_error(wishart_mmse(width, noise), value),
                  fmt::format("width {}, noise {}", width, noise));
    }
}

RC_GTEST_PROP(FreeConvolution, WishartMmseIsDual, ()) {
    // mmse_rho(D) / D = mmse_{rho D}(1/D)
    const double width = test::log_uniform(1e-4, 1e4);
    const double noise = test::log_uniform(std::max(1e-10, 1e-4 / width), std::min(1e10, 1e4 / width));
    RC_LOG() << "width " << width << ", noise variance " << noise << '\n';
    RC_ASSERT(test::relative_error(wishart_mmse(width, noise) / noise,
                                   wishart_mmse(width * noise, 1 / noise)) <= 1e-9);
}

RC_GTEST_PROP(FreeConvolution, MassMeanAndSecondMomentAreThoseOfTheLaw, ()) {
    const double width = test::log_uniform(1e-4, 1e4), noise = test::log_uniform(1e-10, 1e10);
    RC_LOG() << "width " << width << ", noise variance " << noise << '\n';
    const MarchenkoPasturLaw law(width);
    const FreeConvolution spectrum(law, noise);
    RC_ASSERT(test::relative_error(spectrum.mass(), 1) <= 1e-10);
    RC_ASSERT(test::scaled_error(spectrum.mean(), law.mean(), law.mean() + std::sqrt(1 + noise)) <= 1e-10);
    RC_ASSERT(test::relative_error(spectrum.second_moment(), law.second_moment() + noise) <= 1e-10);
}

RC_GTEST_PROP(FreeConvolution, MmseIsTheNoiseLessTheIntegralOfTheDensityCubed, ()) {
    const double width = test::log_uniform(1e-4, 1e4), noise = test::log_uniform(1e-10, 1e2);
    RC_LOG() << "width " << width << ", noise variance " << noise << '\n';
    const MarchenkoPasturLaw law(width);
    const FreeConvolution spectrum(law, noise);
    const double by_density = noise - 4 * pi * pi * noise * noise / 3 * spectrum.integral_of_density_cubed();
    RC_ASSERT(test::scaled_error(spectrum.mmse(), by_density, noise) <=
              1e-10);  // both are sums over the same nodes
}

TEST(FreeConvolution, WignerPriorGivesTheScalarGaussianLaw) {
    const MarchenkoPasturLaw law = MarchenkoPasturLaw::semicircle();
    test::WorstError worst(1e-12);
    for (const double noise : {1e-10, 1e-5, 0.01, 1.0, 7.0, 99.0, 101.0, 1e5, 1e10}) {
        const FreeConvolution spectrum(law, noise);
        const std::string place = fmt::format("noise {}", noise);
        worst.add(test::relative_error(spectrum.mmse(), noise / (1 + noise)), "mmse, " + place);
        worst.add(test::relative_error(spectrum.at(0).density, 1 / (pi * std::sqrt(1 + noise))),
                  "density, " + place);
        worst.add(
            test::scaled_error(spectrum.log_energy(), 0.5 * std::log1p(noise) - 0.25, 1 + std::log1p(noise)),
            "log energy, " + place);
        const double radius = 2 * std::sqrt(1 + noise);
        for (const double part : {-1.7, -0.9, -0.5, 0.0, 0.3, 0.999, 1.001, 10.0}) {
            const double lambda = part * radius;
            const double outside =
                std::sqrt(std::max(0.0, part * part - 1));  // hilbert = 2 (part -+ outside)/radius
            const double expected = lambda - 4 * noise / radius * (part - std::copysign(outside, part));
            // Round-off of lambda, larger by 20 next to the edge, where the curve is a square root.
            const double scale = 1 + std::abs(lambda) * (std::abs(part) > 0.99 ? 0.05 : 0.01);
            worst.add(test::scaled_error(spectrum.at(lambda).denoised, expected, scale),
                      fmt::format("shrinkage at {}, {}", lambda, place));
        }
        ASSERT_EQ(spectrum.edges().size(), 1U);
        worst.add(test::relative_error(spectrum.edges()[0].high, radius), "edge, " + place);
        worst.add(test::relative_error(spectrum.edges()[0].low, -radius), "edge, " + place);
    }
}

TEST(FreeConvolution, WignerDerivativeIsExactOnBothBranches) {
    const MarchenkoPasturLaw law = MarchenkoPasturLaw::semicircle();
    test::WorstError worst(1e-9);
    for (const double noise : {1e-10, 0.1, 1.0, 99.0, 101.0, 1e4, 1e10}) {
        worst.add(
            test::relative_error(FreeConvolution(law, noise).mmse_derivative(), std::pow(1 + noise, -2)),
            fmt::format("noise {}", noise));
    }
}

TEST(FreeConvolution, WignerFreeEntropyIsThatOfTheScalarGaussianChannel) {
    const MarchenkoPasturLaw law = MarchenkoPasturLaw::semicircle();
    for (const double qhat : {0.0, 1e-8, 1e-3, 0.5, 2.0, 1e3, 1e8}) {
        EXPECT_LE(test::scaled_error(prior_free_entropy(law, qhat), (qhat - std::log1p(qhat)) / 4, 1 + qhat),
                  1e-13)
            << qhat;
    }
}

TEST(FreeConvolution, SmallWidthIsTheRankOneLimit) {
    // mmse -> t (2 - t) for t = rho D < 1, then 1; corrections are of order sqrt(rho).
    for (const double width : {1e-2, 1e-3, 1e-4}) {
        for (const double t : {0.05, 0.3, 0.7, 1.5, 4.0}) {
            const double limit = t < 1 ? t * (2 - t) : 1;
            EXPECT_NEAR(wishart_mmse(width, t / width), limit, 2 * std::sqrt(width))
                << "width " << width << ", t " << t;
        }
    }
}

TEST(FreeConvolution, LargeWidthIsTheWignerLimit) {
    for (const double width : {1e2, 1e3, 1e4}) {
        for (const double noise : {1e-3, 0.1, 1.0, 10.0, 1e3}) {  // the third moment 1/s enters squared
            EXPECT_LE(test::relative_error(wishart_mmse(width, noise), noise / (1 + noise)), 1 / width)
                << width << ", " << noise;
        }
    }
}

TEST(FreeConvolution, WithoutNoiseOnlyAtomsAreKnownBetterThanTheNoise) {
    for (const double width : {1e-3, 0.1, 0.5, 0.9, 1.5, 100.0}) {
        const double atom = std::max(0.0, 1 - width);
        EXPECT_NEAR(wishart_mmse(width, 1e-10) / 1e-10, 1 - atom * atom, 1e-5) << width;  // order sqrt(D)
    }
    EXPECT_NEAR(wishart_mmse(1, 1e-10) / 1e-10, 1, 1e-2);  // hard edge: order D^{1/3}
    const std::vector<double> positions{-1, 0.5, 2}, weights{0.2, 0.3, 0.5};
    const AtomicLaw atoms(positions, weights);
    EXPECT_NEAR(mmse(atoms, 1e-10) / 1e-10, 1 - 0.04 - 0.09 - 0.25, 1e-8);
}

TEST(FreeConvolution, UnderLargeNoiseTheErrorIsThePriorVariance) {
    const std::vector<double> positions{-1, 0.5, 2}, weights{0.2, 0.3, 0.5};
    const AtomicLaw atoms(positions, weights);
    const double v = atoms.variance();
    for (const double noise : {1e5, 1e6, 1e7}) {  // v - v^2/D + O(D^-2)
        const double roundoff = 1e-12 * noise;
        for (const double width :
             {1e-2, 0.5, 1.0, 1e4}) {  // the next term is about the squared third moment 1/width
            EXPECT_LE(test::relative_error(noise * (1 - wishart_mmse(width, noise)), 1),
                      2 * (1 + 1 / width) / noise + roundoff)
                << width << ", " << noise;
        }
        EXPECT_LE(test::relative_error(noise * (v - mmse(atoms, noise)), v * v), 10 / noise + roundoff)
            << noise;
        EXPECT_LE(
            test::relative_error(noise * noise * FreeConvolution(atoms, noise).mmse_derivative(), v * v),
            20 / noise)
            << noise;
    }
    EXPECT_LE(test::relative_error(wishart_mmse(0.5, 1e10), 1), 1e-9);
    EXPECT_LE(test::relative_error(mmse(atoms, 1e10), v), 1e-9);
    EXPECT_LE(test::relative_error(1e20 * FreeConvolution(atoms, 1e10).mmse_derivative(), v * v), 1e-8);
}

TEST(FreeConvolution, MmseDerivativeIsItsFiniteDifference) {
    const AtomicLaw atoms(std::vector<double>{-1, 1});
    const MarchenkoPasturLaw tenth(0.1), half(0.5), one(1), two(2), wide(1e3),
        wigner = MarchenkoPasturLaw::semicircle();
    // Finite difference 1e-9; above D = 100 round-off 1e-14 * 50 D.
    test::WorstError worst(1e-7);
    for (const SpectralLaw* law :
         std::initializer_list<const SpectralLaw*>{&atoms, &tenth, &half, &one, &two, &wide, &wigner}) {
        for (const double noise : {1e-8, 1e-4, 0.3, 3.0, 30.0, 99.0, 101.0, 300.0, 1e4}) {
            const double expected = derivative([&](double d) { return mmse(*law, d); }, noise);
            worst.add(test::relative_error(FreeConvolution(*law, noise).mmse_derivative(), expected),
                      fmt::format("variance {}, mean {}, noise {}", law->variance(), law->mean(), noise));
        }
        const double below = FreeConvolution(*law, 100 * (1 - 1e-12)).mmse_derivative();
        worst.add(test::relative_error(FreeConvolution(*law, 100 * (1 + 1e-12)).mmse_derivative(), below),
                  "the switch");
    }
}

TEST(FreeConvolution, FreeEntropyHasItsReferenceValues) {
    const MarchenkoPasturLaw law(0.5);
    constexpr double printed_digits = 5e-7;
    EXPECT_NEAR(prior_free_entropy(law, 0.5), 0.092309, printed_digits);
    EXPECT_NEAR(prior_free_entropy(law, 2), 0.517688, printed_digits);
    EXPECT_NEAR(prior_free_entropy(law, 8), 2.566634, printed_digits);
    EXPECT_EQ(prior_free_entropy(law, 0), 0);
}

TEST(FreeConvolution, FreeEntropyIsTheIntegralOfTheOverlap) {
    const AtomicLaw atoms(std::vector<double>{-1, 1, 3});
    const MarchenkoPasturLaw narrow(0.01), half(0.5), wide(1e3);
    for (const SpectralLaw* law : std::initializer_list<const SpectralLaw*>{&atoms, &narrow, &half, &wide}) {
        const auto quarter_overlap = [&](double s) {
            return 0.25 * (law->second_moment() - mmse(*law, 1 / s));
        };
        for (const double qhat : {0.5, 2.0, 8.0}) {
            using boost::math::quadrature::gauss_kronrod;
            const double integral =
                gauss_kronrod<double, 31>::integrate(quarter_overlap, 0.0, qhat, 8, 1e-11);
            EXPECT_LE(test::relative_error(prior_free_entropy(*law, qhat), integral), 1e-9) << qhat;
        }
    }
}

TEST(FreeConvolution, BadInputIsNamed) {
    const MarchenkoPasturLaw law(1);
    const auto with_noise = [&](double noise) { return [=, &law] { FreeConvolution(law, noise); }; };
    test::expect_invalid(with_noise(0), "noise variance must be positive and finite, got 0");
    test::expect_invalid(with_noise(-1), "noise variance must be positive and finite, got -1");
    test::expect_invalid(with_noise(test::not_a_number),
                         "noise variance must be positive and finite, got nan");
    test::expect_invalid(with_noise(test::infinity), "noise variance must be positive and finite, got inf");
    test::expect_invalid([&] { mmse(law, -2); }, "noise variance must be positive and finite, got -2");
    test::expect_invalid([&] { FreeConvolution(law, 1).at(test::not_a_number); },
                         "eigenvalue must be between -1e+70 and 1e+70, got nan");
    test::expect_invalid([&] { prior_free_entropy(law, -1); },
                         "inverse noise variance must be non-negative and finite, got -1");
    test::expect_invalid([&] { prior_free_entropy(law, test::not_a_number); },
                         "inverse noise variance must be non-negative and finite, got nan");
}

TEST(FreeConvolution, RefusesEigenvaluesWhoseNumbersOverflow) {
    const std::vector<Bump> bumps = {{-1, 0.5, 0.1}, {1, 0.5, 0}};
    const BumpLaw law(bumps);
    const FreeConvolution spectrum(law, 1);
    EXPECT_EQ(spectrum.at(1e70).density, 0);
    test::expect_invalid([&] { spectrum.at(1e300); },
                         "eigenvalue must be between -1e+70 and 1e+70, got 1e+300");

    const std::vector<Bump> far = {{1e140, 1, 1}};  // an ordinary eigenvalue is far from its mean
    const BumpLaw far_law(far);
    const FreeConvolution far_spectrum(far_law, 1);
    test::expect_invalid([&] { far_spectrum.at(2); }, "eigenvalue must be between 1e+140 and 1e+140, got 2");
}

TEST(FreeConvolution, RefusesLawsWhoseNumbersOverflow) {
    const std::vector<double> far = {-1e80, 1e80};
    const AtomicLaw law(far);
    test::expect_invalid([&] { FreeConvolution(law, 1); },
                         "variance of the law must be between 1e-60 and 1e+60");
}

// Its bulks are a few neighbouring numbers wide; their mass was wrong by a tenth, and so was the error.
TEST(FreeConvolution, RefusesBulksThatDoublePrecisionDoesNotResolve) {
    const std::vector<double> far = {-1e15, 1, 1e15}, near = {-1e10, 1, 1e10};
    const AtomicLaw unresolved(far), resolved(near);
    test::expect_invalid([&] { FreeConvolution(unresolved, 0.1); },
                         "noise variance must be one at which this spectrum can be resolved, got 0.1");
    EXPECT_NEAR(FreeConvolution(resolved, 0.1).mmse(), 0.1 * 2 / 3, 1e-6);
}

// The bulks of the light atoms have no width in double precision; they made the error NaN.
TEST(FreeConvolution, AtomsOfNextToNoWeightDoNotMatter) {
    const std::vector<double> values = {1, 2, -1}, weights = {5e-20, 1, 1e-19};
    const AtomicLaw law(values, weights);
    const FreeConvolution spectrum(law, 1e-12);
    EXPECT_NEAR(spectrum.mass(), 1, 1e-9);
    EXPECT_GE(spectrum.mmse(), 0);
    EXPECT_LE(spectrum.mmse(), 1e-12);

    // A bulk that reaches from one neighbour of the atom to the other: all its nodes are one.
    const std::vector<double> two = {0.5, 0}, lightest = {5e-324, 1};
    const AtomicLaw almost_one(two, lightest);
    const FreeConvolution semicircle(almost_one, 1e-6);
    EXPECT_NEAR(semicircle.mass(), 1, 1e-9);
    EXPECT_NEAR(semicircle.mmse(), 0, 1e-20);
    EXPECT_NEAR(semicircle.mmse_derivative(), 0, 1e-20);
}

// At the light atom itself, where G has its pole, this threw an error of Boost. On both sides of it the shrinkage is the
// heavy atom's.
TEST(FreeConvolution, HasValuesAtAnAtomOfNextToNoWeight) {
    const std::vector<double> values = {80, 1e12}, weights = {1, 2e-12};
    const AtomicLaw law(values, weights);
    const FreeConvolution spectrum(law, 0.5);
    EXPECT_EQ(spectrum.edges().size(), 1u);
    for (const double place : {9e11, 1e12, 1.1e12}) {
        const SpectrumPoint point = spectrum.at(place);
        EXPECT_EQ(point.density, 0) << place;
        EXPECT_NEAR(point.denoised, place, 1e-2) << place;
        EXPECT_NEAR(point.hilbert * place, 1, place == 1e12 ? 1e5 : 1e-6) << place;
        EXPECT_NEAR(spectrum.cumulative(place), 1, 1e-9) << place;
    }
    EXPECT_NEAR(spectrum.above(100).mass, 0, 1e-9);
    EXPECT_NEAR(spectrum.above(1e12).mass, 0, 1e-9);

    // Here D^{1/2} is below the roundings of the last atom, whose bulk had an end that is no number.
    const std::vector<double> farther = {43, 1e30}, lighter = {1, 3e-29};
    const AtomicLaw far(farther, lighter);
    EXPECT_NEAR(FreeConvolution(far, 26).at(95).hilbert, (52 - std::sqrt(52 * 52 - 104)) / 52, 1e-6);
}

}  // namespace
}  // namespace bayesaim::spectral
