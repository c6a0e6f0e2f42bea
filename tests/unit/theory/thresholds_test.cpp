// SPDX-License-Identifier: MIT
#include "bayesaim/theory/thresholds.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/spectral/atomic_law.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

namespace bayesaim::theory {
namespace {

TEST(WeakRecovery, SoftmaxIsOneOverTheNumberOfDirections) {
    for (int tokens = 2; tokens < 7; ++tokens) {
        EXPECT_NEAR(weak_recovery_scaled(channels::Softmax(tokens)), 1.0 / (tokens * tokens + tokens - 2),
                    1e-15);
    }
}

TEST(WeakRecovery, HardmaxAgreesWithIndependentNumbers) {
    EXPECT_NEAR(weak_recovery_scaled(channels::Hardmax(2)), 0.40341062904, 1e-11);
    EXPECT_NEAR(weak_recovery_scaled(channels::Hardmax(3)), 0.175392535448, 1e-10);
    EXPECT_NEAR(weak_recovery_scaled(channels::Hardmax(6)), 0.054175635337, 1e-10);
    EXPECT_NEAR(weak_recovery_scaled(channels::HardmaxAsPrinted(2)), 0.5632675, 1e-7);
    EXPECT_LT(weak_recovery_scaled(channels::Hardmax(4)), weak_recovery_scaled(channels::Hardmax(3)));
}

/// In the limit of small width the error is 1 below the threshold and smaller above.
TEST(WeakRecovery, SmallWidthErrorLeavesOneExactlyThere) {
    const SmallWidthCurve prior;
    const channels::Hardmax hardmax(2);
    const channels::Softmax softmax(2);
    for (const channels::Channel* channel :
         {static_cast<const channels::Channel*>(&hardmax), static_cast<const channels::Channel*>(&softmax)}) {
        const double threshold = weak_recovery_scaled(*channel);
        EXPECT_NEAR(solve_state_evolution(prior, *channel, 0.99 * threshold, Start::uninformed).error(), 1,
                    1e-9);
        EXPECT_LT(solve_state_evolution(prior, *channel, 1.05 * threshold, Start::uninformed).error(), 0.999);
    }
}

TEST(StrongRecovery, OfTiedAttentionIsTheLawOfCounting) {
    for (const double width : {0.1, 0.5, 0.9, 1.0, 3.0}) {
        const spectral::MarchenkoPasturLaw law(width);
        const double counting = width < 1 ? width - width * width / 2 : 0.5;
        for (int tokens = 2; tokens < 6; ++tokens) {
            const double softmax = *strong_recovery(SpectralCurve(law), channels::Softmax(tokens));
            const double linear = *strong_recovery(SpectralCurve(law), channels::Linear(tokens));
            EXPECT_NEAR(softmax, 2.0 / (tokens * tokens + tokens - 2) * counting, 1e-15);
            EXPECT_NEAR(linear, 2.0 / (tokens * (tokens + 1)) * counting, 1e-15);
            // Softmax needs more samples than linear by this factor.
            EXPECT_NEAR(softmax / linear, 1 + 2.0 / (tokens * tokens + tokens - 2), 1e-14);
        }
    }
    const spectral::MarchenkoPasturLaw law(0.5);
    EXPECT_FALSE(strong_recovery(SpectralCurve(law), channels::Hardmax(2)));
    EXPECT_FALSE(strong_recovery(SpectralCurve(law), channels::Linear(2, 0.1)));
}

/// The closed form agrees with the numerical mmse(D)/D near D = 0.
TEST(StrongRecovery, RatioIsTheLimitOfTheEngine) {
    for (const double width : {0.2, 0.7}) {
        const spectral::MarchenkoPasturLaw law(width);
        const SpectralCurve prior(law);
        EXPECT_NEAR(prior.at(1e-8).error / 1e-8, prior.recovery_ratio(), 1e-6);
    }
    const double positions[] = {-1, 0, 2}, weights[] = {0.2, 0.5, 0.3};
    const spectral::AtomicLaw atoms(positions, weights);
    EXPECT_NEAR(SpectralCurve(atoms).at(1e-8).error / 1e-8, 1 - 0.04 - 0.25 - 0.09, 1e-6);
}

TEST(Limits, SmallWidthIsTheLimitOfTiedAttention) {
    const channels::Softmax channel(2);
    const double width = 1e-4;
    const spectral::MarchenkoPasturLaw law(width);
    for (const double scaled : {0.3, 0.35, 0.45}) {
        const double limit =
            solve_state_evolution(SmallWidthCurve(), channel, scaled, Start::uninformed).error();
        const double finite =
            solve_state_evolution(SpectralCurve(law), channel, scaled * width, Start::uninformed).error();
        EXPECT_NEAR(finite, limit, 0.02) << scaled;  // corrections of order width^{1/2}
    }
}

TEST(Limits, LargeWidthIsLinearInAlpha) {
    const spectral::MarchenkoPasturLaw wide(1e4);
    const auto semicircle = spectral::MarchenkoPasturLaw::semicircle();
    for (const double alpha : {0.05, 0.15}) {
        const channels::Softmax channel(2);
        EXPECT_NEAR(
            solve_state_evolution(SpectralCurve(semicircle), channel, alpha, Start::uninformed).error(),
            1 - 4 * alpha, 1e-12);
        EXPECT_NEAR(solve_state_evolution(SpectralCurve(wide), channel, alpha, Start::uninformed).error(),
                    1 - 4 * alpha, 1e-4);
    }
}

}  // namespace
}  // namespace bayesaim::theory
