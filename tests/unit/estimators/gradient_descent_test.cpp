// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/gradient_descent.hpp"

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/estimators/attention_loss.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::estimators {
namespace {

class GradientDescentTest : public testing::Test {
  protected:
    void make(const std::string& name, double alpha, const channels::ChannelOptions& of_channel = {}) {
        channel = channels::make_channel(name, of_channel);
        data::SyntheticOptions synthetic;
        synthetic.dim = 20;
        synthetic.alpha = alpha;
        if (channel->geometry().symmetric()) {
            problem = data::make_synthetic(priors::Wishart(0.5), *channel, synthetic, pool);
        } else {
            problem = data::make_synthetic(priors::Bilinear(0.5), *channel, synthetic, pool);
        }
        options.width = 10;
        options.max_steps = 60;
        options.precision = data::Precision::double_precision;
        options.measure = [this](const linalg::Matrix& m) {
            return data::estimation_error(m, problem.weights[0]);
        };
    }
    Descent run() { return run_gradient_descent(problem.data, *channel, options, pool); }
    AveragedGradientDescentResult run(int starts, std::size_t threads) {
        ThreadPool threads_pool(threads);
        return run_averaged_gradient_descent(problem.data, *channel, {.descent = options, .starts = starts},
                                             threads_pool);
    }

    ThreadPool pool{1};
    std::unique_ptr<channels::Channel> channel;
    data::Synthetic problem;
    GradientDescentOptions options;
};

TEST_F(GradientDescentTest, HistoryFallsAndEndsWithTheStudent) {
    make("softmax", 0.4);
    const Descent descent = run();
    EXPECT_EQ(descent.status, Termination::iteration_limit);
    EXPECT_EQ(descent.step, 60);
    ASSERT_EQ(descent.record.size(), 7U);  // steps 0, 10, ..., 60
    EXPECT_EQ(descent.record.back().step, 60);
    EXPECT_LT(descent.record.back().loss, 0.2 * descent.record.front().loss);
    EXPECT_EQ(*descent.record.back().true_error,
              data::estimation_error(descent.estimate(), problem.weights[0]));
    linalg::Matrix gradient;
    const AttentionLoss<double> loss(problem.data, *channel, pool);
    EXPECT_EQ(loss.evaluate(descent.weights, gradient), descent.record.back().loss);
}

TEST_F(GradientDescentTest, PlainStepIsAgainstTheGradient) {
    make("linear", 0.4);
    options.optimizer = Optimizer::gradient_descent;
    options.learning_rate = 1e-3;
    options.max_steps = 1;
    const auto descender = make_gradient_descent(problem.data, *channel, options, pool);
    Descent descent = descender->start(3);
    const linalg::Matrix before = descent.weights;
    linalg::Matrix gradient;
    AttentionLoss<double>(problem.data, *channel, pool).evaluate(before, gradient);
    descender->advance(descent, 1, nullptr);
    EXPECT_EQ(descent.step, 1);
    EXPECT_LT((descent.weights - (before - 1e-3 * gradient)).norm(), 1e-14 * before.norm());
    EXPECT_GT((descent.weights - before).norm(), 1e-6 * before.norm());
}

TEST_F(GradientDescentTest, PausesDoNotChangeBits) {
    for (const Eigen::Index batch : {0, 17}) {
        make("softmax", 0.4);
        options.precision = data::Precision::float_precision;
        options.batch_size = batch;
        const Descent whole = run();
        const auto descender = make_gradient_descent(problem.data, *channel, options, pool);
        Descent paused = descender->start(0);
        while (!paused.status) descender->advance(paused, 7, nullptr);
        EXPECT_EQ(paused.weights, whole.weights) << batch;
        ASSERT_EQ(paused.record.size(), whole.record.size());
        EXPECT_EQ(paused.record.back().loss, whole.record.back().loss);
    }
}

TEST_F(GradientDescentTest, AStartDoesNotDependOnItsNeighboursOrThreads) {
    make("softmax", 3);
    options.precision = data::Precision::float_precision;
    const Descent alone = run();
    const auto five = run(5, 1);
    EXPECT_EQ(five.descents[0].weights, alone.weights);
    const auto threaded = run(5, 3), few = run(2, 3);
    for (std::size_t m = 0; m < 5; ++m)
        EXPECT_EQ(threaded.descents[m].weights, five.descents[m].weights) << m;
    EXPECT_EQ(few.descents[1].weights, five.descents[1].weights);
    EXPECT_EQ(threaded.estimate, five.estimate);
    EXPECT_NE(five.descents[0].weights, five.descents[1].weights);
}

TEST_F(GradientDescentTest, AverageIsTheMeanOverStarts) {
    make("softmax", 0.3);
    const auto result = run(3, 1);
    linalg::Matrix mean = linalg::Matrix::Zero(20, 20);
    for (const Descent& descent : result.descents) mean += descent.estimate() / 3;
    EXPECT_LT((result.estimate - mean).norm(), 1e-13 * mean.norm());
    const StartErrors errors = measure_starts(result.descents, options.measure);
    ASSERT_EQ(errors.each.size(), 3U);
    EXPECT_EQ(errors.each[1], options.measure(result.descents[1].estimate()));
    EXPECT_EQ(errors.averaged[0], errors.each[0]);
    EXPECT_EQ(errors.averaged[2], options.measure(result.estimate));
}

TEST_F(GradientDescentTest, UntiedAttentionLearnsTwoFactors) {
    for (const channels::ChannelOptions& of_channel :
         {channels::ChannelOptions{.attention = channels::Attention::cross, .key_tokens = 3},
          channels::ChannelOptions{.tokens = 3, .attention = channels::Attention::masked}}) {
        make("softmax", 0.4, of_channel);
        const Descent descent = run();
        EXPECT_EQ(descent.factors, 2);
        ASSERT_EQ(descent.weights.cols(), 20);
        EXPECT_LT(descent.record.back().loss, 0.2 * descent.record.front().loss);
        const linalg::Matrix s = descent.estimate(), expected = descent.weights.leftCols(10) *
                                                                descent.weights.rightCols(10).transpose() /
                                                                std::sqrt(10.0 * 20.0);
        EXPECT_LT((s - expected).norm(), 1e-13 * expected.norm());
        EXPECT_GT((s - s.transpose()).norm(), 0.5 * s.norm()) << "S is symmetric";
        EXPECT_EQ(*descent.record.back().true_error, data::estimation_error(s, problem.weights[0]));
    }
}

TEST_F(GradientDescentTest, UntiedBitsDependOnNeitherPausesNorThreads) {
    for (const Eigen::Index batch : {0, 17}) {
        make("softmax", 1, {.attention = channels::Attention::cross, .key_tokens = 3});
        options.precision = data::Precision::float_precision;
        options.batch_size = batch;
        const Descent whole = run();
        const auto descender = make_gradient_descent(problem.data, *channel, options, pool);
        Descent paused = descender->start(0);
        while (!paused.status) descender->advance(paused, 7, nullptr);
        EXPECT_EQ(paused.weights, whole.weights) << batch;
        const auto five = run(5, 1), threaded = run(5, 3), few = run(2, 3);
        EXPECT_EQ(five.descents[0].weights, whole.weights);
        EXPECT_EQ(threaded.estimate, five.estimate);
        EXPECT_EQ(few.descents[1].weights, five.descents[1].weights);
    }
}

TEST_F(GradientDescentTest, ResumesOnlyStudentsOfItsGeometry) {
    make("softmax", 0.4, {.tokens = 3, .attention = channels::Attention::masked});
    AveragedGradientDescentOptions averaged{.descent = options, .starts = 1};
    averaged.resume = {make_gradient_descent(problem.data, *channel, options, pool)->start(0)};
    EXPECT_EQ(run_averaged_gradient_descent(problem.data, *channel, averaged, pool).descents[0].weights,
              run().weights);
    averaged.resume[0].factors = 1;
    test::expect_invalid([&] { run_averaged_gradient_descent(problem.data, *channel, averaged, pool); },
                         "factors of a resumed student must be of size 2, got 1");
    averaged.resume[0].factors = 2;
    averaged.resume[0].step = options.max_steps + 1;  // it would never be the last one
    test::expect_invalid([&] { run_averaged_gradient_descent(problem.data, *channel, averaged, pool); },
                         "step of a resumed student must be between 0 and");
    averaged.resume[0].step = 0;
    averaged.resume[0].first_moment.resize(1, 1);
    test::expect_invalid([&] { run_averaged_gradient_descent(problem.data, *channel, averaged, pool); },
                         "resumed moment must be of shape");
}

/// With a student that hardly moves, the batches of one epoch together are all samples once.
TEST_F(GradientDescentTest, AnEpochSeesEverySampleOnce) {
    make("softmax", 0.3);  // 120 samples: four batches of 30
    options.batch_size = 30;
    options.learning_rate = 1e-200;
    options.optimizer = Optimizer::gradient_descent;
    options.record_stride = 1;
    const Descent descent = run();
    options.batch_size = 0;
    const double whole = run().record.front().loss;
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
        double mean = 0;
        for (std::size_t i = 0; i < 4; ++i) mean += descent.record[4 * epoch + i].loss / 4;
        EXPECT_LT(test::relative_error(mean, whole), 1e-13);
    }
    EXPECT_NE(descent.record[0].loss, descent.record[1].loss);
    EXPECT_NE(descent.record[0].loss, descent.record[4].loss) << "the second epoch has another order";
}

TEST_F(GradientDescentTest, StopsAtATolerance) {
    make("softmax", 0.4);
    options.max_steps = 2000;
    options.loss_tolerance = 1e-3;
    const Descent by_loss = run();
    EXPECT_EQ(by_loss.status, Termination::converged);
    EXPECT_LE(by_loss.record.back().loss, 1e-3);
    EXPECT_LT(by_loss.step, 2000);
    options.loss_tolerance = 0;
    options.gradient_tolerance = 0.05;
    const Descent by_gradient = run();
    EXPECT_EQ(by_gradient.status, Termination::converged);
    EXPECT_LE(by_gradient.record.back().gradient_norm, 0.05);
}

TEST_F(GradientDescentTest, ALossThatIsNotFiniteIsADivergence) {
    make("linear", 0.4);
    options.optimizer = Optimizer::gradient_descent;
    options.learning_rate = 1e3;
    const auto result = run(2, 1);
    EXPECT_EQ(result.status, Termination::diverged);
    EXPECT_EQ(result.estimate.size(), 0) << "nothing was left to average";
    for (const DescentStep& step : result.descents[0].record) EXPECT_TRUE(std::isfinite(step.loss));
}

// Outputs that are saturated have no gradient.
TEST_F(GradientDescentTest, AStepOutOfSightIsADivergence) {
    make("softmax", 0.4);
    options.optimizer = Optimizer::gradient_descent;
    options.learning_rate = 1e10;
    const Descent descent = run();
    EXPECT_EQ(descent.status, Termination::diverged);
    EXPECT_LT(descent.step, 60);
}

TEST_F(GradientDescentTest, StudentMayHaveAnotherWidth) {
    make("softmax", 0.4);
    for (const Eigen::Index width : {1, 4, 27}) {
        options.width = width;
        const Descent descent = run();
        EXPECT_EQ(descent.weights.cols(), width);
        EXPECT_LT(descent.record.back().loss, descent.record.front().loss) << width;
    }
}

TEST_F(GradientDescentTest, ProgressStopsTheRun) {
    make("softmax", 0.4);
    AveragedGradientDescentOptions averaged{.descent = options, .starts = 2};
    averaged.progress = [](const std::vector<Descent>& descents) { return descents[0].step < 20; };
    const auto result = run_averaged_gradient_descent(problem.data, *channel, averaged, pool);
    EXPECT_EQ(result.status, Termination::stopped);
    EXPECT_EQ(result.descents[0].step, 20);
}

TEST_F(GradientDescentTest, RefusesWhatHasNoMeaning) {
    make("softmax", 0.4);
    const auto refuse = [&](auto change, const char* complaint) {
        const GradientDescentOptions good = options;
        change(options);
        test::expect_invalid([&] { run(); }, complaint);
        options = good;
    };
    refuse([](auto& o) { o.width = 0; }, "student width must be at least 1, got 0");
    refuse([](auto& o) { o.learning_rate = 0; }, "learning rate must be positive");
    refuse([](auto& o) { o.learning_rate = -0.1; }, "learning rate must be positive");
    refuse([](auto& o) { o.beta1 = 1; }, "beta1 must be below 1");
    refuse([](auto& o) { o.epsilon = 0; }, "epsilon must be positive");
    refuse([](auto& o) { o.max_steps = 0; }, "steps must be at least 1");
    refuse([](auto& o) { o.batch_size = -1; }, "batch size");
    refuse([](auto& o) { o.loss_tolerance = -1; }, "loss tolerance");
    test::expect_invalid([&] { run(0, 1); }, "starts must be at least 1");
}

}  // namespace
}  // namespace bayesaim::estimators
