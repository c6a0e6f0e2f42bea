// SPDX-License-Identifier: MIT
// AMP on cross-attention whose keys have another dimension than the queries, against state evolution.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "bayesaim/data/attention.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/model/model.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "bayesaim/theory/state_evolution.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim {
namespace {

using channels::Attention;

struct Line {
    std::string channel;
    channels::ChannelOptions options;
    double aspect, alpha;
    int dim;
    double damping = 0.5;
};

model::Model model_of(const Line& line) {
    channels::ChannelOptions options = line.options;
    options.attention = Attention::cross;
    return model::make_model(
        {.widths = {0.5}, .aspect = line.aspect, .channel = line.channel, .channel_options = options});
}

class RectangularAmp : public ::testing::TestWithParam<Line> {};

/// Errors of a factor sqrt(2) (a wrong normalisation of h, qhat or R at aspect 2) would be seen at 20 standard errors.
/// Finite size: 2/sqrt(d1 d2) of the prior's error 1, as for square weights.
TEST_P(RectangularAmp, FollowsStateEvolution) {
    const Line& line = GetParam();
    const model::Model model = model_of(line);
    const double theory =
        solve_state_evolution(theory::SpectralCurve(model.laws()), model.channel(), line.alpha).error();
    ThreadPool pool(0);
    std::vector<double> errors;
    for (int seed = 0; seed < 8; ++seed) {
        const auto problem =
            data::make_synthetic(model.priors(), model.channel(),
                                 {.dim = line.dim, .alpha = line.alpha, .seed = std::uint64_t(seed)}, pool);
        const auto result =
            estimators::run_amp(problem.data, model.laws(), model.channel(),
                                {.max_iterations = 80, .tolerance = 1e-5, .damping = line.damping}, pool);
        errors.push_back(data::estimation_error(result.estimates[0], problem.weights[0]));
        EXPECT_NEAR(problem.data.alpha(), line.alpha, 1e-3);
    }
    const auto error = numerics::combine(errors);
    RecordProperty("error", std::to_string(error.value));
    RecordProperty("theory", std::to_string(theory));
    EXPECT_NEAR(error.value, theory, 4 * error.standard_error + 2.0 / (line.dim * std::sqrt(line.aspect)))
        << "standard error " << error.standard_error;
    EXPECT_LT(error.standard_error, 0.05 * theory + 0.003);
}

INSTANTIATE_TEST_SUITE_P(Lines, RectangularAmp,
                         ::testing::Values(Line{"softmax", {}, 2, 0.15, 60}, Line{"softmax", {}, 2, 0.25, 60},
                                           Line{"softmax", {.key_tokens = 4}, 0.5, 0.1, 120},
                                           Line{"linear", {.label_noise = 0.1}, 2, 0.2, 60},
                                           Line{"linear", {.tokens = 1, .key_tokens = 1}, 2, 0.4, 60},
                                           Line{"hardmax", {}, 2, 0.5, 60, 0.2},
                                           Line{"hardmax", {.tokens = 3}, 0.5, 0.2, 110, 0.2}));

TEST(RectangularAmpRuns, HaveTheSameBitsForAnyThreadsAndStorage) {
    const Line line{"softmax", {.key_tokens = 3}, 1.5, 0.1, 40};
    const model::Model model = model_of(line);
    std::vector<linalg::Matrix> estimates;
    for (const std::size_t threads : {1u, 2u, 3u}) {
        for (const auto storage : {data::TokenStorage::memory, data::TokenStorage::regenerate}) {
            ThreadPool pool(threads);
            const auto problem =
                data::make_synthetic(model.priors(), model.channel(),
                                     {.dim = line.dim, .alpha = line.alpha, .storage = storage}, pool);
            estimates.push_back(
                estimators::run_amp(problem.data, model.laws(), model.channel(), {.max_iterations = 6}, pool)
                    .estimates[0]);
        }
    }
    EXPECT_EQ(estimates[0].rows(), 40);
    EXPECT_EQ(estimates[0].cols(), 60);
    for (const auto& estimate : estimates) EXPECT_EQ(estimate, estimates[0]);
}

/// h = x' S z/(d1 d2)^(1/4) has the variance ||S||_F^2/sqrt(d1 d2).
TEST(RectangularData, IndicesHaveTheVarianceOfTheWeights) {
    const model::Model model = model_of({"linear", {.tokens = 3, .key_tokens = 2}, 3, 2, 20});
    ThreadPool pool(2);
    const auto problem =
        data::make_synthetic(model.priors(), model.channel(), {.dim = 20, .alpha = 3, .seed = 4}, pool);
    EXPECT_EQ(problem.data.tokens->samples(), 3600);
    EXPECT_EQ(problem.data.key_tokens->dim(), 60);
    const auto index = data::attention_indices(model.channel().geometry(), *problem.data.tokens,
                                               problem.data.keys(), problem.weights, pool);
    const double variance = index.squaredNorm() / static_cast<double>(index.size());
    EXPECT_NEAR(variance, data::self_overlaps(problem.weights)(0, 0), 0.04);  // 21600 dependent indices
    // one of them by hand
    linalg::Matrix scratch, key_scratch;
    const auto x = problem.data.tokens->block({0, 1}, scratch),
               z = problem.data.keys().block({0, 1}, key_scratch);
    EXPECT_NEAR(index(0, 1), (x.col(0).transpose() * problem.weights[0] * z.col(1))(0) / std::pow(1200, 0.25),
                1e-12);
}

/// Fresh samples are predicted as well as theory says from the error of this estimate.
TEST(RectangularPredictions, HaveTheErrorsOfTheory) {
    const Line line{"softmax", {}, 2, 0.2, 60};
    const model::Model model = model_of(line);
    ThreadPool pool(0);
    const auto problem =
        data::make_synthetic(model.priors(), model.channel(), {.dim = line.dim, .alpha = line.alpha}, pool);
    const auto result =
        estimators::run_amp(problem.data, model.laws(), model.channel(), {.max_iterations = 60}, pool);
    const double error = data::estimation_error(result.estimates[0], problem.weights[0]);
    const double overlap = data::self_overlaps(problem.weights)(0, 0) - error;  // q = Q - E of this S
    const auto expected =
        model.channel().generalization({linalg::scalar_overlap(overlap), linalg::scalar_overlap(error)}, {});
    const auto test = data::make_test_set(problem.weights, model.channel(), 4000, 0, pool);
    const auto prediction = estimators::predict(*test.tokens, test.keys(), result.estimates,
                                                linalg::scalar_overlap(error), model.channel(), pool);
    EXPECT_NEAR(estimators::mean_squared_distance(prediction.bayes_optimal, test.targets),
                expected.bayes_optimal, 0.06 * expected.bayes_optimal);
    EXPECT_NEAR(estimators::mean_squared_distance(prediction.plug_in, test.targets), expected.plug_in,
                0.06 * expected.plug_in);
}

TEST(RectangularData, ThatContradictsTheModelIsRefused) {
    ThreadPool pool(1);
    const model::Model square = model_of({"softmax", {}, 1, 0.2, 10}),
                       two = model_of({"softmax", {}, 2, 0.2, 10});
    const auto problem = data::make_synthetic(two.priors(), two.channel(), {.dim = 10, .alpha = 0.2}, pool);
    test::expect_invalid(
        [&] { estimators::run_amp(problem.data, square.laws(), square.channel(), {}, pool); },
        "dimension of the key tokens must be of size 10, got 20");
    const auto other =
        data::make_synthetic(square.priors(), square.channel(), {.dim = 10, .alpha = 0.2}, pool);
    test::expect_invalid([&] { estimators::run_amp(other.data, two.laws(), two.channel(), {}, pool); },
                         "dimension of the key tokens must be of size 20, got 10");
    test::expect_invalid(
        [&] {
            estimators::run_amp(problem.data, two.laws(), two.channel(),
                                {.initial_estimates = {linalg::Matrix::Zero(10, 10)}}, pool);
        },
        "columns of the initial estimate must be of size 20, got 10");
}

}  // namespace
}  // namespace bayesaim
