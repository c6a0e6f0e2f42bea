// SPDX-License-Identifier: MIT
#include "bayesaim/channels/hardmax/recursion.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include <boost/math/quadrature/exp_sinh.hpp>
#include <gtest/gtest.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/numerics/gaussian.hpp"

namespace {

using bayesaim::InvalidArgument;
using bayesaim::Purpose;
using bayesaim::RandomStream;
using bayesaim::channels::HardmaxRecursion;

constexpr double quadrature = 1e-13;  // panels and their roundoff

std::vector<double> normals(int count, double scale, std::uint64_t index) {
    std::vector<double> result(static_cast<std::size_t>(count));
    RandomStream(17, Purpose::integration, index).fill_normal(result);
    for (double& value : result) value *= scale;
    return result;
}

/// Every map of the tokens into themselves, possible or not.
std::vector<std::vector<int>> all_labels(int tokens) {
    std::vector<std::vector<int>> result;
    std::vector<int> labels(static_cast<std::size_t>(tokens), 0);
    while (true) {
        result.push_back(labels);
        std::size_t a = 0;
        while (a < labels.size() && ++labels[a] == tokens) labels[a++] = 0;
        if (a == labels.size()) return result;
    }
}

std::vector<std::vector<int>> possible_labels(const HardmaxRecursion& recursion) {
    std::vector<std::vector<int>> result = all_labels(recursion.tokens());
    std::erase_if(result, [&](const auto& labels) { return !recursion.possible(labels); });
    return result;
}

int pair_index(int tokens, int a, int b) {
    if (a > b) std::swap(a, b);
    return a * tokens - a * (a - 1) / 2 + b - a;
}

double tau(int a, int b) { return a == b ? 1 : std::numbers::sqrt2; }

TEST(HardmaxRecursion, LabelProbabilitiesSumToOne) {
    for (const int tokens : {2, 3, 4}) {
        HardmaxRecursion recursion(tokens);
        const auto labels = possible_labels(recursion);
        std::uint64_t draw = 0;
        for (const double scale : {0.0, 0.5, 2.0, 8.0}) {
            for (const double variance : {0.05, 1.0, 4.0}) {
                const std::vector<double> omega = normals(recursion.pairs(), scale, draw++);
                double sum = 0;
                std::vector<double> g(omega.size()), mean_score(omega.size(), 0.0);
                for (const auto& j : labels) {
                    const double z = std::exp(recursion.evaluate(j, omega, variance, g));
                    sum += z;
                    for (std::size_t k = 0; k < g.size(); ++k) mean_score[k] += z * g[k];
                }
                EXPECT_NEAR(sum, 1, quadrature) << tokens << " tokens, scale " << scale << ", V " << variance;
                for (const double mean : mean_score) EXPECT_NEAR(mean * std::sqrt(variance), 0, quadrature);
            }
        }
    }
}

/// T = 2 in closed form: log Z = log Phi2(k1, k2; s1 s2/3), k_a = s_a (sqrt2 omega_aa - omega_01)/sqrt(3V).
void expect_bivariate_normal(const std::vector<int>& labels, const std::vector<double>& omega,
                             double variance) {
    HardmaxRecursion recursion(2);
    std::vector<double> g(3);
    const double log_z = recursion.evaluate(labels, omega, variance, g);

    const double s1 = labels[0] == 0 ? 1 : -1, s2 = labels[1] == 1 ? 1 : -1;
    const double unit = std::sqrt(3 * variance), root2 = std::numbers::sqrt2;
    const double k1 = s1 * (root2 * omega[0] - omega[1]) / unit;
    const double k2 = s2 * (root2 * omega[2] - omega[1]) / unit;
    const auto expected = bayesaim::numerics::bivariate_normal_cdf(k1, k2, s1 * s2 / 3);
    const double r1 = s1 * expected.ratio1 / unit, r2 = s2 * expected.ratio2 / unit;

    const double size = 1 + std::abs(expected.log_probability);
    EXPECT_NEAR(log_z, expected.log_probability, quadrature * size);
    const double steepness = 1e-14 * std::sqrt(size);  // roundoff times the slope of the exponents
    const double tolerance = (quadrature + steepness) * (1 / unit + std::abs(r1) + std::abs(r2));
    EXPECT_NEAR(g[0], root2 * r1, tolerance) << "log Z = " << log_z;
    EXPECT_NEAR(g[1], -r1 - r2, tolerance) << "log Z = " << log_z;
    EXPECT_NEAR(g[2], root2 * r2, tolerance) << "log Z = " << log_z;
}

TEST(HardmaxRecursion, TwoTokensAreTheBivariateNormal) {
    std::uint64_t draw = 100;
    for (const double scale : {0.3, 1.0, 5.0, 40.0}) {
        for (const double variance : {0.1, 1.0, 3.0}) {
            for (const auto& labels : all_labels(2)) {
                expect_bivariate_normal(labels, normals(3, scale, draw++), variance);
            }
        }
    }
}

/// One winner is pressed against the other, within V/depth: far less than a panel.
TEST(HardmaxRecursion, WinnersInTheWrongOrderAreResolvedAtAnyDepth) {
    for (const double depth : {10.0, 50.0, 100.0, 300.0, 3000.0}) {
        expect_bivariate_normal({0, 0}, {-depth, depth, 0}, 1);
        expect_bivariate_normal({1, 1}, {0.2 * depth, depth, -depth}, 1);
        expect_bivariate_normal({0, 1}, {-depth, depth, -depth}, 1);
    }
}

/// The weak recovery thresholds 1/(4 F), F = E sum g^2 over the labels at omega = 0, V = 2.
TEST(HardmaxRecursion, WeakRecoveryThresholdsAreReproduced) {
    const auto threshold = [](int tokens) {
        HardmaxRecursion recursion(tokens);
        const std::vector<double> omega(static_cast<std::size_t>(recursion.pairs()), 0.0);
        std::vector<double> g(omega.size());
        double power = 0;
        for (const auto& labels : possible_labels(recursion)) {
            const double z = std::exp(recursion.evaluate(labels, omega, 2, g));
            power += z * std::inner_product(g.begin(), g.end(), g.begin(), 0.0);
        }
        return 1 / (4 * power);
    };
    EXPECT_NEAR(threshold(2), 0.40341062904, 0.5e-11);  // half of the last digit of the reference
    EXPECT_NEAR(threshold(3), 0.175392535, 0.5e-9);
}

TEST(HardmaxRecursion, ThreeTokensAgreeWithSampling) {
    constexpr int tokens = 3, samples = 100'000;
    HardmaxRecursion recursion(tokens);
    const double variance = 0.8;
    const std::vector<double> omega = normals(recursion.pairs(), 0.6, 200);
    const std::vector<double> noise = normals(samples * recursion.pairs(), std::sqrt(variance), 201);
    std::vector<int> count(27, 0);
    for (int sample = 0; sample < samples; ++sample) {
        int code = 0;
        for (int a = tokens - 1; a >= 0; --a) {
            int winner = 0;
            double largest = -1e9;
            for (int b = 0; b < tokens; ++b) {
                const int k = pair_index(tokens, a, b);
                const double h = (omega[k] + noise[sample * recursion.pairs() + k]) / tau(a, b);
                if (h > largest) winner = b, largest = h;
            }
            code = tokens * code + winner;
        }
        ++count[code];
    }
    const auto labels = all_labels(tokens);
    for (std::size_t code = 0; code < labels.size(); ++code) {
        if (!recursion.possible(labels[code])) {
            EXPECT_EQ(count[code], 0);
            continue;
        }
        const double p = std::exp(recursion.evaluate(labels[code], omega, variance));
        const double four_standard_errors = 4 * std::sqrt(p * (1 - p) / samples);
        EXPECT_NEAR(count[code] / double(samples), p, four_standard_errors) << "labels number " << code;
    }
}

TEST(HardmaxRecursion, ScoreIsTheGradientOfLogZ) {
    std::uint64_t draw = 300;
    for (const int tokens : {2, 3, 4, 5, 6}) {
        HardmaxRecursion recursion(tokens);
        const auto labels = possible_labels(recursion);
        for (const double scale : {0.7, 6.0}) {
            for (const double variance : {0.02, 1.5}) {
                for (int repeat = 0; repeat < 4; ++repeat) {
                    const auto& j = labels[(7919 * draw) % labels.size()];
                    std::vector<double> omega = normals(recursion.pairs(), scale, draw++), g(omega.size());
                    const double log_z = recursion.evaluate(j, omega, variance, g);
                    const double deviation = std::sqrt(variance), step = 1e-3 * deviation;
                    // Fourth order: step^4 x fifth derivative, and the roundoff of log Z over the step.
                    const double finite_difference = 1e-11 + 1e-15 * (1 + std::abs(log_z)) / 1e-3;
                    for (std::size_t k = 0; k < omega.size(); ++k) {
                        const double centre = omega[k];
                        const auto shifted = [&](double shift) {
                            omega[k] = centre + shift;
                            return recursion.evaluate(j, omega, variance);
                        };
                        const double near = shifted(step) - shifted(-step);
                        const double far = shifted(2 * step) - shifted(-2 * step);
                        omega[k] = centre;
                        EXPECT_NEAR(g[k] * deviation, (8 * near - far) / 12e-3, finite_difference)
                            << tokens << " tokens, scale " << scale << ", V " << variance << ", log Z "
                            << log_z;
                    }
                }
            }
        }
    }
}

TEST(HardmaxRecursion, PermutationOfTokensPermutesTheResult) {
    const std::vector<int> image = {2, 0, 3, 1};  // token a becomes token image[a]
    HardmaxRecursion recursion(4);
    const auto labels = possible_labels(recursion);
    for (std::size_t i = 0; i < labels.size(); i += 7) {
        const std::vector<double> omega = normals(10, 1.5, 400 + i);
        std::vector<double> moved_omega(10), g(10), moved_g(10);
        std::vector<int> moved_labels(4);
        for (int a = 0; a < 4; ++a) {
            moved_labels[image[a]] = image[labels[i][a]];
            for (int b = a; b < 4; ++b) {
                moved_omega[pair_index(4, image[a], image[b])] = omega[pair_index(4, a, b)];
            }
        }
        const double log_z = recursion.evaluate(labels[i], omega, 0.5, g);
        const double moved_log_z = recursion.evaluate(moved_labels, moved_omega, 0.5, moved_g);
        EXPECT_NEAR(moved_log_z, log_z, quadrature * (1 - log_z));
        for (int a = 0; a < 4; ++a) {
            for (int b = a; b < 4; ++b) {
                EXPECT_NEAR(moved_g[pair_index(4, image[a], image[b])], g[pair_index(4, a, b)],
                            quadrature * (10 - log_z));
            }
        }
    }
}

TEST(HardmaxRecursion, CyclesOfThreeOrMoreAreImpossible) {
    HardmaxRecursion three(3), four(4);
    EXPECT_FALSE(three.possible(std::vector{1, 2, 0}));
    EXPECT_FALSE(three.possible(std::vector{2, 0, 1}));
    EXPECT_EQ(possible_labels(three).size(), 27 - 2);
    EXPECT_FALSE(four.possible(std::vector{1, 2, 3, 0}));
    EXPECT_FALSE(four.possible(std::vector{0, 2, 3, 1}));
    EXPECT_TRUE(four.possible(std::vector{1, 0, 3, 2}));
    EXPECT_TRUE(four.possible(std::vector{1, 2, 2, 2}));
    // 4! / 4 cycles of four; four choices of the token outside a cycle of three, with four labels of its own.
    EXPECT_EQ(possible_labels(four).size(), 256 - 6 - 4 * 2 * 4);
    EXPECT_THROW(three.evaluate(std::vector{1, 2, 0}, std::vector<double>(6), 1), InvalidArgument);
}

/// h_00 and h_01 compete for row 0 within a few sqrt(V); everything else is decided.
TEST(HardmaxRecursion, SmallVarianceLeavesTheUndecidedComparison) {
    const double variance = 1e-8, root2 = std::numbers::sqrt2;
    const double conditioning = 1e-11;  // an ulp of omega, about 4e-16, in units of sqrt(V)
    HardmaxRecursion recursion(3);
    for (const double k : {-30.0, -2.0, 0.3, 3.0}) {
        const double gap = k * std::sqrt(1.5 * variance);  // of h_00 - h_01, whose variance is V + V/2
        const std::vector<double> omega = {1.5 + gap, 1.5 * root2, -1.0, 3.0, 0.5, 2.0};
        std::vector<double> g(6);
        const double log_z = recursion.evaluate(std::vector{0, 1, 2}, omega, variance, g);
        const double expected = bayesaim::numerics::log_normal_cdf(k);
        EXPECT_NEAR(log_z, expected, conditioning * (1 + k * k));
        const double slope = bayesaim::numerics::inverse_mills_ratio(k) / std::sqrt(1.5 * variance);
        EXPECT_NEAR(g[0] / slope, 1, conditioning * (1 + k * k));
        EXPECT_NEAR(g[1] / slope, -1 / root2, conditioning * (1 + k * k));
        for (const int decided : {2, 3, 4, 5}) EXPECT_NEAR(g[decided] * std::sqrt(variance), 0, conditioning);
    }
}

/// Labels j(a) = a, one omega on and one off the diagonal: the off-diagonal entries are exchangeable, and
///   Z = 6 int n(z) Q(z)^2 int_{y < z} n(y) Q(y) N(y) dy dz,
/// n, N density and distribution of the off-diagonal h, Q = P(diagonal h > .). In long double exp(-5000) is
/// an ordinary number, so the nested integral is taken as it stands.
long double diagonal_labels_log_z(long double on, long double off) {
    using Real = long double;
    constexpr Real root2 = std::numbers::sqrt2_v<Real>;
    const auto n = [&](Real h) {
        const Real x = root2 * h - off;
        return std::exp(-x * x / 2) / std::sqrt(std::numbers::pi_v<Real>);
    };
    const auto below = [&](Real h) { return std::erfc(-(root2 * h - off) / root2) / 2; };
    const auto above = [&](Real h) { return std::erfc((h - on) / root2) / 2; };
    boost::math::quadrature::exp_sinh<Real> half_line;
    const auto inner = [&](Real z) {
        return half_line.integrate(
            [&](Real s) -> Real { return s > 200 ? 0 : n(z - s) * above(z - s) * below(z - s); });
    };
    const Real low = std::min(on, off / root2) - 12, high = std::max(on, off / root2) + 12;
    Real sum = 0;
    const Real step = 0.125L;  // trapezoid: exponentially accurate, the integrand vanishes at both ends
    for (Real z = low; z < high; z += step) sum += n(z) * above(z) * above(z) * inner(z);
    return std::log(6 * sum * step);
}

TEST(HardmaxRecursion, DeepTailsAgreeWithNestedIntegral) {
    HardmaxRecursion recursion(3);
    for (const double gap : {1.0, 12.0, 36.0}) {
        const double on = -gap / 2, off = gap / 2;
        const std::vector<double> omega = {on, off, off, on, off, on};
        std::vector<double> g(6);
        const double log_z = recursion.evaluate(std::vector{0, 1, 2}, omega, 1, g);
        const auto expected = static_cast<double>(diagonal_labels_log_z(on, off));
        if (gap > 30) {
            EXPECT_LT(expected, -450);
        }
        EXPECT_NEAR(log_z / expected, 1, quadrature);
        const long double h = 1e-3L;
        const auto slope = [&](long double d_on, long double d_off) {
            return static_cast<double>((diagonal_labels_log_z(on + d_on, off + d_off) -
                                        diagonal_labels_log_z(on - d_on, off - d_off)) /
                                       (2 * h));
        };
        const double finite_difference = 1e-6;  // h^2 times the third derivative
        EXPECT_NEAR(g[0] + g[3] + g[5], slope(h, 0), finite_difference);
        EXPECT_NEAR(g[1] + g[2] + g[4], slope(0, h), finite_difference);
        EXPECT_NEAR(g[0], g[5], quadrature * (1 + gap) * 10);
    }
}

TEST(HardmaxRecursion, RefusesWhatItCannotTake) {
    EXPECT_THROW(HardmaxRecursion(1), InvalidArgument);
    EXPECT_THROW(HardmaxRecursion(7), InvalidArgument);
    HardmaxRecursion recursion(2);
    const std::vector<int> labels = {0, 1};
    const std::vector<double> omega = {0.1, 0.2, 0.3};
    std::vector<double> short_g(2);
    EXPECT_THROW(recursion.evaluate(std::vector{0}, omega, 1), InvalidArgument);
    EXPECT_THROW(recursion.evaluate(std::vector{0, 2}, omega, 1), InvalidArgument);
    EXPECT_THROW(recursion.evaluate(labels, std::vector<double>(2), 1), InvalidArgument);
    EXPECT_THROW(recursion.evaluate(labels, std::vector<double>{0, std::nan(""), 0}, 1), InvalidArgument);
    EXPECT_THROW(recursion.evaluate(labels, omega, 0), InvalidArgument);
    EXPECT_THROW(recursion.evaluate(labels, omega, 1, short_g), InvalidArgument);
}

}  // namespace
