// SPDX-License-Identifier: MIT
#pragma once
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::test {

/// The call must throw InvalidArgument, in one line that contains `part`.
template <class Call>
void expect_invalid(Call call, const std::string& part) {
    try {
        call();
        ADD_FAILURE() << "nothing was thrown; expected: " << part;
    } catch (const InvalidArgument& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
        EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("\n")));
    }
}

}  // namespace bayesaim::test
