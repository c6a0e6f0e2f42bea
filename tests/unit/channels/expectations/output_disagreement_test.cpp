// SPDX-License-Identifier: MIT
#include "bayesaim/channels/expectations/output_disagreement.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bayesaim/channels/expectations/softmax_quadrature.hpp"
#include "bayesaim/core/random.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace bayesaim;
using namespace bayesaim::channels;
using bayesaim::test::expect_invalid;
using bayesaim::test::relative_error;

constexpr double pi = std::numbers::pi;
constexpr double roundoff = 1e-13;
constexpr double quadrature = 1e-9;  // relative error of the extrapolation to small differences
constexpr double monte_carlo = 4;    // standard errors

/// Rows of variance 1 whose difference has this variance.
PairLaw unit_rows(double difference) { return {1, 1, 1 - 0.5 * difference, difference}; }
PairLaw bayes_optimal(double q, double error) { return {q + error, q + error, q, 2 * error}; }
PairLaw plug_in(double q, double error) { return {q, q + error, q, error}; }

double softmax(int tokens, double beta, const PairLaw& law) {
    return softmax_disagreement(tokens, beta, law).value;
}

std::string describe(int tokens, double beta, const PairLaw& law) {
    return "T = " + std::to_string(tokens) + ", beta = " + std::to_string(beta) +
           ", difference = " + std::to_string(law.difference_variance);
}

struct PlainMonteCarlo {
    test::Estimate softmax, hardmax;
};

PlainMonteCarlo plain_monte_carlo(int tokens, double beta, const PairLaw& law, std::uint64_t seed) {
    constexpr std::size_t samples = 20'000;
    const auto width = static_cast<std::size_t>(tokens);
    const double first = std::sqrt(law.first_variance), slope = law.covariance / law.first_variance;
    const double residual = std::sqrt(law.second_variance - slope * law.covariance);
    std::vector<double> soft(samples), hard(samples), z(2 * width * samples), h(width), h2(width);
    RandomStream(seed, Purpose::tokens).fill_normal(z);
    const auto normalize = [&](std::vector<double>& y) {
        const double top = *std::max_element(y.begin(), y.end());
        double total = 0;
        for (double& x : y) total += x = std::exp(beta * (x - top));
        for (double& x : y) x /= total;
    };
    for (std::size_t i = 0; i < samples; ++i) {
        for (std::size_t j = 0; j < width; ++j) {
            const double scale = j == 0 ? std::numbers::sqrt2 : 1;
            h[j] = scale * first * z[2 * (i * width + j)];
            h2[j] = slope * h[j] + scale * residual * z[2 * (i * width + j) + 1];
        }
        hard[i] = std::max_element(h.begin(), h.end()) - h.begin() !=
                  std::max_element(h2.begin(), h2.end()) - h2.begin();
        normalize(h);
        normalize(h2);
        soft[i] = 0;
        for (std::size_t j = 0; j < width; ++j) soft[i] += (h[j] - h2[j]) * (h[j] - h2[j]);
    }
    return {test::estimate(soft), test::estimate(hard)};
}

// ---- softmax ----------------------------------------------------------------------------------------------

// By the two-dimensional trapezoidal rule over h_1 - h_2 and h'_1 - h'_2, converged to the digits given.
TEST(SoftmaxDisagreement, ReproducesTwoTokenErrors) {
    constexpr double error = 0.2744104098, q = 1.5 - error, digits = 1e-12;
    EXPECT_NEAR(softmax(2, 1, bayes_optimal(q, error)), 0.0862258929665, digits);
    EXPECT_NEAR(2 * softmax(2, 1, plug_in(q, error)), 0.0885547696033, digits);
    EXPECT_NEAR(softmax(2, 5, bayes_optimal(q, error)), 0.2675339896493, digits);
    EXPECT_NEAR(2 * softmax(2, 5, plug_in(q, error)), 0.3290089585055, digits);
}

