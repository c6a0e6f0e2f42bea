// SPDX-License-Identifier: MIT
// What the engine takes for granted of every law: transforms of one and the same centred probability law.
#include <functional>
#include <memory>
#include <numbers>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bayesaim/spectral/atomic_law.hpp"
#include "bayesaim/spectral/bump_law.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/spectral/power_law.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::spectral {
namespace {

using Laws = std::vector<std::pair<std::string, std::shared_ptr<const SpectralLaw>>>;

const Laws& laws() {
    static const Laws all = [] {
        Laws list;
        for (const double width : {1e-4, 1e-2, 0.1, 0.5, 0.99, 1.0, 2.0, 30.0, 1e2, 1e4}) {
            list.emplace_back(fmt::format("width {}", width), std::make_shared<MarchenkoPasturLaw>(width));
        }
        list.emplace_back("semicircle",
                          std::make_shared<MarchenkoPasturLaw>(MarchenkoPasturLaw::semicircle()));
        const std::vector<double> one{3}, two{-1, 1}, three{5, -2, 0.5}, weights{0.2, 0.7, 0.1};
        list.emplace_back("one atom", std::make_shared<AtomicLaw>(one));
        list.emplace_back("two atoms", std::make_shared<AtomicLaw>(two));
        list.emplace_back("three atoms", std::make_shared<AtomicLaw>(three, weights));
        const std::vector<Bump> bumps{{-3, 0.2, 0.3}, {0, 0.3, 0}, {0.5, 0.4, 0.25}, {6, 0.1, 1e-4}};
        list.emplace_back("bumps", std::make_shared<BumpLaw>(bumps));
        for (const auto& [exponent, width, cutoff] : {std::tuple{0.1, 1.0, 1e-6},
                                                      {0.5, 0.3, 1e-3},
                                                      {1.0, 1.0, 1.0},
                                                      {1.5, 0.5, 1e-2},
                                                      {3.0, 1.0, 0.1}}) {
            list.emplace_back(fmt::format("power law {} {} {}", exponent, width, cutoff),
                              std::make_shared<PowerLaw>(exponent, width, cutoff));
        }
        return list;
    }();
    return all;
}

/// Points of the upper half plane around every end of the support, from 1e-3 to 1e3 away.
void for_each_point(const std::function<void(const SpectralLaw&, Complex, const std::string&)>& check) {
    for (const auto& [name, law] : laws()) {
        for (const Interval& part : law->centred_support()) {
            for (const double x : {part.low, 0.5 * (part.low + part.high), part.high}) {
                for (const double radius : {1e-3, 0.1, 1.0, 10.0, 1e3}) {
                    for (const double angle : {0.2, 1.0, 1.6, 2.9}) {
                        const Complex z = x + std::polar(radius, angle);
                        check(*law, z, fmt::format("{}, z = {} + {}i", name, z.real(), z.imag()));
                    }
                }
            }
        }
    }
}

/// Derivative of an analytic function by Cauchy's formula on a circle inside the upper half plane; the
/// trapezoidal rule with n points errs by (radius / distance to the real axis)^n = 0.4^32 = 2e-13.
constexpr double circle = 0.4;
constexpr int circle_points = 32;

template <class Function>
Complex circle_average(Complex z, Function f) {
    Complex sum = 0;
    for (int k = 0; k < circle_points; ++k) {
        const Complex direction = std::polar(1.0, 2 * std::numbers::pi * k / circle_points);
        sum += f(z + circle * z.imag() * direction) * std::conj(direction);
    }
    return sum / (circle_points * circle * z.imag());
}

// Cauchy's rule and round-off of values divided by the radius of the circle.
constexpr double cauchy_tolerance = 1e-11;

TEST(SpectralLaw, DerivativesOfTheTransformsAreTheirDerivatives) {
    test::WorstError worst(cauchy_tolerance);
    for_each_point([&](const SpectralLaw& law, Complex z, const std::string& place) {
        const auto g = law.stieltjes(z), m = law.moment_transform(z);
        const Complex g_slope = circle_average(z, [&](Complex w) { return law.stieltjes(w).value; });
        const Complex m_slope = circle_average(z, [&](Complex w) { return law.moment_transform(w).value; });
        // Round-off of z itself, moved by 1/s: epsilon |z| relative to the height.
        const double scale = std::max(1.0, 1e-4 * std::abs(z) / z.imag());
        worst.add(std::abs(g.derivative - g_slope) * z.imag() / std::abs(g.value) / scale, "G', " + place);
        if (law.variance() > 0) {
            worst.add(std::abs(m.derivative - m_slope) * z.imag() / std::abs(m.value) / scale,
                      "M', " + place);
        }
    });
}

TEST(SpectralLaw, MomentTransformIsZTimesGMinusOne) {
    test::WorstError worst(1);
    for_each_point([&](const SpectralLaw& law, Complex z, const std::string& place) {
        const Complex zg = z * law.stieltjes(z).value;
        // Round-off of z G, and of z next to the support.
        const double roundoff = 16 * test::epsilon * (1 + std::abs(zg)) * (1 + std::abs(z) / z.imag());
        worst.add(std::abs(law.moment_transform(z).value - (zg - 1.0)) / roundoff, place);
    });
}

TEST(SpectralLaw, LogPotentialHasTheStieltjesTransformAsGradient) {
    test::WorstError worst(cauchy_tolerance);
    for_each_point([&](const SpectralLaw& law, Complex z, const std::string& place) {
        // For a harmonic Re F the circle sees F'/2.
        const Complex gradient = 2.0 * circle_average(z, [&](Complex w) { return law.log_potential(w); });
        const double scale = std::abs(law.stieltjes(z).value) +
                             1e-4 * (1 + std::abs(law.log_potential(z))) / z.imag();  // round-off
        worst.add(std::abs(gradient - law.stieltjes(z).value) / scale, place);
    });
}

TEST(SpectralLaw, FarAwayTheTransformsShowMassMeanAndVariance) {
    test::WorstError worst(1e-9);  // what is left is of order (support / |z|)^2
    for (const auto& [name, law] : laws()) {
        const double reach =
            std::max(std::abs(law->centred_support().front().low), law->centred_support().back().high);
        const Complex z(0, 1e5 * (1 + reach));
        const Complex m = law->moment_transform(z).value;
        worst.add(std::abs((z * law->stieltjes(z).value).real() - 1), name + ": mass");
        worst.add(std::abs((z * m).real()) / (1 + reach), name + ": mean");
        worst.add(std::abs((z * z * m).real() - law->variance()) / (1 + reach), name + ": variance");
        worst.add(std::abs(law->log_potential(z) - std::log(std::abs(z))), name + ": log potential");
    }
}

TEST(SpectralLaw, TransformsAreRealOutsideTheSupportAndNotInside) {
    for (const auto& [name, law] : laws()) {
        const auto support = law->centred_support();
        const auto height = [&law = law](double x) { return -law->stieltjes({x, 1e-12}).value.imag(); };
        EXPECT_LT(height(support.front().low - 0.5), 1e-10) << name;
        EXPECT_LT(height(support.back().high + 0.5), 1e-10) << name;
        for (std::size_t i = 0; i < support.size(); ++i) {
            EXPECT_GT(height(0.5 * (support[i].low + support[i].high)), 5e-5) << name;  // 1e-4 at width 1e-4
            if (i > 0) {
                EXPECT_LT(support[i - 1].high, support[i].low) << name;
                EXPECT_LT(height(0.5 * (support[i - 1].high + support[i].low)), 2e-4) << name;
            }
        }
    }
}

TEST(MarchenkoPasturLaw, HasTheKnownDensityAndAtom) {
    for (const double width : {0.1, 0.5, 1.0, 3.0, 1e3}) {
        const MarchenkoPasturLaw law(width);
        const double s = std::sqrt(width), low = 1 / s + s - 2, high = 1 / s + s + 2;
        EXPECT_EQ(law.mean(), s);
        EXPECT_EQ(law.variance(), 1);
        EXPECT_LE(test::relative_error(law.second_moment(), 1 + width), 4 * test::epsilon);
        for (const double part : {0.1, 0.5, 0.9}) {
            const double x = low + part * (high - low);
            const double density = s * std::sqrt((high - x) * (x - low)) / (2 * std::numbers::pi * x);
            const double measured = -law.stieltjes({x - s, 1e-12}).value.imag() / std::numbers::pi;
            EXPECT_LE(test::relative_error(measured, density), 1e-10) << width << ", x = " << x;
        }
        // i h G(-s + i h) -> weight of the atom at zero.
        const double atom = (Complex(0, 1e-8) * law.stieltjes({-s, 1e-8}).value).real();
        EXPECT_NEAR(atom, std::max(0.0, 1 - width), width == 1 ? 2e-4 : 1e-6) << width;  // hard edge: sqrt(h)
        EXPECT_NEAR(law.atomic_concentration(), std::pow(std::max(0.0, 1 - width), 2), 4 * test::epsilon)
            << width;
    }
}

TEST(MarchenkoPasturLaw, TendsToTheSemicircle) {
    const MarchenkoPasturLaw wide(1e16), semicircle = MarchenkoPasturLaw::semicircle();
    EXPECT_EQ(semicircle.mean(), 0);
    for (const Complex z : {Complex(0, 0.1), Complex(1, 1), Complex(-3, 0.5)}) {
        EXPECT_LE(std::abs(wide.stieltjes(z).value - semicircle.stieltjes(z).value), 1e-7);  // 1/s = 1e-8
        EXPECT_NEAR(wide.log_potential(z), semicircle.log_potential(z), 1e-7);
    }
    EXPECT_LE(std::abs(semicircle.stieltjes({0, 1e-12}).value - Complex(0, -1)), 1e-11);
}

TEST(MarchenkoPasturLaw, LogPotentialIsContinuousWhereItsFormulaChanges) {
    // The series is used for |t| >= 5/s. The step and its 1/s cost 1e-14 * 500.
    for (const double width : {0.01, 0.5, 4.0, 20.0}) {
        const MarchenkoPasturLaw law(width);
        const double s = std::sqrt(width), t = 5 / s;
        for (const double angle : {0.3, 1.5, 2.8}) {
            const auto point = [&](double radius) {
                const Complex joukowski = std::polar(radius, angle);
                return joukowski + 1.0 / joukowski + 1 / s;
            };
            EXPECT_NEAR(law.log_potential(point(t * (1 - 1e-14))), law.log_potential(point(t * (1 + 1e-14))),
                        1e-12);
        }
    }
}

TEST(MarchenkoPasturLaw, RefusesBadWidths) {
    test::expect_invalid([] { MarchenkoPasturLaw(0); }, "width must be positive and finite, got 0");
    test::expect_invalid([] { MarchenkoPasturLaw(-2); }, "width must be positive and finite, got -2");
    test::expect_invalid([] { MarchenkoPasturLaw law(test::not_a_number); },
                         "width must be positive and finite, got nan");
}

TEST(AtomicLaw, SortsAndMergesAtoms) {
    const std::vector<double> positions{2, -1, 2, 0}, weights{0.25, 0.5, 0.125, 0.125};
    const AtomicLaw law(positions, weights);
    EXPECT_DOUBLE_EQ(law.mean(), 0.25);
    EXPECT_DOUBLE_EQ(law.second_moment(), 2);
    EXPECT_DOUBLE_EQ(law.atomic_concentration(), 0.25 + 1.0 / 64 + 9.0 / 64);
    const auto support = law.centred_support();
    ASSERT_EQ(support.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(support[i].low, support[i].high);
    EXPECT_DOUBLE_EQ(support[0].low, -1.25);
    EXPECT_DOUBLE_EQ(support[1].low, -0.25);
    EXPECT_DOUBLE_EQ(support[2].low, 1.75);
}

/// Found by fuzzing: the atoms at 2, 5 and 300 were three equal places of the support.
TEST(AtomicLaw, MergesAtomsThatTheMeanMakesEqual) {
    const AtomicLaw law(std::vector<double>{5, 2, 2, -3e22, 300});
    const auto support = law.centred_support();
    ASSERT_EQ(support.size(), 2);
    EXPECT_LT(support[0].high, support[1].low);
    EXPECT_NEAR(law.atomic_concentration(), 0.2 * 0.2 + 0.8 * 0.8, 1e-15);
}

TEST(AtomicLaw, QuantilesInvertTheDistribution) {
    const std::vector<double> positions{3, 1, 2}, weights{0.25, 0.5, 0.25};
    const AtomicLaw law(positions, weights);
    EXPECT_DOUBLE_EQ(law.quantile(0.01), 1);
    EXPECT_DOUBLE_EQ(law.quantile(0.49), 1);
    EXPECT_DOUBLE_EQ(law.quantile(0.51), 2);
    EXPECT_DOUBLE_EQ(law.quantile(0.74), 2);
    EXPECT_DOUBLE_EQ(law.quantile(0.76), 3);
    EXPECT_DOUBLE_EQ(law.quantile(1), 3);
}

TEST(AtomicLaw, RefusesBadInput) {
    using test::expect_invalid;
    const std::vector<double> x{1, 2};
    const auto with_weights = [&](std::vector<double> weights) { return [=] { AtomicLaw(x, weights); }; };
    expect_invalid(with_weights({0.5, 0.4}), "sum of the weights must be 1, got 0.9");
    expect_invalid(with_weights({1.5, -0.5}), "weight of atom 2 must be positive and finite, got -0.5");
    expect_invalid(with_weights({1, 0}), "weight of atom 2 must be positive and finite, got 0");
    expect_invalid(with_weights({test::not_a_number, 0.5}),
                   "weight of atom 1 must be positive and finite, got nan");
    expect_invalid(with_weights({1}), "weights must be of size 2, got 1");
    expect_invalid([] { AtomicLaw(std::vector<double>{}); }, "number of atoms must be at least 1, got 0");
    expect_invalid(
        [] {
            AtomicLaw(std::vector<double>{1, test::not_a_number});
        },
        "position of atom 2 must be a finite number, got nan");
    expect_invalid(
        [] {
            AtomicLaw(std::vector<double>{1, 1e155});
        },
        "second moment of the atoms must be a finite number, got inf");
}

}  // namespace
}  // namespace bayesaim::spectral
