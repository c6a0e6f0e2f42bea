// SPDX-License-Identifier: MIT
// AMP on sampled data against state evolution; they share only the code of priors and channels.
#include "bayesaim/estimators/amp.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/theory/state_evolution.hpp"

namespace bayesaim {
namespace {

struct Measured {
    double mean = 0, standard_error = 0;
    std::vector<double> trajectory;  // mean error after each of the first iterations
};

Measured run_seeds(const std::string& name, int tokens, Eigen::Index dim, double alpha, int seeds,
                   double damping) {
    const priors::Wishart prior(0.5);
    const auto channel = channels::make_channel(name, {.tokens = tokens});
    ThreadPool pool(2);
    Measured result;
    result.trajectory.assign(10, 0);
    std::vector<double> errors;
    for (int seed = 0; seed < seeds; ++seed) {
        data::SyntheticOptions synthetic;
        synthetic.dim = dim;
        synthetic.alpha = alpha;
        synthetic.seed = static_cast<std::uint64_t>(seed);
        const auto problem = data::make_synthetic(prior, *channel, synthetic, pool);
        estimators::AmpOptions options;
        options.damping = damping;
        options.max_iterations = 60;
        options.measure = [&](std::span<const linalg::Matrix> estimates) {
            return data::estimation_errors(estimates, problem.weights);
        };
        const auto run = run_amp(problem.data, prior.law(), *channel, options, pool);
        EXPECT_NE(run.status, Termination::diverged);
        errors.push_back(data::estimation_error(run.estimates[0], problem.weights[0]));
        for (std::size_t t = 0; t < 10; ++t) {
            const auto& at = run.record[std::min(t, run.record.size() - 1)];
            result.trajectory[t] += at.true_error->trace() / seeds;
        }
    }
    for (const double error : errors) result.mean += error / seeds;
    for (const double error : errors) result.standard_error += std::pow(error - result.mean, 2);
    result.standard_error = std::sqrt(result.standard_error / (seeds - 1.0) / seeds);
    return result;
}

double theory_error(const std::string& name, int tokens, double alpha) {
    const spectral::MarchenkoPasturLaw law(0.5);
    const auto channel = channels::make_channel(name, {.tokens = tokens});
    return solve_state_evolution(theory::SpectralCurve(law), *channel, alpha, theory::Start::uninformed)
        .error();
}

/// Finite-size allowance: corrections are of order 1/(alpha d), here twice that.
void expect_agreement(const std::string& name, int tokens, double alpha, int seeds, double damping) {
    const Eigen::Index dim = 100;
    const Measured measured = run_seeds(name, tokens, dim, alpha, seeds, damping);
    const double expected = theory_error(name, tokens, alpha), pairs = tokens * (tokens + 1) / 2.0;
    const double finite_size = 2 / (alpha * static_cast<double>(dim) * pairs) * expected;
    EXPECT_NEAR(measured.mean, expected, 4 * measured.standard_error + finite_size)
        << name << " T = " << tokens;
    EXPECT_LT(4 * measured.standard_error + finite_size, 0.25 * expected) << "the test has no power";
}

TEST(Amp, SoftmaxReachesTheBayesOptimalError) {
    expect_agreement("softmax", 2, 0.12, 8, 0.5);
    expect_agreement("softmax", 3, 0.05, 8, 0.5);
}

TEST(Amp, LinearReachesTheBayesOptimalError) { expect_agreement("linear", 2, 0.08, 8, 0.5); }

/// The published "optimal" error at alpha = 1 is 0.3156: AMP is far below it.
TEST(Amp, HardmaxBeatsThePublishedCurveAndFollowsStateEvolutionStepByStep) {
    const Measured measured = run_seeds("hardmax", 2, 100, 1, 4, 0);
    EXPECT_LT(measured.mean, 0.095);
    const spectral::MarchenkoPasturLaw law(0.5);
    const auto channel = channels::make_channel("hardmax", {});
    const auto trajectory =
        state_evolution_trajectory(theory::SpectralCurve(law), *channel, 1, 10, theory::Start::uninformed);
    for (std::size_t t = 0; t < 10; ++t) {
        const double expected = trajectory[t + 1].error(0, 0);
        EXPECT_NEAR(measured.trajectory[t], expected, 0.1 * expected) << "iteration " << t + 1;
    }
}

TEST(Amp, IsCloserToTheoryInLargerDimension) {
    const double expected = theory_error("softmax", 2, 0.08);
    const double small = run_seeds("softmax", 2, 60, 0.08, 8, 0.5).mean,
                 large = run_seeds("softmax", 2, 200, 0.08, 3, 0.5).mean;
    EXPECT_LT(std::abs(large - expected), std::abs(small - expected));
}

class AmpRun : public testing::Test {
  protected:
    estimators::AmpResult run(double alpha, std::size_t threads, data::TokenStorage storage,
                              estimators::AmpOptions options = {}) {
        ThreadPool pool(threads);
        data::SyntheticOptions synthetic;
        synthetic.dim = 60;
        synthetic.alpha = alpha;
        synthetic.storage = storage;
        problem = data::make_synthetic(prior, *channel, synthetic, pool);
        return run_amp(problem.data, prior.law(), *channel, options, pool);
    }
    priors::Wishart prior{0.5};
    std::unique_ptr<channels::Channel> channel = channels::make_channel("softmax", {});
    data::Synthetic problem;
};

TEST_F(AmpRun, HasTheSameBitsForAnyThreadsAndStorage) {
    const auto reference = run(0.12, 1, data::TokenStorage::memory);
    EXPECT_EQ(reference.estimates, run(0.12, 2, data::TokenStorage::memory).estimates);
    EXPECT_EQ(reference.estimates, run(0.12, 3, data::TokenStorage::regenerate).estimates);
}

TEST_F(AmpRun, FindsTheTruthAboveStrongRecovery) {
    estimators::AmpOptions options;
    options.max_iterations = 400;
    const auto result = run(0.35, 2, data::TokenStorage::memory, options);
    EXPECT_LT(data::estimation_error(result.estimates[0], problem.weights[0]), 1e-4);
    EXPECT_TRUE(succeeded(result.status)) << to_string(result.status);
}

/// In undamped runs the variance can vanish while the error is large: that is not a recovery.
TEST_F(AmpRun, DoesNotTakeALostVarianceForExactRecovery) {
    estimators::AmpOptions options;
    options.damping = 0;
    const auto result = run(0.35, 2, data::TokenStorage::memory, options);
    EXPECT_GT(data::estimation_error(result.estimates[0], problem.weights[0]), 1e-3);
    EXPECT_EQ(result.status, Termination::diverged);
}

/// Started at the truth of exact data, the score vanishes: the run ends without a division by zero.
TEST_F(AmpRun, EndsCleanlyWhenStartedAtTheTruth) {
    run(0.35, 1, data::TokenStorage::memory);
    ThreadPool pool(1);
    estimators::AmpOptions options;
    options.initial_estimates = problem.weights;
    options.initial_error = linalg::scalar_overlap(1e-6);
    const auto result = run_amp(problem.data, prior.law(), *channel, options, pool);
    EXPECT_TRUE(result.estimates[0].allFinite());
    EXPECT_LT(data::estimation_error(result.estimates[0], problem.weights[0]), 1e-5);
    EXPECT_NE(result.status, Termination::diverged);
}

TEST_F(AmpRun, StopsWhenAskedAndKeepsItsRecord) {
    estimators::AmpOptions options;
    options.progress = [](const estimators::AmpIteration& now) { return now.iteration < 3; };
    const auto result = run(0.12, 1, data::TokenStorage::memory, options);
    EXPECT_EQ(result.status, Termination::stopped);
    EXPECT_EQ(result.record.size(), 3U);
}

TEST_F(AmpRun, RejectsWhatHasNoMeaning) {
    estimators::AmpOptions options;
    options.damping = 1;
    EXPECT_THROW(run(0.12, 1, data::TokenStorage::memory, options), std::invalid_argument);
    channel = channels::make_channel("linear", {.tokens = 1});
    run(0.12, 1, data::TokenStorage::memory);
    ThreadPool pool(1);
    EXPECT_THROW(
        estimators::run_amp(problem.data, prior.law(), *channels::make_channel("softmax", {}), {}, pool),
        std::invalid_argument);
}

}  // namespace
}  // namespace bayesaim
