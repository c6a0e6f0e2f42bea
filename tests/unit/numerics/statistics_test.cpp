// SPDX-License-Identifier: MIT
#include "bayesaim/numerics/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_invalid.hpp"

namespace bayesaim::numerics {
namespace {

using test::expect_invalid;

TEST(Combine, GivesMeanAndStandardError) {
    const std::vector<double> sample = {1, 2, 3, 6};
    const Estimate estimate = combine(sample);
    EXPECT_DOUBLE_EQ(estimate.value, 3);
    EXPECT_DOUBLE_EQ(estimate.standard_error, std::sqrt(14.0 / 3 / 4));
    expect_invalid([] { combine(std::vector<double>{1}); }, "at least 2, got 1");
}

TEST(Combine, BitsDoNotDependOnWhereTheNumbersLie) {
    const std::vector<double> sample = {0.1, 0.2, 0.3000001, 0.7, 0.11, 0.13, 0.7, 0.9};
    std::vector<double> memory(sample.size() + 8);
    for (std::size_t offset = 0; offset < 8; ++offset) {
        std::copy(sample.begin(), sample.end(), memory.begin() + static_cast<std::ptrdiff_t>(offset));
        const Estimate moved = combine(std::span(memory).subspan(offset, sample.size()));
        EXPECT_EQ(moved.value, combine(sample).value) << offset;
        EXPECT_EQ(moved.standard_error, combine(sample).standard_error) << offset;
    }
}

TEST(MeanOf, HasTheStandardErrorOfTheScatter) {
    const auto mean = mean_of(std::vector<double>{1, 2, 6});
    EXPECT_DOUBLE_EQ(mean->value, 3);
    EXPECT_DOUBLE_EQ(*mean->standard_error, std::sqrt((4.0 + 1 + 9) / 2 / 3));
}

/// The standard error of three numbers is so uncertain that a ratio with it says nothing.
TEST(MeanOf, HasAScoreFromFourRepetitionsOn) {
    EXPECT_FALSE(mean_of(std::vector<double>{1, 2, 6})->z_score(2));
    const auto four = mean_of(std::vector<double>{1, 2, 3, 6});
    EXPECT_EQ(four->count, 4U);
    EXPECT_DOUBLE_EQ(*four->z_score(2), 1 / *four->standard_error);
    // What is not finite is no repetition.
    EXPECT_FALSE(mean_of(std::vector<double>{1, 2, std::nan(""), 6})->z_score(2));
}

TEST(MeanOf, CountsOnlyWhatIsFinite) {
    const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
    EXPECT_DOUBLE_EQ(mean_of(std::vector<double>{nan, 1, infinity, 3})->value, 2);
    EXPECT_FALSE(mean_of(std::vector<double>{nan}));
    EXPECT_FALSE(mean_of({}));
}

TEST(MeanOf, OneValueHasNoStandardErrorAndEqualOnesNoScore) {
    EXPECT_FALSE(mean_of(std::vector<double>{5})->standard_error);
    EXPECT_EQ(mean_of(std::vector<double>{5, 5})->standard_error, 0);
    EXPECT_FALSE(mean_of(std::vector<double>{5, 5, 5, 5})->z_score(4));
}

}  // namespace
}  // namespace bayesaim::numerics
