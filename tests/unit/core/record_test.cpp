// SPDX-License-Identifier: MIT
#include "bayesaim/core/record.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bayesaim/core/attributes.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim {
namespace {

std::string names_of(const Record& record) {
    std::string names;
    for (const auto& [name, value] : record) names += name + ' ';
    return names;
}

TEST(Record, KeepsTheOrderInWhichFieldsWereFirstSet) {
    Record record = {{"width", 0.5}, {"alpha", 1.0}};
    record["beta"] = 2.0;
    record["alpha"] = 3.0;
    EXPECT_EQ(names_of(record), "width alpha beta ");
    record.update({{"zeta", 1}, {"width", 2}, {"aleph", 3}});
    EXPECT_EQ(names_of(record), "width alpha beta zeta aleph ");
    EXPECT_EQ(*record.find("width"), Value(2));
}

TEST(Record, SettingAFieldAgainReplacesIt) {
    Record record = {{"alpha", 1.0}};
    record["alpha"] = "text";
    EXPECT_EQ(names_of(record), "alpha ");
    EXPECT_EQ(*record.find("alpha"), Value("text"));
}

TEST(Record, FindsOnlyWhatWasSet) {
    Record record = {{"alpha", 1.0}, {"alphabet", 2.0}};
    EXPECT_EQ(record.find("alph"), nullptr);
    EXPECT_TRUE(record.contains("alphabet"));
    record.erase("alpha");
    EXPECT_FALSE(record.contains("alpha"));
    EXPECT_EQ(names_of(record), "alphabet ");
    EXPECT_FALSE(record.empty());
}

TEST(Record, OfOtherOrderOrValuesIsAnother) {
    EXPECT_EQ((Record{{"a", 1}, {"b", 2}}), (Record{{"a", 1}, {"b", 2}}));
    EXPECT_NE((Record{{"a", 1}, {"b", 2}}), (Record{{"b", 2}, {"a", 1}}));
    EXPECT_NE((Record{{"a", 1}}), (Record{{"a", 2}}));
}

TEST(Value, OfAnEmptyOptionalIsAbsent) {
    EXPECT_TRUE(Value(std::optional<double>()).absent());
    EXPECT_TRUE(Value().absent());
    EXPECT_TRUE(Value(nullptr).absent());
    EXPECT_EQ(Value(std::optional<double>(0)), Value(0.0));
    EXPECT_FALSE(Value(0).absent());
    EXPECT_FALSE(Value("").absent());
}

TEST(Value, OfAnyKindOfNumberHasANumber) {
    EXPECT_EQ(Value(-2).number(), -2);
    EXPECT_EQ(Value(std::uint64_t{3}).number(), 3);
    EXPECT_EQ(Value(0.5).number(), 0.5);
    for (const Value& other : {Value(), Value(true), Value("0.5"), Value(Value::List{0.5})})
        EXPECT_FALSE(other.number());
}

TEST(Value, KeepsTheKindsOfNumbersApart) {
    EXPECT_EQ(*Value(-1).as<std::int64_t>(), -1);
    EXPECT_EQ(*Value(~std::uint64_t{0}).as<std::uint64_t>(), ~std::uint64_t{0});
    EXPECT_EQ(*Value(0.5).as<double>(), 0.5);
    EXPECT_EQ(*Value(true).as<bool>(), true);
    EXPECT_EQ(Value(1).as<double>(), nullptr);
    EXPECT_EQ(Value(1U).as<std::int64_t>(), nullptr);
    EXPECT_EQ(Value(1.0).as<std::int64_t>(), nullptr);
    EXPECT_EQ(Value(true).as<std::int64_t>(), nullptr);
    EXPECT_NE(Value(1), Value(1.0));
}

TEST(Value, TextsAreTextsAndListsKeepTheirItems) {
    EXPECT_EQ(*Value("a").as<std::string>(), "a");  // a pointer is not a bool
    EXPECT_EQ(*Value(std::string_view("ab").substr(0, 1)).as<std::string>(), "a");
    const Value numbers = std::vector<double>{1, 2};
    EXPECT_EQ(*numbers.as<Value::List>(), (Value::List{1.0, 2.0}));
    const Value nested = Value::List{numbers, "a", Value()};
    EXPECT_EQ(nested.as<Value::List>()->size(), 3U);
    EXPECT_EQ(nested.as<Value::List>()->front(), numbers);
}

TEST(Attributes, HaveTheTypeThatIsAskedFor) {
    const Attributes attributes = {{"name", "softmax"}, {"beta", 2.0}, {"widths", Value::List{0.4, 0.8}}};
    EXPECT_EQ(text_attribute(attributes, "name"), "softmax");
    EXPECT_EQ(number_attribute(attributes, "beta"), 2.0);
    EXPECT_FALSE(text_attribute(attributes, "alpha"));
    EXPECT_FALSE(number_attribute(attributes, "alpha"));
    test::expect_invalid([&] { text_attribute(attributes, "beta"); },
                         "attribute beta must be text, got a number");
    test::expect_invalid([&] { number_attribute(attributes, "name"); },
                         "attribute name must be a number, got 'softmax'");
    test::expect_invalid([&] { number_attribute(attributes, "widths"); },
                         "attribute widths must be a number");
}

}  // namespace
}  // namespace bayesaim