/// The two terms of two_token_softmax_disagreement for correlations r >= 0, node by node.
double plain_double_sum(const LogitPair& rows) {
    const auto transform = [](double k) { return k == 0 ? 1 : pi * k / std::sinh(pi * k); };
    const auto logistic = [](double x) { return 1 / (1 + std::exp(-x)); };
    const double p = std::sqrt(3.0) * rows.first_deviation, w = std::sqrt(3.0) * rows.second_deviation;
    const double excess = std::sqrt(3.0) * rows.excess, kappa = rows.gap * p * w, n = std::hypot(p, w);
    double same = 0, other = 0;
    const double z_scale = 1 / (1 + std::max(p, w)), z_step = 0.12;
    for (double t = 0.5 * z_step; z_scale * std::sinh(t) < 9; t += z_step) {
        const double z = z_scale * std::sinh(t);
        const double difference = -std::expm1(-excess * z) * logistic(p * z) * logistic(-w * z);
        same += 2 * z_step * z_scale * std::cosh(t) * std::exp(-0.5 * z * z) / std::sqrt(2 * pi) *
                difference * difference;
    }
    const double reach = 14, s_step = std::min(0.16, 0.55 / n), t_step = 0.1;
    const double t_scale = 1 / std::sqrt(1 + kappa * p * w / (n * n));
    const int t_count = static_cast<int>(std::asinh(reach / t_scale) / t_step);
    for (double s = 0.5 * s_step; s < std::min(reach, 13 / n); s += s_step) {
        for (int i = -t_count; i <= t_count; ++i) {
            const double t = t_scale * std::sinh(i * t_step);
            const double k = (p * s + w * t) / n, l = (w * s - p * t) / n, x = kappa * k * l;
            other += kappa / (pi * pi) * s_step * t_step * t_scale * std::cosh(i * t_step) * transform(k) *
                     transform(l) * (x == 0 ? 1 : std::expm1(x) / x) * std::exp(-0.5 * n * s * n * s);
        }
    }
    return 2 * (same + other);
}

TEST(SoftmaxDisagreement, TwoTokensReproduceThePlainDoubleSum) {
    test::WorstError worst(roundoff);
    for (const double beta : {0.01, 0.3, 1.0, 2.0, 10.0, 30.0}) {
        for (const double error : {1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0}) {
            const double deviation = std::sqrt(1 - error), excess = -error / (1 + deviation);
            const double gap = deviation > 0 ? (error - excess * excess) / (2 * deviation) : 1;
            for (const LogitPair& rows :
                 {LogitPair{beta, beta, 0, error}, LogitPair{beta * deviation, beta, beta * excess, gap}})
                worst.add(relative_error(two_token_softmax_disagreement(rows), plain_double_sum(rows)),
                          std::to_string(beta) + ' ' + std::to_string(error));
        }
    }
}

// Two unrelated methods: Fourier transforms in output_disagreement, Gumbel variables here.
TEST(SoftmaxAgreement, ReproducesTwoTokens) {
    test::WorstError worst(roundoff);
    for (const double beta : {0.03, 1.0, 7.0, 1000.0}) {
        for (const double gap : {1e-4, 0.1, 0.8}) {
            const double w = 0.6 * beta;
            const double difference = softmax_agreement(2, {beta, beta, 0, 0}) +
                                      softmax_agreement(2, {w, w, 0, 0}) -
                                      2 * softmax_agreement(2, {beta, w, 0.4 * beta, gap});
            const double expected = softmax(2, beta, {1, 0.36, 0.6 * (1 - gap), 0.16 + 1.2 * gap});
            worst.add(std::abs(difference - expected), std::to_string(beta) + ' ' + std::to_string(gap));
        }
    }
}

