// SPDX-License-Identifier: MIT
#include "bayesaim/data/dataset.hpp"

#include <limits>

#include <gtest/gtest.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;

TEST(Synthetic, DependsOnTheSeedAndNotOnThreads) {
    ThreadPool one(1), two(2);
    const priors::Wishart prior(0.5);
    const channels::Softmax channel(2);
    SyntheticOptions options;
    options.dim = 30;
    const Synthetic a = make_synthetic(prior, channel, options, one),
                    b = make_synthetic(prior, channel, options, two);
    EXPECT_EQ(a.data.outputs, b.data.outputs);
    EXPECT_EQ(a.weights, b.weights);
    options.seed = 1;
    EXPECT_NE(a.data.outputs, make_synthetic(prior, channel, options, one).data.outputs);
    EXPECT_EQ(a.data.tokens->samples(), 90);
}

TEST(Synthetic, LayersHaveTheirOwnPriorsAndStreams) {
    ThreadPool one(1), two(2);
    const priors::Wishart narrow(0.5), wide(2);
    const priors::Prior* priors[] = {&narrow, &wide};
    const channels::DeepAttention channel;
    const SyntheticOptions options{.dim = 30};
    const Synthetic a = make_synthetic(priors, channel, options, one),
                    b = make_synthetic(priors, channel, options, two);
    EXPECT_EQ(a.data.outputs, b.data.outputs);
    ASSERT_EQ(a.weights.size(), 2U);
    EXPECT_EQ(a.weights[0], narrow.sample(30, options.seed, 0, one));
    EXPECT_EQ(a.weights[1], wide.sample(30, options.seed, 1, one));
    EXPECT_NO_THROW(check_outputs(channel, a.data));
    const TestSet test = make_test_set(a.weights, channel, 50, 1, one);
    EXPECT_LT((test.targets.rowwise().sum().array() - 2).abs().maxCoeff(), 1e-12);
}

TEST(Synthetic, NeedsOnePriorForEachLayer) {
    ThreadPool pool(1);
    const priors::Wishart narrow(0.5);
    const priors::Prior* one[] = {&narrow};
    test::expect_invalid([&] { make_synthetic(one, channels::DeepAttention(), {}, pool); },
                         "channel deep-softmax has 2 layer(s), got 1 prior(s)");
    const Matrix weights[] = {Matrix::Identity(5, 5)};
    test::expect_invalid([&] { make_test_set(weights, channels::DeepAttention(), 5, 0, pool); },
                         "number of weights must be of size 2, got 1");
}

/// New samples of the same teacher have other tokens and other label noise than the training data.
TEST(Synthetic, TestSamplesAreOthersOfTheSameTeacher) {
    ThreadPool pool(1);
    const priors::Wishart prior(0.5);
    const channels::Softmax channel(2);
    const Synthetic train = make_synthetic(prior, channel, {.dim = 20}, pool),
                    test = make_synthetic(prior, channel, {.dim = 20, .test = true}, pool);
    EXPECT_EQ(train.weights, test.weights);
    EXPECT_NE(train.data.outputs, test.data.outputs);

    // The label noise alone: the outputs less those of the same samples without it.
    const auto noise = [&](bool is_test) {
        const SyntheticOptions options{.dim = 20, .alpha = 1, .test = is_test};
        return channels::Rows(make_synthetic(prior, channels::Linear(1, 0.25), options, pool).data.outputs -
                              make_synthetic(prior, channels::Linear(1, 0), options, pool).data.outputs);
    };
    const channels::Rows of_train = noise(false), of_test = noise(true);
    const double samples = 400;
    EXPECT_NEAR(of_train.squaredNorm() / samples, 0.25, 0.07);  // 4 standard errors
    EXPECT_NEAR(of_test.squaredNorm() / samples, 0.25, 0.07);
    EXPECT_NEAR(of_train.cwiseProduct(of_test).sum() / samples, 0, 0.05);
}

/// C_lk = Tr((a_l - b_l)(a_k - b_k))/d, also between layers.
TEST(EstimationErrors, AreTracesBetweenLayers) {
    Matrix one = Matrix::Zero(4, 4), other = Matrix::Zero(4, 4);
    one(0, 0) = 2;
    other(0, 0) = -6;
    other(1, 2) = other(2, 1) = 1;
    const std::vector<Matrix> truth(2, Matrix::Identity(4, 4)), estimates{truth[0] + one, truth[1] + other};
    const linalg::Overlap errors = estimation_errors(estimates, truth);
    EXPECT_EQ(errors(0, 0), 1);
    EXPECT_EQ(errors(0, 1), -3);
    EXPECT_EQ(errors(1, 0), -3);
    EXPECT_EQ(errors(1, 1), 9.5);
    EXPECT_EQ(estimation_error(estimates[1], truth[1]), 9.5);
    test::expect_invalid([&] { estimation_errors({estimates.data(), 1}, truth); }, "number of estimates");
}

TEST(CheckOutputs, RejectsWhatTheChannelCannotProduce) {
    ThreadPool pool(1);
    const channels::Softmax channel(2);
    Dataset data = make_synthetic(priors::Wishart(0.5), channel, {.dim = 10}, pool).data;
    EXPECT_NO_THROW(check_outputs(channel, data));
    test::expect_invalid([&] { check_outputs(channels::Softmax(3), data); },
                         "tokens of the data must be of size 3");
    data.outputs(3, 1) += 0.5;
    test::expect_invalid([&] { check_outputs(channel, data); },
                         "sum of the probabilities of sample 3, row 0 must be 1");
    data.outputs(3, 1) = std::numeric_limits<double>::quiet_NaN();
    test::expect_invalid([&] { check_outputs(channel, data); },
                         "output of sample 3, row 0 must be a finite number");
    data.outputs.conservativeResize(7, 4);
    test::expect_invalid([&] { check_outputs(channel, data); }, "rows of the outputs");
}

}  // namespace
}  // namespace bayesaim::data
