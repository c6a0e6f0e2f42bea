// SPDX-License-Identifier: MIT
#include "bayesaim/core/text.hpp"

#include <gtest/gtest.h>

namespace bayesaim {
namespace {

using Parts = std::vector<std::string_view>;

TEST(Split, KeepsEmptyParts) {
    EXPECT_EQ(split("0.4,0.8", ','), (Parts{"0.4", "0.8"}));
    EXPECT_EQ(split(",a,", ','), (Parts{"", "a", ""}));
    EXPECT_EQ(split("a", ','), Parts{"a"});
    EXPECT_EQ(split("", ','), Parts{""});
}

TEST(ParseNumber, TakesTheWholeTextOrNothing) {
    EXPECT_EQ(parse_number<double>("-2.5e-3"), -2.5e-3);
    EXPECT_EQ(parse_number<std::size_t>("18446744073709551615"), 18446744073709551615U);
    for (const std::string_view text : {"", " 1", "1 ", "1x", "+1", "1,2", "one"})
        EXPECT_FALSE(parse_number<double>(text)) << text;
    EXPECT_FALSE(parse_number<int>("1.5"));
    EXPECT_FALSE(parse_number<std::size_t>("-1"));
    EXPECT_FALSE(parse_number<double>({}));
}

}  // namespace
}  // namespace bayesaim
