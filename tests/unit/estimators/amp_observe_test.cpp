// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/priors/wishart.hpp"

namespace bayesaim::estimators {
namespace {

TEST(Amp, ObserverSeesTheMatrixOfEachIterationBeforeItIsDenoised) {
    const priors::Wishart prior(0.5);
    const channels::Softmax channel(2);
    ThreadPool pool(1);
    const auto problem = data::make_synthetic(prior, channel, {.dim = 20, .alpha = 0.2, .seed = 1}, pool);
    AmpOptions options;
    options.max_iterations = 5;
    std::vector<linalg::Matrix> seen;
    options.observe = [&](std::span<const linalg::Matrix> noisy) {
        ASSERT_EQ(noisy.size(), 1U);
        seen.push_back(noisy[0]);
    };
    const AmpResult result = run_amp(problem.data, prior.law(), channel, options, pool);
    ASSERT_EQ(seen.size(), result.record.size());
    EXPECT_EQ(seen.back(), result.noisy[0]);
    EXPECT_NE(seen.back(), result.estimates[0]);
    options.observe = {};
    EXPECT_EQ(run_amp(problem.data, prior.law(), channel, options, pool).estimates[0], result.estimates[0]);
}

}  // namespace
}  // namespace bayesaim::estimators
