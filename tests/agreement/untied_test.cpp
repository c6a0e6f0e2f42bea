// SPDX-License-Identifier: MIT
// AMP on synthetic data of untied attention against state evolution, and against itself.
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
    double alpha;
    double damping = 0.5;
    friend std::ostream& operator<<(std::ostream& out, const Line& line) {
        return out << line.channel << ' ' << to_string(line.options.attention) << " alpha " << line.alpha;
    }
};

model::Model model_of(const Line& line) {
    return model::make_model({.widths = {0.5}, .channel = line.channel, .channel_options = line.options});
}

numerics::Estimate measured(const Line& line, int dim, int seeds) {
    const model::Model model = model_of(line);
    ThreadPool pool(0);
    std::vector<double> errors;
    for (int seed = 0; seed < seeds; ++seed) {
        const auto problem =
            data::make_synthetic(model.priors(), model.channel(),
                                 {.dim = dim, .alpha = line.alpha, .seed = std::uint64_t(seed)}, pool);
        estimators::AmpOptions options{.max_iterations = 80, .tolerance = 1e-5, .damping = line.damping};
        const auto result = estimators::run_amp(problem.data, model.laws(), model.channel(), options, pool);
        errors.push_back(data::estimation_error(result.estimates[0], problem.weights[0]));
    }
    return numerics::combine(errors);
}

class UntiedAmp : public ::testing::TestWithParam<Line> {};

/// Self and causal: theory's own estimate of its error, 1 to 5% of the error here, is allowed too; the theory of one
/// variance is 6 to 20% lower (hardmax and linear). Errors of a factor 2 (a wrong V, qhat or step) would be seen at 20 standard errors. Finite size: 2/d of the prior's
/// error 1, as seen between d = 60 and 200.
TEST_P(UntiedAmp, FollowsStateEvolution) {
    const Line& line = GetParam();
    const model::Model model = model_of(line);
    const auto theory = solve_state_evolution(*theory::make_curve(model.laws(), model.channel().geometry()),
                                              model.channel(), line.alpha);
    const auto error = measured(line, 80, 8);
    const double of_theory = theory.relative_error * theory.error();
    EXPECT_NEAR(error.value, theory.error(), 4 * error.standard_error + 2.0 / 80 + of_theory)
        << "standard error " << error.standard_error;
    EXPECT_LT(error.standard_error, 0.05 * theory.error() + 0.003);
}

INSTANTIATE_TEST_SUITE_P(
    Lines, UntiedAmp,
    ::testing::Values(Line{"softmax", {.attention = Attention::cross}, 0.2},
                      Line{"softmax", {.attention = Attention::cross}, 0.3},
                      Line{"softmax", {.attention = Attention::cross, .key_tokens = 4}, 0.1},
                      Line{"softmax", {.tokens = 3, .attention = Attention::masked}, 0.2},
                      Line{"linear", {.attention = Attention::masked}, 0.3},
                      Line{"linear", {.label_noise = 0.1, .attention = Attention::cross}, 0.2},
                      Line{"hardmax", {.attention = Attention::cross}, 0.5, 0.2},
                      Line{"hardmax", {.tokens = 3, .attention = Attention::masked}, 0.5, 0.2},
                      Line{"hardmax", {.tokens = 3, .attention = Attention::cross}, 0.2, 0.2},
                      Line{"softmax", {.attention = Attention::self}, 0.2},
                      Line{"softmax", {.tokens = 3, .attention = Attention::self}, 0.05},
                      Line{"linear", {.label_noise = 0.1, .attention = Attention::self}, 0.2},
                      Line{"linear", {.label_noise = 0.1, .attention = Attention::self}, 0.4},
                      Line{"hardmax", {.attention = Attention::self}, 0.5, 0},
                      Line{"hardmax", {.attention = Attention::self}, 1, 0},
                      Line{"softmax", {.tokens = 3, .attention = Attention::causal}, 0.15},
                      Line{"softmax", {.tokens = 4, .attention = Attention::causal}, 0.1},
                      Line{"linear", {.tokens = 3, .label_noise = 0.1, .attention = Attention::causal}, 0.1},
                      Line{"hardmax", {.tokens = 3, .attention = Attention::causal}, 0.5, 0}));

/// The errors of the two parts, not only their sum: the diagonal teaches the symmetric part.
TEST(UntiedAmpRuns, SymmetricPartIsLearnedFirst) {
    const model::Model model = model_of({"hardmax", {.attention = Attention::self}, 1});
    ThreadPool pool(0);
    const auto problem =
        data::make_synthetic(model.priors(), model.channel(), {.dim = 100, .alpha = 1}, pool);
    const auto result = estimators::run_amp(problem.data, model.laws(), model.channel(),
                                            {.max_iterations = 40, .damping = 0}, pool);
    const auto errors =
        data::estimation_errors(model.channel().geometry(), result.estimates, problem.weights);
    EXPECT_NEAR(errors(0, 0), 0.0712, 0.012);  // untied.md, hardmax, alpha = 1: (C11 + C12)/2
    EXPECT_NEAR(errors(1, 1), 0.1477, 0.02);
    EXPECT_NEAR(errors(0, 1), 0, 1e-12);
    EXPECT_NEAR(result.predicted_error(0, 0), errors(0, 0), 0.015);
    EXPECT_NEAR(result.predicted_error(1, 1), errors(1, 1), 0.03);
}

