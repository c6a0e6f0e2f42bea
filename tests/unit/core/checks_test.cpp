// SPDX-License-Identifier: MIT
#include "bayesaim/core/checks.hpp"

#include <cerrno>
#include <limits>
#include <regex>

#include <gtest/gtest.h>

#include "bayesaim/core/version.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim {
namespace {

using test::expect_invalid;

TEST(Checks, MessagesNameTheArgumentAndItsValue) {
    expect_invalid([] { check_positive("width", -1); }, "width must be positive and finite, got -1");
    expect_invalid([] { check_non_negative("delta", -0.5); },
                   "delta must be non-negative and finite, got -0.5");
    expect_invalid([] { check_finite("eigenvalue", test::infinity); },
                   "eigenvalue must be a finite number, got inf");
    expect_invalid([] { check_at_least("dimension", 0, 1); }, "dimension must be at least 1, got 0");
    expect_invalid([] { check_size("weights", 3, 4); }, "weights must be of size 4, got 3");
    expect_invalid([] { throw_invalid("prior", "known", "'x'"); }, "prior must be known, got 'x'");
}

TEST(Checks, EachKindOfMistakeHasItsOwnForm) {
    expect_invalid([] { throw_conflict("--width", "--limit small-width"); },
                   "--width cannot be combined with --limit small-width");
    expect_invalid([] { throw_missing("--resume", "--checkpoint FILE"); },
                   "--resume needs --checkpoint FILE");
    expect_invalid([] { throw_unavailable("--plot", "for several layers"); },
                   "--plot is not available for several layers");
    expect_invalid([] { throw_inapplicable("--heads", "--channel multi-head", "channel is softmax"); },
                   "--heads applies only to --channel multi-head (channel is softmax)");
    expect_invalid([] { throw_unreadable("dataset", "a.h5", EACCES); },
                   "cannot read dataset 'a.h5': Permission denied");
}

TEST(Checks, NotANumberIsRejected) {
    expect_invalid([] { check_positive("a", test::not_a_number); }, "a must be positive and finite, got nan");
    expect_invalid([] { check_non_negative("b", test::not_a_number); },
                   "b must be non-negative and finite, got nan");
    expect_invalid([] { check_finite("c", test::not_a_number); }, "c must be a finite number, got nan");
}

TEST(Checks, InfinityIsNeitherPositiveNorNonNegative) {
    expect_invalid([] { check_positive("a", test::infinity); }, "a must be positive and finite, got inf");
    expect_invalid([] { check_non_negative("b", test::infinity); },
                   "b must be non-negative and finite, got inf");
}

TEST(Checks, BoundariesAreOnTheRightSide) {
    expect_invalid([] { check_positive("a", 0); }, "got 0");
    EXPECT_NO_THROW(check_positive("a", std::numeric_limits<double>::denorm_min()));
    EXPECT_NO_THROW(check_non_negative("b", 0));
    EXPECT_NO_THROW(check_finite("c", -std::numeric_limits<double>::max()));
    EXPECT_NO_THROW(check_at_least("n", 1, 1));
    EXPECT_NO_THROW(check_size("w", 4, 4));
}

TEST(Checks, OneOfFindsTheIndexOrListsWhatIsKnown) {
    const std::vector<std::string> known = {"wishart", "wigner"};
    EXPECT_EQ(check_one_of("prior", "wishart", known), 0U);
    EXPECT_EQ(check_one_of("prior", "wigner", known), 1U);
    expect_invalid([&] { check_one_of("prior", "Wigner", known); },
                   "prior must be one of wishart, wigner, got 'Wigner'");
}

TEST(Version, IsThreeNumbersAndACommit) {
    EXPECT_TRUE(std::regex_match(std::string(version()), std::regex(R"(\d+\.\d+\.\d+)"))) << version();
    EXPECT_TRUE(std::regex_match(std::string(git_commit()), std::regex(R"(unknown|[0-9a-f]{40}\+?)")))
        << git_commit();
}

}  // namespace
}  // namespace bayesaim
