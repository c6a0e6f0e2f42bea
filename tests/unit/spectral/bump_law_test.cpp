// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/bump_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bayesaim/core/random.hpp"
#include "bayesaim/spectral/atomic_law.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::spectral {
namespace {

using Bumps = std::vector<Bump>;

/// Each bump replaced by the atoms of Gauss's rule for the semicircle, 2b cos(k pi/(n+1)); the error decays
/// exponentially in n times the distance from the real axis.
AtomicLaw in_atoms(const Bumps& bumps, int count) {
    std::vector<double> positions, weights;
    for (const Bump& bump : bumps) {
        if (bump.variance == 0) {
            positions.push_back(bump.centre);
            weights.push_back(bump.weight);
            continue;
        }
        for (int k = 1; k <= count; ++k) {
            const double angle = std::numbers::pi * k / (count + 1);
            positions.push_back(bump.centre + 2 * std::sqrt(bump.variance) * std::cos(angle));
            weights.push_back(bump.weight * 2 / (count + 1) * std::pow(std::sin(angle), 2));
        }
    }
    return AtomicLaw(positions, weights);
}

/// An atom inside an interval, and one outside.
const Bumps with_atoms{{-2, 0.1, 0.04}, {0, 0.4, 0}, {0.1, 0.2, 0.09}, {1.5, 0.2, 0.25}, {3.5, 0.1, 0}};

/// Sixty bumps around an atom at 0, as a learned law has them; every third weight is tiny.
Bumps many(double variance) {
    Bumps bumps{{0, 0.4, 0}};
    double sum = 0;
    for (int j = 0; j < 60; ++j) {
        bumps.push_back({-1.5 + 0.08 * j, j % 3 == 1 ? 1e-9 : 1.5 + std::cos(0.4 * j), variance});
        sum += bumps.back().weight;
    }
    for (std::size_t j = 1; j < bumps.size(); ++j) bumps[j].weight *= 0.6 / sum;
    return bumps;
}

void expect_same_spectrum(const Bumps& bumps, double noise_variance, int atoms, double tolerance) {
    const BumpLaw law(bumps);
    const AtomicLaw reference = in_atoms(bumps, atoms);
    EXPECT_NEAR(law.mean(), reference.mean(), 1e-13);
    EXPECT_NEAR(law.variance(), reference.variance(), 1e-13);
    const FreeConvolution actual(law, noise_variance), expected(reference, noise_variance);
    EXPECT_NEAR(actual.mass(), 1, tolerance);
    EXPECT_NEAR(actual.mmse() / noise_variance, expected.mmse() / noise_variance, tolerance);
    EXPECT_NEAR(actual.mmse_derivative(), expected.mmse_derivative(), 10 * tolerance);
    EXPECT_NEAR(actual.log_energy(), expected.log_energy(), 10 * tolerance);
    for (const Interval& bulk : actual.edges()) {
        for (const double part : {0.01, 0.2, 0.4, 0.5, 0.7, 0.95}) {
            const double lambda = bulk.low + part * (bulk.high - bulk.low);
            if (actual.at(lambda).density < 0.05) continue;  // so near the axis the atoms are seen one by one
            EXPECT_NEAR(actual.at(lambda).denoised, expected.at(lambda).denoised, 1e-7) << lambda;
            EXPECT_NEAR(actual.at(lambda).density, expected.at(lambda).density, 1e-6) << lambda;
        }
    }
}

TEST(BumpLaw, AgreesWithManyAtoms) {
    for (const double noise_variance : {0.05, 0.3, 2.0, 50.0}) {
        SCOPED_TRACE(noise_variance);
        expect_same_spectrum(with_atoms, noise_variance, 400, 1e-5);
        const AtomicLaw atoms = in_atoms(with_atoms, 400);
        const BumpLaw law(with_atoms);
        const auto actual = FreeConvolution(law, noise_variance).edges();
        const auto expected = FreeConvolution(atoms, noise_variance).edges();
        ASSERT_EQ(actual.size(), expected.size());
        for (std::size_t i = 0; i < actual.size(); ++i) {
            EXPECT_NEAR(actual[i].low, expected[i].low, 1e-6) << i;
            EXPECT_NEAR(actual[i].high, expected[i].high, 1e-6) << i;
        }
    }
}

TEST(BumpLaw, SixtyBumpsAndAnAtomAgreeWithAtoms) {
    constexpr double noise_variance = 0.3;
    expect_same_spectrum(many(0.36 * noise_variance), noise_variance, 40, 1e-5);
}

TEST(BumpLaw, OneBumpIsTheSemicircle) {
    constexpr double spread = 1.7;
    const Bumps one{{0.4, 1, spread * spread}};
    const BumpLaw law(one);
    const ScaledLaw semicircle(std::make_shared<MarchenkoPasturLaw>(MarchenkoPasturLaw::semicircle()),
                               spread);
    for (const Complex z : {Complex(0.1, 0.2), Complex(-3.39, 1e-3), Complex(5, 0), Complex(-1e6, 1e5)}) {
        EXPECT_LE(std::abs(law.stieltjes(z).value / semicircle.stieltjes(z).value - 1.0), 1e-14);
        EXPECT_LE(std::abs(law.stieltjes(z).derivative / semicircle.stieltjes(z).derivative - 1.0), 1e-11);
        EXPECT_LE(std::abs(law.moment_transform(z).value / semicircle.moment_transform(z).value - 1.0),
                  1e-12);
        EXPECT_NEAR(law.log_potential(z), semicircle.log_potential(z), 1e-13);
    }
    for (const double noise_variance : {1e-8, 1e-3, 1.0, 1e6}) {
        const double variance = spread * spread;
        EXPECT_LE(test::relative_error(mmse(law, noise_variance), variance / (1 + variance / noise_variance)),
                  1e-6)
            << noise_variance;
    }
}

TEST(BumpLaw, DensityHasTheMomentsOfTheLaw) {
    const Bumps bumps{{-2, 0.3, 0.04}, {0.1, 0.2, 0.09}, {1.5, 0.5, 0.25}};
    const BumpLaw law(bumps);
    constexpr int count = 20000;
    double mass = 0, mean = 0, second = 0;
    for (const Interval& part : law.centred_support()) {
        const double step = (part.high - part.low) / count;
        for (int i = 0; i < count; ++i) {
            const double x = part.low + (i + 0.5) * step;
            const double weight = -law.stieltjes({x, 0}).value.imag() / std::numbers::pi * step;
            mass += weight;
            mean += weight * (x + law.mean());
            second += weight * std::pow(x + law.mean(), 2);
        }
    }
    constexpr double midpoint = 1e-5;  // next to square-root edges the rule errs as step^{3/2}
    EXPECT_NEAR(mass, 1, midpoint);
    EXPECT_NEAR(mean, law.mean(), midpoint);
    EXPECT_NEAR(second, law.second_moment(), midpoint);
}

TEST(BumpLaw, MomentTransformKeepsItsDigitsFarAway) {
    const BumpLaw law(with_atoms);
    for (const double distance : {10.0, 1e4, 1e8, 1e14}) {
        const Complex z = std::polar(distance, 1.1);
        const Complex leading = law.variance() / (z * z);
        EXPECT_LE(std::abs(law.moment_transform(z).value / leading - 1.0), 4 / distance + 1e-14) << distance;
        EXPECT_LE(std::abs(law.moment_transform(z).derivative * z / leading + 2.0), 12 / distance + 1e-14)
            << distance;
    }
}

TEST(BumpLaw, SupportIsTheUnionOfTheIntervals) {
    const BumpLaw law(with_atoms);
    const auto support = law.centred_support();
    ASSERT_EQ(support.size(), 3U);  // [-2.4, -1.6], [-0.5, 2.5] around the atom at 0, and the atom at 3.5
    EXPECT_NEAR(support[0].high + law.mean(), -1.6, 1e-14);
    EXPECT_NEAR(support[1].low + law.mean(), -0.5, 1e-14);
    EXPECT_NEAR(support[1].high + law.mean(), 2.5, 1e-14);
    EXPECT_EQ(support[2].low, support[2].high);
    EXPECT_NEAR(law.atomic_concentration(), 0.16 + 0.01, 1e-15);
    const Bumps halves{{1, 0.25, 0}, {1, 0.25, 0}, {2, 0.5, 0.1}};
    EXPECT_NEAR(BumpLaw(halves).atomic_concentration(), 0.25, 1e-15);
}

/// A gap of 1e-7, and the same law without it.
TEST(BumpLaw, ANarrowGapHardlyMatters) {
    for (const double noise_variance : {1e-6, 1e-3, 0.1, 3.0}) {
        const Bumps open{{0, 0.5, 0.25}, {2 + 1e-7, 0.5, 0.25}}, closed{{0, 0.5, 0.25}, {2, 0.5, 0.25}};
        const double error = mmse(BumpLaw(open), noise_variance);
        EXPECT_LE(test::relative_error(error, mmse(BumpLaw(closed), noise_variance)), 1e-5) << noise_variance;
    }
}

TEST(BumpLaw, ErrorTendsToThatOfTheAtoms) {
    for (const double variance : {0.0, 1e-4}) {
        const BumpLaw law(many(variance));
        const double noise_variance = 1e-9, limit = 1 - law.atomic_concentration();
        EXPECT_NEAR(mmse(law, noise_variance) / noise_variance, limit, variance == 0 ? 1e-4 : 2e-2);
    }
}

/// Bumps and atoms anywhere, weights down to 1e-12, neighbours that touch; D from 1e-6 to 1e3.
TEST(BumpLaw, AnyMixtureHasASpectrumUnderNoise) {
    const RandomStream stream(1, Purpose::noise);
    for (std::uint64_t draw = 0; draw < 150; ++draw) {
        std::array<double, 100> numbers{};
        stream.fill_uniform(numbers, 100 * draw);
        std::size_t used = 0;
        const auto uniform = [&] { return numbers.at(used++); };
        const double noise_variance = std::pow(10, -6 + 9 * uniform());
        const double spread =
            draw % 4 == 0 ? 0.6 * std::sqrt(noise_variance) : std::pow(10, -4 + 4.5 * uniform());
        Bumps bumps;
        double sum = 0;
        for (int j = 0, count = 1 + static_cast<int>(16 * uniform()); j < count; ++j) {
            const double centre =
                draw % 4 == 1 ? 4 * spread * j * (1 + 1e-9 * uniform()) : -2 + 5 * uniform();
            const double weight = j % 3 == 2 ? std::pow(10, -12 * uniform()) : 1e-3 + uniform();
            const bool atom = draw % 4 == 2 && uniform() < 0.5;
            bumps.push_back({centre, weight, atom ? 0 : spread * spread});
            sum += weight;
        }
        bumps.push_back({0, 0.5 * sum, 0});
        for (Bump& bump : bumps) bump.weight /= 1.5 * sum;
        const BumpLaw law(bumps);
        SCOPED_TRACE(fmt::format("draw {}, D = {}, spread {}", draw, noise_variance, spread));
        const FreeConvolution spectrum(law, noise_variance);
        EXPECT_NEAR(spectrum.mass(), 1, 2e-4);
        EXPECT_LE(spectrum.mmse(), 1.001 * std::min(noise_variance, law.variance()));
        const double low = spectrum.edges().front().low, high = spectrum.edges().back().high;
        double last = -test::infinity, below = 0;
        for (int i = 0; i <= 50; ++i) {
            const double lambda = low + (high - low) * (1.2 * i / 50 - 0.1);
            const double denoised = spectrum.at(lambda).denoised, cumulative = spectrum.cumulative(lambda);
            EXPECT_GE(denoised, last - 1e-8) << lambda;
            EXPECT_GE(cumulative, below - 2e-4) << lambda;
            last = denoised;
            below = cumulative;
        }
        for (std::size_t i = 1; i < spectrum.edges().size(); ++i)
            EXPECT_GE(spectrum.edges()[i].low, spectrum.edges()[i - 1].high - 1e-12) << i;
    }
}

TEST(BumpLaw, RefusesWhatIsNoLaw) {
    test::expect_invalid([] { BumpLaw law{Bumps{}}; }, "number of bumps must be at least 1, got 0");
    test::expect_invalid([] { BumpLaw law{Bumps{{0, 0.5, 1}}}; }, "sum of the weights must be 1, got 0.5");
    test::expect_invalid([] { BumpLaw law{Bumps{{0, 1, -1}}}; }, "variance of bump 1");
    test::expect_invalid([] { BumpLaw law{Bumps{{0, 0.5, 1}, {0, -0.5, 1}}}; }, "weight of bump 2");
    test::expect_invalid([] { BumpLaw law{Bumps{{1e155, 1, 1}}}; },
                         "second moment of the bumps must be a finite number, got inf");
}

}  // namespace
}  // namespace bayesaim::spectral
