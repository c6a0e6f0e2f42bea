// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/estimator_table.hpp"

#include <gtest/gtest.h>

#include "bayesaim/estimators/amp.hpp"

namespace bayesaim::experiments {
namespace {

/// `prior` starts from a draw that is independent of the teacher, so that tr (S' - S)^2 is twice the variance of the prior; the
/// stream of the teacher would give 0. `informed` starts from the teacher.
TEST(EstimatorTable, StartsFromAnotherDrawOfThePriorOrFromTheTeacher) {
    ThreadPool pool(1);
    const model::Model model =
        model::make_model({.widths = {0.5}, .channel = "deep-softmax", .channel_options = {.layers = 2}});
    data::Synthetic problem;
    for (std::uint64_t l = 0; l < 2; ++l) problem.weights.push_back(model.prior(l).sample(100, 7, l, pool));
    estimators::AmpOptions options;
    set_initial("mean", model, problem, 7, options, pool);
    EXPECT_TRUE(options.initial_estimates.empty());
    EXPECT_FALSE(options.initial_error);
    set_initial("prior", model, problem, 7, options, pool);
    const linalg::Overlap distance = data::estimation_errors(options.initial_estimates, problem.weights);
    ASSERT_TRUE(options.initial_error);
    for (int l = 0; l < 2; ++l) {
        EXPECT_NEAR(distance(l, l), 2, 0.4);  // the variance is 1; scatter of 0.08 at d = 100
        EXPECT_NEAR((*options.initial_error)(l, l), 2, 1e-12);
    }
    EXPECT_NEAR(distance(0, 1), 0, 0.2);
    set_initial("informed", model, problem, 7, options, pool);
    EXPECT_EQ(options.initial_estimates, problem.weights);
    EXPECT_LT(options.initial_error->trace(), 0.1);
}

}  // namespace
}  // namespace bayesaim::experiments
