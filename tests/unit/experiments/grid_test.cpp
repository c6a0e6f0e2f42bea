// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/grid.hpp"

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

namespace bayesaim::experiments {
namespace {

using Numbers = std::vector<double>;

TEST(Grid, ReadsNumbersListsAndRanges) {
    EXPECT_EQ(Grid("g", "0.1").values(), (Numbers{0.1}));
    EXPECT_EQ(Grid("g", "0.1,0.2,5").values(), (Numbers{0.1, 0.2, 5}));
    EXPECT_EQ(Grid("g", "1:3:5").values(), (Numbers{1, 1.5, 2, 2.5, 3}));
    EXPECT_EQ(Grid("g", "2:2:1").values(), (Numbers{2}));
}

TEST(Grid, LogarithmicRangesHaveEqualRatiosAndExactEnds) {
    const Numbers values = Grid("g", "log:0.1:20:24").values();
    ASSERT_EQ(values.size(), 24U);
    EXPECT_EQ(values.front(), 0.1);
    EXPECT_EQ(values.back(), 20);
    for (std::size_t i = 1; i < values.size(); ++i)
        EXPECT_NEAR(values[i] / values[i - 1], std::pow(200, 1 / 23.0), 1e-12);
}

TEST(Grid, RelativeNumbersCountInUnitsOfTheThreshold) {
    const Grid grid("g", "0.1x:0.9x:9");
    EXPECT_TRUE(grid.relative());
    EXPECT_NEAR(grid.values(0.2).front(), 0.02, 1e-16);
    EXPECT_NEAR(grid.values(0.2).back(), 0.18, 1e-16);
    EXPECT_THROW(grid.values(), std::invalid_argument);
}

TEST(Grid, RejectsNonsenseWithNameAndText) {
    for (const char* text : {"",      "abc",   "0.1,",   "1:2",      "1:2:3:4", "log:1:2",  "log:1",
                             "1:2:x", "1:2:0", "1:2:-3", "2:1:5",    "0.2,0.1", "0.1,0.1",  "0:1:3",
                             "-1",    "nan",   "inf",    "0.1x,0.2", "1:2:1",   "1e5x:2:3", "log:0:1:5"}) {
        try {
            const Grid grid("--alpha", text);
            ADD_FAILURE() << "accepted '" << text << "'";
        } catch (const std::invalid_argument& error) {
            EXPECT_NE(std::string(error.what()).find("--alpha must be"), std::string::npos) << error.what();
            EXPECT_NE(std::string(error.what()).find(std::string("'") + text + "'"), std::string::npos)
                << error.what();
        }
    }
}

}  // namespace
}  // namespace bayesaim::experiments
