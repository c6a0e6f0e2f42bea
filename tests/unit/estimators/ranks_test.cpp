// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/data/saved_state.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/estimators/erm.hpp"
#include "bayesaim/estimators/fit.hpp"
#include "bayesaim/losses/table.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/thread_ranks.hpp"

/// Every estimator on samples that are divided over ranks has the bits of one process.
namespace bayesaim::estimators {
namespace {

using linalg::Matrix;

constexpr int rank_counts[] = {2, 3, 7};

/// Calls work(pool) in one process, and on several ranks with two threads each.
void expect_same_bits(const std::function<Matrix(ThreadPool&)>& work) {
    ThreadPool alone(1);
    const Matrix expected = work(alone);
    ASSERT_TRUE(expected.allFinite());
    ASSERT_GT(expected.norm(), 0);
    for (const int size : rank_counts) {
        for (const Matrix& result : test::on_ranks(size, [&](Communicator& ranks) {
                 ThreadPool pool(2, ranks);
                 return work(pool);
             }))
            EXPECT_EQ(result, expected) << size << " ranks";
    }
}

data::Synthetic problem_of(const channels::Channel& channel, double alpha, Eigen::Index dim, ThreadPool& pool,
                           data::TokenStorage storage = data::TokenStorage::memory) {
    const priors::Wishart prior(0.5);
    return data::make_synthetic(prior, channel, {.dim = dim, .alpha = alpha, .seed = 3, .storage = storage},
                                pool);
}

TEST(Ranks, AmpOnStoredAndOnRegeneratedTokens) {
    const channels::Softmax channel(2);
    for (const auto storage : {data::TokenStorage::memory, data::TokenStorage::regenerate}) {
        expect_same_bits([&](ThreadPool& pool) {
            const auto problem = problem_of(channel, 0.15, 60, pool, storage);
            return run_amp(problem.data, priors::Wishart(0.5).law(), channel, {.max_iterations = 12}, pool)
                .estimates[0];
        });
    }
}

TEST(Ranks, TokensOfOtherRanksAreNotKept) {
    const channels::Softmax channel(2);
    const auto kept = test::on_ranks(3, [&](Communicator& ranks) {
        ThreadPool pool(1, ranks);
        const auto problem = problem_of(channel, 0.3, 60, pool);
        const Range own = problem.data.shares().own_samples(ranks);
        Matrix scratch;
        EXPECT_NO_THROW(problem.data.tokens->block(own, scratch));
        if (own.begin > 0) {
            EXPECT_THROW(problem.data.tokens->block({own.begin - 1, own.begin}, scratch), std::logic_error);
        }
        return own.size();
    });
    EXPECT_EQ(kept[0] + kept[1] + kept[2], 1080U);
}

TEST(Ranks, Training) {
    const channels::Softmax channel(2);
    expect_same_bits([&](ThreadPool& pool) {
        const auto problem = problem_of(channel, 0.3, 40, pool);
        const auto loss = losses::make_loss("", channel);
        return run_erm(problem.data, *loss, {.regularization = 0.05, .max_iterations = 30}, pool).estimate;
    });
}

TEST(Ranks, GradientDescentWithSamplesOrStartsDivided) {
    const channels::Softmax channel(2);
    const auto options = [] {
        AveragedGradientDescentOptions result;
        result.descent.width = 10;
        result.descent.max_steps = 25;
        result.starts = 3;
        return result;
    };
    expect_same_bits([&](ThreadPool& pool) {
        const auto problem = problem_of(channel, 0.4, 40, pool);
        return run_averaged_gradient_descent(problem.data, channel, options(), pool).estimate;
    });
    ThreadPool alone(1);
    const auto problem = problem_of(channel, 0.4, 40, alone);
    const Matrix expected = run_averaged_gradient_descent(problem.data, channel, options(), alone).estimate;
    for (const int size : rank_counts) {
        for (const Matrix& result : test::on_ranks(size, [&](Communicator& ranks) {
                 ThreadPool own(1);
                 auto over_starts = options();
                 over_starts.starts_over = &ranks;
                 return run_averaged_gradient_descent(problem.data, channel, over_starts, own).estimate;
             }))
            EXPECT_EQ(result, expected) << size << " ranks";
    }
}

TEST(Ranks, FitThatLearnsAndHoldsOut) {
    const auto fitted = [](const channels::Channel& channel, const ChannelOf& channel_of, double noise,
                           bool learn_noise, ThreadPool& pool) {
        const auto problem = problem_of(channel, 0.5, 40, pool);
        FitOptions options;
        options.families = {Family::weights};
        options.learn_label_noise = learn_noise;
        options.amp.max_iterations = 15;
        const priors::Wishart prior(0.5);
        const spectral::SpectralLaw* laws[] = {&prior.law()};
        const FitResult result = fit(problem.data, channel_of, noise, laws, options, pool);
        Matrix all(result.estimate.rows(), result.estimate.cols() + 1);
        all << result.estimate,
            linalg::Vector::Constant(result.estimate.rows(), *result.candidates.at(0).held_out.z);
        return all;
    };
    expect_same_bits([&](ThreadPool& pool) {
        const channels::Softmax channel(2);
        return fitted(
            channel, [](double) { return std::make_shared<channels::Softmax>(2); }, 0, false, pool);
    });
    expect_same_bits([&](ThreadPool& pool) {
        const channels::Linear channel(2, 0.3);
        return fitted(
            channel, [](double noise) { return std::make_shared<channels::Linear>(2, noise); }, 0.3, true,
            pool);
    });
    expect_same_bits([&](ThreadPool& pool) {
        const channels::Hardmax channel(2);
        return fitted(
            channel, [](double) { return std::make_shared<channels::Hardmax>(2); }, 0, false, pool);
    });
}

TEST(Ranks, AStopOnOneRankStopsAll) {
    const channels::Softmax channel(2);
    const auto lengths = test::on_ranks(3, [&](Communicator& ranks) {
        ThreadPool pool(1, ranks);
        const auto problem = problem_of(channel, 0.15, 40, pool);
        AmpOptions options;
        options.progress = [&](const AmpIteration& now) { return ranks.rank() != 1 || now.iteration < 4; };
        const AmpResult result = run_amp(problem.data, priors::Wishart(0.5).law(), channel, options, pool);
        EXPECT_EQ(result.status, Termination::stopped);
        return result.record.size();
    });
    for (const std::size_t length : lengths) EXPECT_EQ(length, 4U);
}

TEST(Checkpoint, AmpGoesOnWithTheSameBitsOnAnotherNumberOfRanks) {
    const channels::Softmax channel(2);
    const AmpOptions options{.max_iterations = 20, .adaptive_damping = true};
    ThreadPool alone(1);
    const priors::Wishart prior(0.5);
    const auto whole = problem_of(channel, 0.15, 50, alone);
    const AmpResult expected = run_amp(whole.data, prior.law(), channel, options, alone);
    auto state = std::make_shared<data::SavedState>();
    test::on_ranks(3, [&](Communicator& ranks) {
        ThreadPool pool(1, ranks);
        const auto problem = problem_of(channel, 0.15, 50, pool);
        AmpOptions first = options;
        first.max_iterations = 7;
        first.save_stride = 6;
        first.save = [&](const data::SavedState& now) { *state = now; };
        run_amp(problem.data, prior.law(), channel, first, pool);
        return 0;
    });
    for (const int size : {1, 2}) {
        const auto results = test::on_ranks(size, [&](Communicator& ranks) {
            ThreadPool pool(1, ranks);
            const auto problem = problem_of(channel, 0.15, 50, pool);
            AmpOptions rest = options;
            rest.resume = state;
            return run_amp(problem.data, prior.law(), channel, rest, pool);
        });
        for (const AmpResult& result : results) {
            EXPECT_EQ(result.estimates[0], expected.estimates[0]);
            ASSERT_EQ(result.record.size(), expected.record.size());
            for (std::size_t i = 0; i < result.record.size(); ++i) {
                EXPECT_EQ(result.record[i].predicted_error, expected.record[i].predicted_error);
                EXPECT_EQ(result.record[i].change, expected.record[i].change);
            }
        }
    }
}

TEST(Checkpoint, BothSolversOfTrainingGoOnWithTheSameBits) {
    const channels::Softmax channel(2);
    ThreadPool pool(2);
    const auto problem = problem_of(channel, 0.3, 30, pool);
    const auto loss = losses::make_loss("", channel);
    for (const Solver solver : {Solver::message_passing, Solver::proximal_gradient}) {
        ErmOptions options{.regularization = 0.05, .solver = solver, .max_iterations = 40};
        const ErmResult expected = run_erm(problem.data, *loss, options, pool);
        auto state = std::make_shared<data::SavedState>();
        ErmOptions first = options;
        first.max_iterations = 13;
        first.save_stride = 6;
        first.save = [&](const data::SavedState& now) { *state = now; };
        run_erm(problem.data, *loss, first, pool);
        options.resume = state;
        const ErmResult resumed = run_erm(problem.data, *loss, options, pool);
        EXPECT_EQ(resumed.estimate, expected.estimate);
        ASSERT_EQ(resumed.record.size(), expected.record.size());
        for (std::size_t i = 0; i < resumed.record.size(); ++i)
            EXPECT_EQ(resumed.record[i].change, expected.record[i].change);
    }
}

}  // namespace
}  // namespace bayesaim::estimators
