// SPDX-License-Identifier: MIT
// Scaling laws of teachers with the eigenvalues c (x + x0)^(-gamma), gamma > 1/2, x0 << alpha << 1. Noise of
// variance D hides eigenvalues below D^{1/2}; the share x_c that is above has c x_c^(-gamma) = D^{1/2}, and
// E(D) is about x_c D, as much as all that is hidden, int_{x_c} lambda^2 dx.
//   Exact outputs: E = const alpha D, hence x_c ~ alpha and E ~ alpha^(1 - 2 gamma).
//   Label noise: D ~ 1/alpha, hence x_c ~ alpha^(1/(2 gamma)) and E ~ alpha^(1/(2 gamma) - 1).
#include "bayesaim/priors/power_law.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/theory/bayes_optimal.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "support/tolerance.hpp"

namespace bayesaim::theory {
namespace {

/// -d log E / d log alpha between alpha and 3 alpha.
double decay(const priors::Prior& prior, const channels::Channel& channel, double alpha) {
    const SpectralCurve curve(prior.law());
    const FixedPoint near = solve_state_evolution(curve, channel, alpha),
                     far = solve_state_evolution(curve, channel, 3 * alpha);
    EXPECT_EQ(near.status, Termination::converged);
    EXPECT_EQ(far.status, Termination::converged);
    return std::log(near.error() / far.error()) / std::log(3.0);
}

TEST(PowerLawTheory, ErrorDecaysWithTwiceTheExponentMinusOne) {
    for (const auto& [exponent, correction] :
         {std::pair{0.75, 0.06}, {1.0, 0.03}, {1.5, 0.02}, {2.0, 0.03}, {3.0, 0.06}}) {
        const priors::PowerLaw prior(exponent, 1, 1e-6);
        EXPECT_NEAR(decay(prior, channels::Linear(2), 1e-4), 2 * exponent - 1, correction) << exponent;
        EXPECT_NEAR(decay(prior, channels::Softmax(2), 1e-4), 2 * exponent - 1, correction) << exponent;
    }
}

TEST(PowerLawTheory, LabelNoiseSlowsTheDecay) {
    for (const double exponent : {1.5, 2.0}) {
        const priors::PowerLaw prior(exponent, 1, 1e-6);
        EXPECT_NEAR(decay(prior, channels::Linear(2, 1), 1), 1 - 1 / (2 * exponent), 0.01) << exponent;
    }
}

TEST(PowerLawTheory, ErrorsThatDoublePrecisionCannotResolveAreNotCalledConverged) {
    const priors::PowerLaw prior(3, 1, 1e-6);
    const SpectralCurve curve(prior.law());
    EXPECT_EQ(solve_state_evolution(curve, channels::Linear(2), 1e-3).status, Termination::converged);
    EXPECT_EQ(solve_state_evolution(curve, channels::Linear(2), 0.1).status, Termination::iteration_limit);
    EXPECT_EQ(solve_state_evolution(curve, channels::Linear(2), 0.6).status, Termination::exact_recovery);
}

/// Next to recovery E is linear: the extrapolation below the smallest noise joins the computed curve.
TEST(PowerLawTheory, ErrorVanishesLinearlyAtRecovery) {
    const priors::PowerLaw prior(1, 0.5, 1e-3);
    const SpectralCurve curve(prior.law());
    const double threshold = strong_recovery(curve, channels::Linear(2)).value();
    const auto slope = [&](double distance) {
        const FixedPoint point =
            solve_state_evolution(curve, channels::Linear(2), threshold * (1 - distance));
        EXPECT_EQ(point.status, Termination::converged) << distance;
        return point.error() / distance;
    };
    const double expected = slope(1e-5);
    EXPECT_GT(expected, 0);
    for (const double distance : {1e-6, 1e-7, 1e-8, 1e-9})
        EXPECT_LE(test::relative_error(slope(distance), expected), 0.01) << distance;
}

}  // namespace
}  // namespace bayesaim::theory
