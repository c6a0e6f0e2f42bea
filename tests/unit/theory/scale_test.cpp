// SPDX-License-Identifier: MIT
// State evolution of c S: E(c) = c^2 E(1) at the same alpha, if label noise is multiplied by c^2 too.
#include <gtest/gtest.h>

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/rows/row_channel.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/theory/bayes_optimal.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "support/tolerance.hpp"

namespace bayesaim::theory {
namespace {

double error_of(const priors::Prior& prior, const channels::Channel& channel, double alpha) {
    const FixedPoint point = solve_state_evolution(SpectralCurve(prior.law()), channel, alpha);
    EXPECT_TRUE(point.status == Termination::converged || point.status == Termination::exact_recovery);
    return point.error();
}

TEST(ScaledStateEvolution, ErrorsOfTiedAttentionScaleWithTheSquare) {
    for (const double c : {1e-3, 0.3, 2.0, 50.0}) {
        const priors::Wishart one(0.5), scaled(0.5, c);
        for (const double alpha : {0.0, 0.02, 0.1, 0.18}) {
            const auto expect_scaled = [&](const channels::Channel& at_scale,
                                           const channels::Channel& at_one) {
                const double expected = c * c * error_of(one, at_one, alpha);
                EXPECT_LE(test::relative_error(error_of(scaled, at_scale, alpha), expected), 1e-9)
                    << c << " " << alpha << " " << at_scale.name();
            };
            expect_scaled(channels::Softmax(2), channels::Softmax(2));
            expect_scaled(channels::Softmax(3, 2), channels::Softmax(3));
            expect_scaled(channels::Linear(2, 0.1 * c * c), channels::Linear(2, 0.1));
            expect_scaled(channels::Hardmax(2), channels::Hardmax(2));
        }
    }
}

TEST(ScaledStateEvolution, ErrorsOfUntiedAttentionScaleWithTheSquare) {
    const channels::Geometry cross{channels::Attention::cross, 2, 2};
    for (const double aspect : {1.0, 2.0}) {
        const priors::Bilinear one(0.4, aspect), scaled(0.4, aspect, 3);
        for (const double alpha : {0.05, 0.2}) {
            EXPECT_LE(test::relative_error(error_of(scaled, channels::RowSoftmax(cross), alpha),
                                           9 * error_of(one, channels::RowSoftmax(cross), alpha)),
                      1e-9);
            EXPECT_LE(test::relative_error(error_of(scaled, channels::RowLinear(cross, 0.9), alpha),
                                           9 * error_of(one, channels::RowLinear(cross, 0.1), alpha)),
                      1e-9);
        }
    }
}

TEST(ScaledStateEvolution, ThresholdsStay) {
    const priors::Wishart one(0.5), scaled(0.5, 2);
    const channels::Softmax channel(2);
    const Thresholds expected = find_thresholds(SpectralCurve(one.law()), channel, {}, {}),
                     found = find_thresholds(SpectralCurve(scaled.law()), channel, {}, {});
    EXPECT_DOUBLE_EQ(*found.strong_recovery, *expected.strong_recovery);
    EXPECT_DOUBLE_EQ(*found.weak_recovery_scaled, *expected.weak_recovery_scaled);
}

}  // namespace
}  // namespace bayesaim::theory
