// SPDX-License-Identifier: MIT
#include "bayesaim/theory/deep_state_evolution.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::theory {
namespace {

using channels::DeepAttention;
using spectral::MarchenkoPasturLaw;

/// Two layers of width 0.5, two tokens, c = 1, beta = 1.
struct TwoLayers {
    MarchenkoPasturLaw law{0.5};
    const spectral::SpectralLaw* laws[2] = {&law, &law};
    DeepAttention channel;
    ThreadPool pool{2};

    FixedPoint solve(double alpha, int points, Start start = Start::uninformed) {
        StateEvolutionOptions options;
        options.integration = {.shifts = 8, .points = points, .pool = &pool};
        return solve_deep_state_evolution(laws, channel, alpha, start, options);
    }
};

/// References of an independent implementation, 3 x 16384 points with standard errors of 1 to 4 in 10^4.
/// Layers without coupling are 5e-4 and 4e-3 off in Tr C; a degree-4 polynomial denoiser 9% at alpha = 0.3.
TEST(DeepStateEvolution, References) {
    TwoLayers problem;
    const struct {
        double alpha, c11, c12, c22, trace;
        int points;
    } references[] = {{0.1, 0.82378, -0.00409, 0.55624, 1.38002, 1024},
                      {0.3, 0.22011, -0.00257, 0.04275, 0.26285, 2048}};
    for (const auto& r : references) {
        const FixedPoint point = problem.solve(r.alpha, r.points);
        EXPECT_EQ(point.status, Termination::converged);
        const Overlap& c = point.parameters.error;
        EXPECT_NEAR(point.error() / r.trace, 1, 3e-3) << r.alpha;
        EXPECT_NEAR(c(0, 0) / r.c11, 1, 3e-3) << r.alpha;
        EXPECT_NEAR(c(1, 1) / r.c22, 1, 5e-3) << r.alpha;
        EXPECT_NEAR(c(0, 1), r.c12, 8e-4) << r.alpha;  // neither 0 nor the other sign
        EXPECT_GT(point.relative_error, 0);
        EXPECT_LT(point.relative_error, 6e-3) << r.alpha;
        const Overlap total = point.parameters.overlap + c;
        EXPECT_NEAR(total(0, 0), 1.5, 1e-12);
        EXPECT_NEAR(total(0, 1), 0.5, 1e-12);  // kappa1 kappa1
    }
}

TEST(DeepStateEvolution, Trajectory) {
    TwoLayers problem;
    StateEvolutionOptions options;
    options.integration = {.shifts = 8, .points = 256, .pool = &problem.pool};
    const auto trajectory =
        deep_state_evolution_trajectory(problem.laws, problem.channel, 0.2, 6, Start::uninformed, options);
    const double expected[] = {2, 1.2447, 1.0141, 0.9074, 0.8490, 0.8143, 0.7928};
    ASSERT_EQ(trajectory.size(), 7U);
    for (std::size_t t = 0; t < 7; ++t) EXPECT_NEAR(trajectory[t].error.trace() / expected[t], 1, 4e-3) << t;
}

/// The threshold L (rho - rho^2/2)/(K - 1) = 0.375, seen in the growth of a small error on both sides of it,
/// and in fixed points.
TEST(DeepStateEvolution, StrongRecovery) {
    TwoLayers problem;
    EXPECT_NEAR(deep_strong_recovery(problem.laws, problem.channel), 0.375, 1e-14);
    for (const double alpha : {0.365, 0.37, 0.38, 0.385}) {
        const double rate =
            recovery_growth_rate(problem.laws, problem.channel, alpha, {.shifts = 4, .points = 32});
        EXPECT_NEAR(rate, 0.375 / alpha, 5e-4) << alpha;  // next alpha: 0.013 away
    }
    const FixedPoint recovered = problem.solve(0.5, 32);
    EXPECT_EQ(recovered.status, Termination::exact_recovery);
    EXPECT_EQ(recovered.error(), 0);
    EXPECT_EQ(recovered.conjugate(0, 1), 0);
}

/// Nothing keeps a point next to the truth below the threshold: both starts lead to the same fixed point.
TEST(DeepStateEvolution, InformedStartLeadsToTheSameFixedPoint) {
    TwoLayers problem;
    const FixedPoint uninformed = problem.solve(0.2, 64), informed = problem.solve(0.2, 64, Start::informed);
    EXPECT_EQ(informed.status, Termination::converged);
    EXPECT_NEAR(informed.error() / uninformed.error(), 1, 1e-4);
}

/// Different widths: the narrower layer is easier to learn, and exchanging the widths changes the result.
TEST(DeepStateEvolution, TakesDifferentWidths) {
    TwoLayers problem;
    const MarchenkoPasturLaw wide(2);
    const spectral::SpectralLaw *mixed[] = {&problem.law, &wide}, *exchanged[] = {&wide, &problem.law};
    StateEvolutionOptions options;
    options.integration = {.shifts = 8, .points = 64, .pool = &problem.pool};
    const FixedPoint one =
                         solve_deep_state_evolution(mixed, problem.channel, 0.2, Start::uninformed, options),
                     other = solve_deep_state_evolution(exchanged, problem.channel, 0.2, Start::uninformed,
                                                        options),
                     equal = problem.solve(0.2, 64);
    EXPECT_EQ(one.status, Termination::converged);
    EXPECT_EQ(other.status, Termination::converged);
    EXPECT_GT(one.parameters.error(1, 1), 1.05 * equal.parameters.error(1, 1));
    EXPECT_GT(other.parameters.error(0, 0), 1.05 * equal.parameters.error(0, 0));
    EXPECT_NEAR(one.parameters.overlap(0, 1) + one.parameters.error(0, 1), 1, 1e-12);  // sqrt(0.5 * 2)
    EXPECT_NEAR(deep_strong_recovery(mixed, problem.channel), (0.75 + 1) / 4, 1e-14);
}

TEST(DeepStateEvolution, OneLayerIsSoftmax) {
    const MarchenkoPasturLaw law(0.5);
    const spectral::SpectralLaw* laws[] = {&law};
    const DeepAttention deep({.layers = 1, .tokens = 3});
    const channels::Softmax softmax(3);
    for (const double alpha : {0.02, 0.05, 0.2}) {
        const FixedPoint a = solve_deep_state_evolution(laws, deep, alpha, Start::uninformed),
                         b = solve_state_evolution(SpectralCurve(law), softmax, alpha, Start::uninformed);
        EXPECT_EQ(a.status, b.status);
        EXPECT_NEAR(a.error(), b.error(), 1e-10);
    }
    EXPECT_NEAR(deep_strong_recovery(laws, deep), *strong_recovery(SpectralCurve(law), softmax), 1e-14);
}

TEST(DeepStateEvolution, DoesNotDependOnThreads) {
    TwoLayers problem;
    StateEvolutionOptions options;
    options.integration = {.shifts = 4, .points = 64};
    const FixedPoint one =
        solve_deep_state_evolution(problem.laws, problem.channel, 0.1, Start::uninformed, options);
    options.integration.pool = &problem.pool;
    const FixedPoint two =
        solve_deep_state_evolution(problem.laws, problem.channel, 0.1, Start::uninformed, options);
    EXPECT_EQ(one.parameters.error, two.parameters.error);
}

TEST(DeepStateEvolution, RejectsWrongArguments) {
    TwoLayers problem;
    const spectral::SpectralLaw* one[] = {&problem.law};
    test::expect_invalid([&] { solve_deep_state_evolution(one, problem.channel, 0.1, Start::uninformed); },
                         "number of priors must be of size 2, got 1");
    test::expect_invalid(
        [&] { solve_deep_state_evolution(problem.laws, problem.channel, -1, Start::uninformed); },
        "alpha must be positive and finite, got -1");
}

}  // namespace
}  // namespace bayesaim::theory
