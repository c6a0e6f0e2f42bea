// SPDX-License-Identifier: MIT
#include "bayesaim/core/table.hpp"

#include <gtest/gtest.h>

#include "support/expect_invalid.hpp"

namespace bayesaim {
namespace {

struct Row {
    std::string name, summary;
    std::vector<std::string> options;
};

const std::vector<Row> table = {
    {"lion", "a cat", {"mane", "colour"}}, {"fish", "no cat", {}}, {"horse", "", {"mane"}}};

TEST(Table, FindsARowByItsName) {
    EXPECT_EQ(&find_row(table, "animal", "lion"), &table[0]);
    EXPECT_EQ(find_row(table, "animal", "horse").options, std::vector<std::string>{"mane"});
    EXPECT_EQ(names_of(table), (std::vector<std::string>{"lion", "fish", "horse"}));
}

TEST(Table, UnknownNameListsTheKnownOnes) {
    for (const char* name : {"snake", "", "Lion", "lio"})
        test::expect_invalid([&] { find_row(table, "animal", name); },
                             "animal must be one of lion, fish, horse, got '" + std::string(name) + "'");
}

TEST(Table, RowsTakeTheOptionsThatTheyList) {
    EXPECT_TRUE(takes(table[0], "mane"));
    EXPECT_TRUE(takes(table[0], "colour"));
    EXPECT_FALSE(takes(table[2], "colour"));
    EXPECT_FALSE(takes(table[1], "mane"));
    EXPECT_FALSE(takes(table[0], "man"));
}

TEST(Table, TakersOfAnOptionAreInTheOrderOfTheTable) {
    EXPECT_EQ(takers_of(table, "mane"), (std::vector<std::string>{"lion", "horse"}));
    EXPECT_TRUE(takers_of(table, "fins").empty());
}

}  // namespace
}  // namespace bayesaim