// The same integral by 2 E (f(u) - f(u'))^2 = 2 E |u - u'|^2 f'(u)^2 in the limit, one-dimensional.
TEST(SoftmaxDisagreement, SmallDifferencesAreLinearForTwoTokens) {
    for (const double beta : {1e-3, 0.3, 1.0, 30.0, 1e3}) {
        const double p = beta * std::sqrt(3.0), step = 0.02;
        double slope = 0;  // E f'(p z)^2, z = sinh(t) / (1 + p)
        for (double t = -12; t < 12; t += step) {
            const double z = std::sinh(t) / (1 + p), e = std::exp(-std::abs(p * z));
            slope +=
                step * std::cosh(t) / (1 + p) * std::exp(-0.5 * z * z) * std::pow(e / ((1 + e) * (1 + e)), 2);
        }
        slope *= 6 * beta * beta / std::sqrt(2 * pi);
        for (const double difference : {1e-12, 1e-25}) {
            const double nonlinear = beta * beta * difference;
            EXPECT_LT(relative_error(softmax(2, beta, unit_rows(difference)), slope * difference),
                      roundoff + nonlinear)
                << beta;
        }
    }
}

TEST(SoftmaxDisagreement, SmallDifferencesAreLinearForMoreTokens) {
    for (const auto& [tokens, beta] : {std::pair{3, 0.2}, std::pair{5, 10.0}}) {
        const double slope = softmax(tokens, beta, unit_rows(1e-14)) / 1e-14;
        EXPECT_LT(relative_error(softmax(tokens, beta, unit_rows(1e-25)) / 1e-25, slope), quadrature);
        // The plug-in law has the same limit: its extra terms are of second order.
        EXPECT_LT(relative_error(softmax(tokens, beta, plug_in(1, 1e-14)) / 1e-14, slope), quadrature);
        // On both sides of the switch to the extrapolation, at beta^2 difference = 0.01.
        const double at = 0.01 / (beta * beta), step = 1e-9;
        const double below = softmax(tokens, beta, unit_rows(at * (1 - step)));
        EXPECT_LT(relative_error(below / (1 - step), softmax(tokens, beta, unit_rows(at))), quadrature);
    }
}

TEST(SoftmaxDisagreement, AgreesWithPlainMonteCarlo) {
    std::uint64_t seed = 1;
    for (const int tokens : {2, 3, 4}) {
        for (const double beta : {0.5, 3.0, 40.0}) {
            for (const PairLaw& law : {unit_rows(0.3), unit_rows(1e-4), PairLaw{1, 0.5, 0.65, 0.2}}) {
                const test::Estimate sampled = plain_monte_carlo(tokens, beta, law, seed++).softmax;
                EXPECT_LT(sampled.deviation(softmax(tokens, beta, law)), monte_carlo)
                    << describe(tokens, beta, law);
            }
        }
    }
}

TEST(SoftmaxDisagreement, WeaklyCoupledRowsAgreeWithPlainMonteCarlo) {
    std::uint64_t seed = 101;
    for (const int tokens : {3, 4}) {
        for (const double beta : {0.005, 2.0}) {
            for (const PairLaw& law : {unit_rows(2), unit_rows(3.5), plug_in(1e-6, 1), plug_in(0.2, 0.8)}) {
                const numerics::Estimate estimate = softmax_disagreement(tokens, beta, law, {.points = 16});
                const test::Estimate sampled = plain_monte_carlo(tokens, beta, law, seed++).softmax;
                const double both = std::hypot(sampled.standard_error, estimate.standard_error);
                EXPECT_LT(std::abs(estimate.value - sampled.mean), monte_carlo * both)
                    << describe(tokens, beta, law);
                EXPECT_LT(estimate.standard_error, 0.01 * estimate.value);
            }
        }
    }
}

// A zero row has the output 1/T: sum_b E (g_b - 1/T)^2 = E |g|^2 - 1/T, which has a quadrature.
TEST(SoftmaxDisagreement, QuasiMonteCarloIsWithinItsStandardError) {
    for (const int tokens : {3, 4, 6}) {
        for (const double beta : {0.5, 5.0}) {
            const numerics::Estimate sampled = softmax_disagreement(tokens, beta, {0, 1, 0, 1});
            const double exact = softmax_agreement(tokens, {beta, beta, 0, 0}) - 1.0 / tokens;
            EXPECT_LT(std::abs(sampled.value - exact), monte_carlo * sampled.standard_error)
                << tokens << ' ' << beta;
            EXPECT_LT(sampled.standard_error, 2e-4 * exact) << tokens << ' ' << beta;
        }
    }
}

