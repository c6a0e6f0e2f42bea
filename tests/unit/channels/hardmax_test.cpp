// SPDX-License-Identifier: MIT
#include "bayesaim/channels/hardmax.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/channels/hardmax/pair.hpp"
#include "bayesaim/channels/hardmax/recursion.hpp"

namespace bayesaim::channels {
namespace {

OrderParameters at(double overlap, double total) {
    return {linalg::scalar_overlap(overlap), linalg::scalar_overlap(total - overlap)};
}

TEST(HardmaxPair, ScorePowerHasTheReferenceValues) {
    const Hardmax channel(2);
    EXPECT_NEAR(channel.score_power(at(1.4, 1.5), {}).value(0, 0), 1.826928972830, 1e-11);
    EXPECT_NEAR(channel.score_power(at(1.49, 1.5), {}).value(0, 0), 5.859076570157, 1e-11);
}

TEST(HardmaxPair, ScorePowerIsContinuousAtZeroOverlap) {
    using hardmax_pair::Score;
    using hardmax_pair::tied_averages;
    EXPECT_NEAR(tied_averages(1e-9, Score::exact).power, tied_averages(0, Score::exact).power, 1e-7);
    EXPECT_NEAR(tied_averages(1e-9, Score::exact).information, tied_averages(0, Score::exact).information,
                1e-7);
}

/// As V -> 0, V F falls as V^{1/2}: F grows as V^{-1/2}, so the error decays as alpha^-2.
TEST(HardmaxPair, ScorePowerFallsAsTheInverseRootOfTheVariance) {
    const auto power = [](double ratio) {
        return hardmax_pair::tied_averages(ratio, hardmax_pair::Score::exact).power;
    };
    EXPECT_NEAR(power(1e8) / power(4e8), 2, 1e-3);
}

TEST(HardmaxPair, PrintedScoreIsNotTheGradient) {
    const double omega[] = {0.3, -0.2, 0.5};
    const auto exact = hardmax_pair::evaluate(true, false, omega, 0.7, hardmax_pair::Score::exact);
    const auto printed = hardmax_pair::evaluate(true, false, omega, 0.7, hardmax_pair::Score::as_printed);
    EXPECT_GT(std::abs(exact.g[0] - printed.g[0]), 0.05);
}

TEST(HardmaxPair, SurvivesTheTails) {
    const double omega[] = {-30, 20, -30};  // both labels contradict omega by 40 standard deviations and more
    const auto at_tail = hardmax_pair::evaluate(true, true, omega, 1, hardmax_pair::Score::exact);
    EXPECT_LT(at_tail.log_z, -600);
    for (const double value : at_tail.g) EXPECT_TRUE(std::isfinite(value));
    EXPECT_GT(at_tail.g[0], 10);
    EXPECT_LT(at_tail.g[1], -10);
}

/// At T = 2 the recursion for any T agrees with the closed form.
TEST(Hardmax, RecursionEqualsTheClosedFormForTwoTokens) {
    HardmaxRecursion recursion(2);
    for (const double v : {0.01, 0.5, 3.0}) {
        for (int sample = 0; sample < 40; ++sample) {
            const double omega[] = {std::sin(3.0 * sample), 1.5 * std::cos(1.7 * sample),
                                    std::sin(0.9 * sample + 1)};
            for (int label = 0; label < 4; ++label) {
                const int labels[] = {label % 2, label / 2};
                double recursive[3];
                const auto [expected, closed, slope] = hardmax_pair::evaluate(
                    labels[0] == 0, labels[1] == 1, omega, v, hardmax_pair::Score::exact);
                if (expected < -200) continue;
                const double value = recursion.evaluate(labels, omega, v, recursive);
                EXPECT_NEAR(value, expected, 1e-13 * std::max(1.0, std::abs(expected)));
                for (int p = 0; p < 3; ++p) {
                    EXPECT_NEAR(recursive[p], closed[p], 1e-11 * std::max(1.0, std::abs(closed[p])));
                }
            }
        }
    }
}

/// For three tokens sampled averages of two seeds agree; at zero overlap the average is exact.
TEST(HardmaxSampled, ScorePowerIsWithinItsStandardError) {
    const HardmaxSampled channel(3);
    for (const double ratio : {0.5, 20.0, 500.0}) {
        const double error = 1 / (2 * ratio + 1);
        const auto one = channel.score_power(at(1 - error, 1), {.shifts = 8, .points = 32, .seed = 1});
        const auto two = channel.score_power(at(1 - error, 1), {.shifts = 8, .points = 32, .seed = 2});
        const double scatter = std::hypot(one.relative_error, two.relative_error);
        EXPECT_LT(std::abs(one.value(0, 0) / two.value(0, 0) - 1), 4 * scatter) << ratio;
        EXPECT_LT(scatter, 0.1) << ratio;
    }
    EXPECT_EQ(channel.score_power(at(0, 1), {}).relative_error, 0);
}

TEST(HardmaxSampled, ScorePowerDoesNotDependOnThreads) {
    const HardmaxSampled channel(3);
    ThreadPool one(1), three(3);
    Integration integration{.shifts = 2, .points = 16, .pool = &one};
    const double expected = channel.score_power(at(0.8, 1), integration).value(0, 0);
    integration.pool = &three;
    EXPECT_EQ(channel.score_power(at(0.8, 1), integration).value(0, 0), expected);
}

TEST(Hardmax, TakesTwoToSixTokens) {
    EXPECT_THROW(Hardmax(1), std::invalid_argument);
    EXPECT_THROW(Hardmax(7), std::invalid_argument);
    EXPECT_THROW(HardmaxAsPrinted(3), std::invalid_argument);
}

}  // namespace
}  // namespace bayesaim::channels
