// SPDX-License-Identifier: MIT
#include "bayesaim/theory/required_samples.hpp"

#include <gtest/gtest.h>

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::theory {
namespace {

const spectral::MarchenkoPasturLaw law(0.5);

/// The accuracy that is promised, a part of alpha.
constexpr double accuracy = 1e-6;

TEST(RequiredSamples, ReachTheErrorAndNoFewerDo) {
    const SpectralCurve prior(law);
    const channels::Hardmax hardmax(2);
    const channels::Softmax softmax(3);
    const channels::Linear noisy(2, 0.5);
    for (const channels::Channel* channel :
         {static_cast<const channels::Channel*>(&hardmax), static_cast<const channels::Channel*>(&softmax),
          static_cast<const channels::Channel*>(&noisy)}) {
        for (const double target : {0.9, 0.3, 0.01}) {
            const double alpha = required_samples(prior, *channel, target).value();
            EXPECT_LE(solve_state_evolution(prior, *channel, alpha).error(), target);
            EXPECT_GT(solve_state_evolution(prior, *channel, (1 - 2 * accuracy) * alpha).error(), target);
        }
    }
}

TEST(RequiredSamples, OfNoErrorAreThoseOfStrongRecovery) {
    EXPECT_DOUBLE_EQ(required_samples(SpectralCurve(law), channels::Softmax(2), 0).value(), 0.1875);
    EXPECT_FALSE(required_samples(SpectralCurve(law), channels::Hardmax(2), 0));
}

TEST(RequiredSamples, AreNoneForTheErrorWithoutData) {
    EXPECT_EQ(required_samples(SpectralCurve(law), channels::Softmax(2), 1).value(), 0);
}

TEST(RequiredSamples, DoNotExistBeyondTheHighest) {
    EXPECT_FALSE(required_samples(SpectralCurve(law), channels::Linear(2, 1.0), 1e-9, {}, {}, 100));
}

TEST(RequiredSamples, AreRefusedForANegativeError) {
    test::expect_invalid([] { required_samples(SpectralCurve(law), channels::Softmax(2), -0.1); },
                         "target error must be non-negative");
}

TEST(RequiredSamples, StopWhenAsked) {
    int asked = 0;
    EXPECT_THROW(
        required_samples(SpectralCurve(law), channels::Softmax(2), 0.1, {}, [&] { return ++asked < 4; }),
        Stopped);
    EXPECT_EQ(asked, 4);
}

}  // namespace
}  // namespace bayesaim::theory