TEST(SoftmaxDisagreement, TendsToHardmaxForLargeBeta) {
    const PairLaw law = unit_rows(0.4);
    for (const int tokens : {2, 3, 4, 6}) {
        const double hard = 2 * hardmax_disagreement(tokens, law);
        const double far = hard - softmax(tokens, 100, law), farther = hard - softmax(tokens, 1000, law);
        EXPECT_NEAR(far / farther, 10, 0.3);  // like 1/beta
        EXPECT_LT(farther, 0.01 * hard);
        EXPECT_GT(farther, 0);
    }
    EXPECT_LT(relative_error(softmax(2, 1e8, law), 2 * hardmax_disagreement(2, law)), 1e-7);
}

TEST(SoftmaxDisagreement, IncreasesWithTheDifference) {
    for (const int tokens : {2, 3, 5}) {
        double last = 0;
        for (const double difference : {1e-4, 0.001, 0.05, 0.4, 1.5}) {
            const double value = softmax(tokens, 3, unit_rows(difference));
            EXPECT_GT(value, last) << describe(tokens, 3, unit_rows(difference));
            last = value;
        }
    }
}

TEST(SoftmaxDisagreement, IsSymmetricInTheRows) {
    const PairLaw law = plug_in(0.7, 0.4), swapped = {1.1, 0.7, 0.7, 0.4};
    for (const int tokens : {2, 3, 4})
        EXPECT_LT(relative_error(softmax(tokens, 2, law), softmax(tokens, 2, swapped)), roundoff);
}

TEST(SoftmaxDisagreement, EqualRowsAgreeAndOppositeRowsDifferMost) {
    EXPECT_EQ(softmax(2, 3, unit_rows(0)), 0);
    EXPECT_EQ(softmax(4, 3, unit_rows(0)), 0);
    // Opposite rows have opposite u: 2 E (2 f)^2, four times the value for one zero row.
    const double opposite = softmax(2, 3, unit_rows(4)), one_sided = softmax(2, 3, {0, 1, 0, 1});
    EXPECT_LT(relative_error(opposite, 4 * one_sided), roundoff);
    // Both sides of correlation 0, and small beta: 2 E (u - u')^2/16 = 6 beta^2 difference/16.
    EXPECT_LT(relative_error(softmax(2, 2, unit_rows(2 - 1e-12)), softmax(2, 2, unit_rows(2 + 1e-12))),
              1e-11);
    for (const double difference : {1e-12, 0.5, 3.0})
        EXPECT_LT(relative_error(softmax(2, 1e-7, unit_rows(difference)), 0.375e-14 * difference), roundoff);
}

TEST(SoftmaxDisagreement, SameBitsForAnyNumberOfThreads) {
    ThreadPool pool(3);
    const PairLaw law = plug_in(1e-6, 1);
    const numerics::Estimate alone = softmax_disagreement(3, 1, law, {.points = 8});
    const numerics::Estimate together = softmax_disagreement(3, 1, law, {.points = 8, .pool = &pool});
    EXPECT_EQ(alone.value, together.value);
    EXPECT_EQ(alone.standard_error, together.standard_error);
}

// ---- hardmax ----------------------------------------------------------------------------------------------

TEST(HardmaxDisagreement, ReproducesTwoTokenErrors) {
    constexpr double error = 0.2744104098, q = 1.5 - error;
    EXPECT_NEAR(2 * hardmax_disagreement(2, bayes_optimal(q, error)), 2 / pi * std::acos(q / 1.5), 1e-15);
    EXPECT_NEAR(2 * hardmax_disagreement(2, bayes_optimal(q, error)), 0.39120516586, 2e-11);
    EXPECT_NEAR(4 * hardmax_disagreement(2, plug_in(q, error)), 4 / pi * std::acos(std::sqrt(q / 1.5)),
                1e-15);
    EXPECT_NEAR(4 * hardmax_disagreement(2, plug_in(q, error)), 0.56272548286, 2e-11);
}

