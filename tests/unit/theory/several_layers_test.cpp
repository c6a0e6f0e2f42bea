// SPDX-License-Identifier: MIT
// State evolution of several layers, and its general engine at one layer against the closed forms.
#include <atomic>
#include <cmath>
#include <tuple>

#include <gtest/gtest.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/theory/state_evolution.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::theory {
namespace {

using channels::DeepAttention;
using spectral::MarchenkoPasturLaw;

SpectralCurve curve(std::vector<const spectral::SpectralLaw*> laws) { return SpectralCurve(Laws(laws)); }

/// Two layers of width 0.5, two tokens, c = 1, beta = 1.
struct TwoLayers {
    MarchenkoPasturLaw law{0.5};
    SpectralCurve prior = curve({&law, &law});
    DeepAttention channel;
    ThreadPool pool{2};

    FixedPoint solve(double alpha, int points, Start start = Start::uninformed) {
        StateEvolutionOptions options;
        options.integration = {.shifts = 8, .points = points, .pool = &pool};
        return solve_state_evolution(prior, channel, alpha, start, options);
    }
};

/// References from an independent implementation, 3 x 16384 points with standard errors of 1e-4 to 4e-4.
/// Layers without coupling are 5e-4 and 4e-3 off in Tr C; a degree-4 polynomial denoiser 9% at alpha = 0.3.
TEST(StateEvolutionOfLayers, AgreesWithAnIndependentImplementation) {
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

TEST(StateEvolutionOfLayers, IteratesAreThoseOfAnIndependentImplementation) {
    TwoLayers problem;
    StateEvolutionOptions options;
    options.integration = {.shifts = 8, .points = 256, .pool = &problem.pool};
    const auto trajectory =
        state_evolution_trajectory(problem.prior, problem.channel, 0.2, 6, Start::uninformed, options);
    const double expected[] = {2, 1.2447, 1.0141, 0.9074, 0.8490, 0.8143, 0.7928};
    ASSERT_EQ(trajectory.size(), 7U);
    for (std::size_t t = 0; t < 7; ++t) EXPECT_NEAR(trajectory[t].error.trace() / expected[t], 1, 4e-3) << t;
}

/// The threshold L (rho - rho^2/2)/(K - 1) = 0.375, seen in the growth of a small error on both sides of it,
/// and in fixed points.
TEST(StateEvolutionOfLayers, ErrorVanishesFromTheThresholdOn) {
    TwoLayers problem;
    EXPECT_NEAR(strong_recovery(problem.prior, problem.channel).value(), 0.375, 1e-14);
    for (const double alpha : {0.365, 0.37, 0.38, 0.385}) {
        const double rate =
            recovery_growth_rate(problem.prior, problem.channel, alpha, {.shifts = 4, .points = 32});
        EXPECT_NEAR(rate, 0.375 / alpha, 5e-4) << alpha;  // next alpha: 0.013 away
    }
    const FixedPoint recovered = problem.solve(0.5, 32);
    EXPECT_EQ(recovered.status, Termination::exact_recovery);
    EXPECT_EQ(recovered.error(), 0);
    EXPECT_EQ(recovered.conjugate(0, 1), 0);
}

/// Below the threshold there is no fixed point next to the truth: both starts lead to the same fixed point.
TEST(StateEvolutionOfLayers, InformedStartLeadsToTheSameFixedPoint) {
    TwoLayers problem;
    const FixedPoint uninformed = problem.solve(0.2, 64), informed = problem.solve(0.2, 64, Start::informed);
    EXPECT_EQ(informed.status, Termination::converged);
    EXPECT_NEAR(informed.error() / uninformed.error(), 1, 1e-4);
}

/// Different widths: the narrower layer is easier to learn, and exchanging the widths changes the result.
TEST(StateEvolutionOfLayers, TakesDifferentWidths) {
    TwoLayers problem;
    const MarchenkoPasturLaw wide(2);
    const SpectralCurve mixed = curve({&problem.law, &wide}), exchanged = curve({&wide, &problem.law});
    StateEvolutionOptions options;
    options.integration = {.shifts = 8, .points = 64, .pool = &problem.pool};
    const FixedPoint one = solve_state_evolution(mixed, problem.channel, 0.2, Start::uninformed, options),
                     other =
                         solve_state_evolution(exchanged, problem.channel, 0.2, Start::uninformed, options),
                     equal = problem.solve(0.2, 64);
    EXPECT_EQ(one.status, Termination::converged);
    EXPECT_EQ(other.status, Termination::converged);
    EXPECT_GT(one.parameters.error(1, 1), 1.05 * equal.parameters.error(1, 1));
    EXPECT_GT(other.parameters.error(0, 0), 1.05 * equal.parameters.error(0, 0));
    EXPECT_NEAR(one.parameters.overlap(0, 1) + one.parameters.error(0, 1), 1, 1e-12);  // sqrt(0.5 * 2)
    EXPECT_NEAR(strong_recovery(mixed, problem.channel).value(), (0.75 + 1) / 4, 1e-14);
}

/// Residual connections so strong that tokens hardly mix: the last layer is learned as if it were alone, the
/// others not at all. Three layers and three tokens, where posteriors are sampled.
TEST(StateEvolutionOfLayers, StrongResidualConnectionsDecoupleTheLayers) {
    const MarchenkoPasturLaw law(0.5);
    ThreadPool pool(2);
    for (const auto& [layers, tokens, alpha] : {std::tuple{2, 3, 0.05}, std::tuple{3, 2, 0.1}}) {
        const SpectralCurve prior = curve({static_cast<std::size_t>(layers), &law});
        const DeepAttention channel({.layers = layers, .tokens = tokens, .residual = 300, .points = 128});
        StateEvolutionOptions options;
        options.integration = {.shifts = 8, .points = 16, .pool = &pool};
        const FixedPoint point = solve_state_evolution(prior, channel, alpha, Start::uninformed, options);
        const FixedPoint alone =
            solve_state_evolution(SpectralCurve(law), channels::Softmax(tokens), alpha, Start::uninformed);
        EXPECT_EQ(point.status, Termination::converged);
        const Overlap& error = point.parameters.error;
        for (int l = 0; l < layers - 1; ++l) EXPECT_NEAR(error(l, l), 1, 1e-2) << layers << " " << l;
        EXPECT_NEAR(error(layers - 1, layers - 1) / alone.error(), 1, 1e-2) << layers;
        EXPECT_LT(alone.error(), 0.6);
    }
}

/// The L x L engine at L = 1, which does not use the closed forms, finds their fixed points.
TEST(StateEvolutionOfLayers, GeneralEngineAtOneLayerFindsTheClosedForms) {
    const MarchenkoPasturLaw law(0.5);
    const SpectralCurve prior(law);
    const auto expect_same = [&](const channels::Channel& channel, std::initializer_list<double> alphas,
                                 double tolerance) {
        for (const double alpha : alphas) {
            const FixedPoint expected = solve_state_evolution(prior, channel, alpha),
                             found = solve_state_evolution(prior, channel, alpha, Start::uninformed,
                                                           {.method = Method::newton});
            EXPECT_EQ(found.status, expected.status) << channel.name() << " " << alpha;
            EXPECT_NEAR(found.error(), expected.error(), tolerance * expected.error())
                << channel.name() << " " << alpha;
            if (expected.error() > 0) {
                EXPECT_NEAR(found.conjugate(0, 0) / expected.conjugate(0, 0), 1, 100 * tolerance) << alpha;
            }
        }
    };
    expect_same(channels::Softmax(2), {0.01, 0.05, 0.1, 0.15, 0.18, 0.2}, 1e-10);
    expect_same(channels::Softmax(4), {0.01, 0.03}, 1e-10);
    expect_same(channels::Linear(2), {0.01, 0.05, 0.1, 0.2}, 1e-10);
    expect_same(channels::Linear(2, 0.3), {0.01, 0.1, 0.5, 5}, 1e-10);
    expect_same(channels::Hardmax(2), {0.3, 1, 5}, 1e-8);
}

/// m = K for linear, K - 1 for softmax: 2 rho - rho^2 = 0.75 over 2 m.
TEST(StateEvolutionOfLayers, StrongRecoveryAsksTheChannel) {
    const MarchenkoPasturLaw law(0.5);
    const SpectralCurve prior(law);
    EXPECT_NEAR(strong_recovery(prior, channels::Linear(2)).value(), 0.125, 1e-14);
    EXPECT_NEAR(strong_recovery(prior, channels::Softmax(2)).value(), 0.1875, 1e-14);
    EXPECT_FALSE(strong_recovery(prior, channels::Linear(2, 0.1)));
    EXPECT_FALSE(strong_recovery(prior, channels::Hardmax(2)));
}

TEST(StateEvolutionOfLayers, MethodsThatDoNotFitAreRefused) {
    TwoLayers problem;
    const SpectralCurve one(problem.law);
    test::expect_invalid(
        [&] { solve_state_evolution(problem.prior, problem.channel, 0.1, {}, {.method = Method::monotone}); },
        "method monotone is only available for one layer");
    test::expect_invalid(
        [&] { solve_state_evolution(one, channels::Hardmax(2), 0.1, {}, {.method = Method::bracketed}); },
        "method bracketed is only available for one layer with exact observations");
}

TEST(StateEvolutionOfLayers, DoesNotDependOnThreads) {
    TwoLayers problem;
    StateEvolutionOptions options;
    options.integration = {.shifts = 4, .points = 64};
    const FixedPoint one =
        solve_state_evolution(problem.prior, problem.channel, 0.1, Start::uninformed, options);
    options.integration.pool = &problem.pool;
    const FixedPoint two =
        solve_state_evolution(problem.prior, problem.channel, 0.1, Start::uninformed, options);
    EXPECT_EQ(one.parameters.error, two.parameters.error);
}

/// At beta = 30 the posteriors are not resolved: no exception, no false success.
TEST(StateEvolutionOfLayers, UnresolvedPosteriorsAreReported) {
    const MarchenkoPasturLaw law(0.5);
    ThreadPool pool(2);
    StateEvolutionOptions options;
    options.integration = {.shifts = 4, .points = 16, .pool = &pool};
    const FixedPoint point = solve_state_evolution(curve({&law, &law}), DeepAttention({.beta = 30}), 0.1,
                                                   Start::uninformed, options);
    EXPECT_TRUE(point.status == Termination::iteration_limit || point.relative_error > 0.05)
        << point.error() << " " << point.relative_error;
    EXPECT_GT(point.relative_error, 1e-3);
}

TEST(StateEvolutionOfLayers, RejectsWrongArguments) {
    TwoLayers problem;
    test::expect_invalid([&] { solve_state_evolution(SpectralCurve(problem.law), problem.channel, 0.1); },
                         "channel deep-softmax has 2 layer(s), got priors of 1");
    test::expect_invalid([&] { solve_state_evolution(problem.prior, problem.channel, -1); },
                         "alpha must be non-negative and finite, got -1");
}

/// Ctrl-C arrives while the second point is under work.
TEST(SolveCurve, APoolThatStopsLeavesTheWholePoints) {
    const TwoLayers two;
    StateEvolutionOptions options;
    options.integration.points = 16;
    ThreadPool pool(2);
    std::atomic<bool> stop = false;
    pool.stop_when([&] { return stop.load(); });
    const double alphas[] = {0.1, 0.2, 0.3};
    const auto points = solve_curve(two.prior, two.channel, alphas, options, pool, [&](double) {
        stop = true;
        return true;
    });
    ASSERT_EQ(points.size(), 1U);
    EXPECT_EQ(points[0].alpha, 0.1);
}

}  // namespace
}  // namespace bayesaim::theory