TEST(UntiedAmpRuns, HaveTheSameBitsForAnyThreadsAndStorage) {
    for (const Line& line : {Line{"softmax", {.attention = Attention::cross, .key_tokens = 3}, 0.1},
                             Line{"softmax", {.tokens = 3, .attention = Attention::masked}, 0.1},
                             Line{"softmax", {.tokens = 3, .attention = Attention::self}, 0.1},
                             Line{"softmax", {.tokens = 3, .attention = Attention::causal}, 0.1}}) {
        const model::Model model = model_of(line);
        std::vector<linalg::Matrix> estimates;
        for (const std::size_t threads : {1u, 2u, 3u}) {
            for (const auto storage : {data::TokenStorage::memory, data::TokenStorage::regenerate}) {
                ThreadPool pool(threads);
                const auto problem =
                    data::make_synthetic(model.priors(), model.channel(),
                                         {.dim = 40, .alpha = line.alpha, .storage = storage}, pool);
                estimates.push_back(estimators::run_amp(problem.data, model.laws(), model.channel(),
                                                        {.max_iterations = 6}, pool)
                                        .estimates[0]);
            }
        }
        for (const auto& estimate : estimates) EXPECT_EQ(estimate, estimates[0]);
    }
}

/// S^T is another matrix: an estimate with queries and keys exchanged would be as wrong as no data.
TEST(UntiedAmpRuns, EstimateIsNotTransposed) {
    const Line line{"softmax", {.attention = Attention::cross}, 0.3};
    const model::Model model = model_of(line);
    ThreadPool pool(1);
    const auto problem =
        data::make_synthetic(model.priors(), model.channel(), {.dim = 60, .alpha = line.alpha}, pool);
    const auto result =
        estimators::run_amp(problem.data, model.laws(), model.channel(), {.max_iterations = 40}, pool);
    EXPECT_LT(data::estimation_error(result.estimates[0], problem.weights[0]), 0.35);
    EXPECT_GT(data::estimation_error(result.estimates[0].transpose(), problem.weights[0]), 1);
}

/// Fresh samples are predicted as well as theory says from the error of this estimate.
TEST(UntiedPredictions, HaveTheErrorsOfTheory) {
    for (const Line& line : {Line{"softmax", {.attention = Attention::cross}, 0.2},
                             Line{"hardmax", {.tokens = 3, .attention = Attention::masked}, 0.5, 0.2},
                             Line{"softmax", {.attention = Attention::self}, 0.2},
                             Line{"softmax", {.tokens = 3, .attention = Attention::causal}, 0.15}}) {
        const model::Model model = model_of(line);
        ThreadPool pool(0);
        const auto problem =
            data::make_synthetic(model.priors(), model.channel(), {.dim = 80, .alpha = line.alpha}, pool);
        const auto result = estimators::run_amp(problem.data, model.laws(), model.channel(),
                                                {.max_iterations = 60, .damping = line.damping}, pool);
        const channels::Geometry geometry = model.channel().geometry();
        const auto error = data::estimation_errors(geometry, result.estimates, problem.weights);
        const auto total = data::self_overlaps(data::components_of(geometry, problem.weights));
        const auto expected =
            model.channel().generalization({linalg::diagonal_part(total - error), error}, {});
        const auto test = data::make_test_set(problem.weights, model.channel(), 4000, 0, pool);
        const auto prediction =
            estimators::predict(*test.tokens, test.keys(), result.estimates, error, model.channel(), pool);
        const double optimal = estimators::mean_squared_distance(prediction.bayes_optimal, test.targets),
                     plug_in = estimators::mean_squared_distance(prediction.plug_in, test.targets);
        EXPECT_NEAR(optimal, expected.bayes_optimal, 0.06 * expected.bayes_optimal);
        EXPECT_NEAR(plug_in, expected.plug_in, 0.06 * expected.plug_in);
        EXPECT_LT(optimal, plug_in);
    }
}

TEST(UntiedModels, RefuseWhatDoesNotFit) {
    const auto make = [](const char* prior, Attention attention, const char* channel = "softmax") {
        return model::make_model(
            {.prior = prior, .channel = channel, .channel_options = {.attention = attention}});
    };
    test::expect_invalid([&] { make("wigner", Attention::cross); },
                         "prior wigner has symmetric weights, cross attention needs general ones");
    test::expect_invalid([&] { make("bilinear", Attention::tied); },
                         "prior bilinear has general weights, tied attention needs symmetric ones");
    test::expect_invalid([&] { make("wishart", Attention::cross, "deep-softmax"); },
                         "attention of channel deep-softmax must be tied, got cross");
    EXPECT_EQ(make("wishart", Attention::cross).prior(0).name(), "bilinear");  // the default makes way
    const model::Model cross = make("bilinear", Attention::cross), tied = make("wishart", Attention::tied);
    ThreadPool pool(1);
    auto problem = data::make_synthetic(cross.priors(), cross.channel(), {.dim = 10, .alpha = 0.2}, pool);
    test::expect_invalid([&] { estimators::run_amp(problem.data, tied.laws(), tied.channel(), {}, pool); },
                         "key tokens");
    problem.data.key_tokens = data::gaussian_tokens(7, 2, 10, 0, data::TokenStorage::memory,
                                                    data::Precision::double_precision, pool);
    test::expect_invalid([&] { estimators::run_amp(problem.data, cross.laws(), cross.channel(), {}, pool); },
                         "samples of the key tokens must be of size 20, got 7");
}

}  // namespace
}  // namespace bayesaim