// Unrelated rows: 1 - sum_b P(b)^2, with P(diagonal) an orthant probability of correlation 2/3 for T = 3.
TEST(HardmaxDisagreement, OfUnrelatedRowsFollowsFromOrthantProbabilities) {
    const double diagonal = 0.25 + std::asin(2.0 / 3) / (2 * pi), other = 0.5 * (1 - diagonal);
    const double expected = 1 - diagonal * diagonal - 2 * other * other;
    EXPECT_LT(relative_error(hardmax_disagreement(3, unit_rows(2)), expected), roundoff);
    EXPECT_EQ(hardmax_disagreement(3, {0, 1, 0, 1}), hardmax_disagreement(3, unit_rows(2)));
}

// Small angles theta: a pair changes order with probability theta/pi, and of three entries the third one is
// below a tied pair with probability 1/2.
TEST(HardmaxDisagreement, SmallDifferencesCountTheirAngle) {
    for (const double difference : {1e-8, 1e-12, 1e-24}) {
        const double angle = std::sqrt(difference);
        EXPECT_LT(relative_error(hardmax_disagreement(2, unit_rows(difference)), angle / pi),
                  roundoff + difference);
        EXPECT_LT(relative_error(hardmax_disagreement(3, unit_rows(difference)), 1.5 * angle / pi),
                  roundoff + 0.1 * angle);  // where all three are close
    }
}

TEST(HardmaxDisagreement, AgreesWithPlainMonteCarlo) {
    std::uint64_t seed = 201;
    for (const int tokens : {3, 4, 6}) {
        for (const PairLaw& law :
             {unit_rows(0.01), unit_rows(0.5), unit_rows(1.9), unit_rows(2.7), plug_in(0.6, 0.5)}) {
            const test::Estimate sampled = plain_monte_carlo(tokens, 1, law, seed++).hardmax;
            EXPECT_LT(sampled.deviation(hardmax_disagreement(tokens, law)), monte_carlo)
                << describe(tokens, 1, law);
        }
    }
}

TEST(HardmaxDisagreement, DependsOnTheCorrelationOnly) {
    for (const int tokens : {2, 3, 6}) {
        const double value = hardmax_disagreement(tokens, unit_rows(0.6));  // correlation 0.7
        EXPECT_LT(relative_error(hardmax_disagreement(tokens, {4, 4, 2.8, 2.4}), value), roundoff);
        EXPECT_LT(relative_error(hardmax_disagreement(tokens, {4, 1, 1.4, 2.2}), value), roundoff);
    }
}

TEST(HardmaxDisagreement, IncreasesWithTheDifferenceAndTheTokens) {
    for (const double difference : {1e-6, 0.1, 1.0, 1.99, 2.01, 3.0, 3.9}) {
        double last = 0;
        for (const int tokens : {2, 3, 4, 6, 12}) {
            const double value = hardmax_disagreement(tokens, unit_rows(difference));
            EXPECT_GT(value, last) << tokens << ' ' << difference;
            EXPECT_GT(value, hardmax_disagreement(tokens, unit_rows(0.9 * difference)))
                << tokens << ' ' << difference;
            last = value;
        }
    }
}

TEST(HardmaxDisagreement, EqualRowsAgreeAndOppositeRowsNever) {
    for (const int tokens : {2, 3, 6}) {
        EXPECT_EQ(hardmax_disagreement(tokens, unit_rows(0)), 0);
        EXPECT_NEAR(hardmax_disagreement(tokens, unit_rows(4)), 1, roundoff);
    }
}

TEST(OutputDisagreement, RejectsImpossibleLaws) {
    expect_invalid([] { hardmax_disagreement(1, unit_rows(0.1)); }, "tokens must be at least 2, got 1");
    expect_invalid([] { hardmax_disagreement(2, {-1, 1, 0, 0}); }, "first_variance must be");
    expect_invalid([] { hardmax_disagreement(2, {1, 1, 0.9, 0.3}); }, "difference_variance must be");
    expect_invalid([] { hardmax_disagreement(3, {1, 4, 2.1, 0.8}); }, "covariance must be");
    expect_invalid([] { softmax_disagreement(3, 0, unit_rows(0.1)); }, "beta must be positive");
}

}  // namespace
