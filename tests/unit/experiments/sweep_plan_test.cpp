// SPDX-License-Identifier: MIT
// Estimates of time and memory, before a study runs.
#include <gtest/gtest.h>

#include "bayesaim/core/table.hpp"
#include "bayesaim/experiments/sweep.hpp"

namespace bayesaim::experiments {
namespace {

TEST(SweepPlan, MemoryIsThatOfTheLargestTasksThatRunTogether) {
    const auto bytes = [&](const std::string& settings, std::size_t threads) {
        SweepOptions options;
        options.threads = threads;
        return plan_sweep(parse_experiment("estimator = 'amp'\nwidth = 0.5\n" + settings, "study"),
                          "no/such/directory", options)
            .bytes;
    };
    // n T d doubles, n = 0.1 * 100^2
    const double tokens = 1000 * 2 * 100 * 8;
    const double one = bytes("alpha = 0.1\ndim = 100", 4);
    EXPECT_GT(one, tokens);
    EXPECT_NEAR(bytes("alpha = 0.1\ndim = 100\nprecision = 'float'", 4), one - tokens / 2, 1);
    EXPECT_NEAR(bytes("alpha = 0.1\ndim = 100\ntoken_storage = 'regenerate'", 4), one - tokens, 1);
    const std::string four = "alpha = 0.1\ndim = 100\nseeds = 4";
    EXPECT_EQ(bytes(four, 1), one);
    EXPECT_GT(bytes(four, 2), one + tokens);
    EXPECT_EQ(bytes(four, 8), bytes(four, 4));
    // Large tasks run one after the other, with all threads.
    EXPECT_EQ(bytes("alpha = 0.5\ndim = 1000\nseeds = 4", 4), bytes("alpha = 0.5\ndim = 1000", 1));
}

/// Measured: the posterior of a sample takes 40 microseconds with three tokens of hardmax, 0.1 and 0.5 ms with
/// two layers of deep-softmax and deep-seq2seq.
TEST(SweepPlan, TimeIsThatOfThePosteriors) {
    const auto operations = [](const std::string& settings) {
        const Task task = parse_experiment("width = 0.5\nalpha = 0.5\n" + settings, "study").tasks[0];
        return find_row(estimator_table(), "estimator", task.estimator).operations(task);
    };
    const std::string amp = "estimator = 'amp'\ndim = 60\ntokens = 3\nchannel = ";
    EXPECT_GT(operations(amp + "'hardmax'"), 5 * operations(amp + "'softmax'"));
    const std::string theory = "estimator = 'theory'\nchannel = ";
    EXPECT_GT(operations(theory + "'deep-seq2seq'"), 3 * operations(theory + "'deep-softmax'"));
}

/// AMP compares itself with theory, which is computed once for all seeds and takes most of the time here.
TEST(SweepPlan, TheTheoryOfAPointCountsOnce) {
    const auto seconds = [&](const std::string& settings) {
        return plan_sweep(parse_experiment("channel = 'deep-seq2seq'\nwidth = 0.5\nalpha = 0.1\n" + settings,
                                           "study"),
                          "no/such/directory", {.threads = 1})
            .seconds;
    };
    const std::string amp = "estimator = 'amp'\ndim = 10\nmax_iterations = 1\nseeds = ";
    // The speed of the machine is measured anew each time: a factor of 4 is left to it.
    const double theory = seconds("estimator = 'theory'\n");
    EXPECT_GT(seconds(amp + "1\n"), 0.25 * theory);
    EXPECT_LT(seconds(amp + "8\n"), 4 * theory);
}

}  // namespace
}  // namespace bayesaim::experiments
