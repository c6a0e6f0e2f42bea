// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/prediction.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/wigner.hpp"

namespace bayesaim::estimators {
namespace {

/// An estimate of known error without any algorithm: the posterior mean R/(1 + D) of a Wigner matrix seen
/// through noise, C = D/(1 + D).
struct KnownEstimate {
    linalg::Matrix truth, estimate;
    double error;
};

KnownEstimate make_estimate(Eigen::Index dim, double noise_variance, ThreadPool& pool) {
    const priors::Wigner prior;
    KnownEstimate result{prior.sample(dim, 5, 0, pool), {}, noise_variance / (1 + noise_variance)};
    const linalg::Matrix noise =
        linalg::gaussian_orthogonal_ensemble(dim, RandomStream(5, Purpose::noise), pool);
    result.estimate = (result.truth + std::sqrt(noise_variance) * noise) / (1 + noise_variance);
    return result;
}

class Prediction : public testing::TestWithParam<std::pair<const char*, int>> {};

/// On new samples the two rules have the errors that theory gives at q = 1 - C: within four standard errors
/// and the 1/d by which the indices of a finite matrix are not Gaussian.
TEST_P(Prediction, MeasuredErrorIsThatOfTheory) {
    ThreadPool pool(2);
    const Eigen::Index dim = 200, samples = 10000;
    const KnownEstimate known = make_estimate(dim, 0.5, pool);
    const auto [name, tokens] = GetParam();
    const auto channel = channels::make_channel(name, {.tokens = tokens, .beta = 2});
    const data::TestSet test = data::make_test_set({&known.truth, 1}, *channel, samples, 5, pool);
    const auto prediction = predict(*test.tokens, known.estimate, known.error, *channel, pool);
    const auto theory = channel->generalization(
        {linalg::scalar_overlap(1 - known.error), linalg::scalar_overlap(known.error)}, {});
    const auto check = [&](const channels::Rows& predicted, double expected) {
        const Eigen::ArrayXd squares = (predicted - test.targets).rowwise().squaredNorm();
        const double mean = mean_squared_distance(predicted, test.targets);
        EXPECT_NEAR(mean, squares.mean(), 1e-12);
        const double standard_error =
            std::sqrt((squares - mean).square().mean() / static_cast<double>(samples));
        EXPECT_NEAR(mean, expected, 4 * standard_error + 2 * expected / static_cast<double>(dim));
    };
    check(prediction.bayes_optimal, theory.bayes_optimal);
    check(prediction.plug_in, theory.plug_in);
    // The two rules differ by more than the tolerance above: ignoring the variance would fail.
    if (channel->name() != "linear") {
        EXPECT_GT(theory.plug_in, 1.02 * theory.bayes_optimal);
    }
}

INSTANTIATE_TEST_SUITE_P(Channels, Prediction,
                         testing::Values(std::pair("linear", 2), std::pair("softmax", 2),
                                         std::pair("softmax", 4), std::pair("hardmax", 2),
                                         std::pair("hardmax", 3)));

TEST(PredictionContract, ExactEstimatePredictsExactly) {
    ThreadPool pool(1);
    const KnownEstimate known = make_estimate(20, 0.5, pool);
    const auto channel = channels::make_channel("softmax", {.tokens = 3});
    const data::TestSet test = data::make_test_set({&known.truth, 1}, *channel, 50, 5, pool);
    const auto prediction = predict(*test.tokens, known.truth, 0, *channel, pool);
    EXPECT_EQ(mean_squared_distance(prediction.bayes_optimal, test.targets), 0);
    EXPECT_THROW(predict(*test.tokens, known.truth.topLeftCorner(5, 5), 0, *channel, pool),
                 std::invalid_argument);
    EXPECT_THROW(predict(*test.tokens, known.truth, -1, *channel, pool), std::invalid_argument);
}

}  // namespace
}  // namespace bayesaim::estimators
