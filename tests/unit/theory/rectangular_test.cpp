// SPDX-License-Identifier: MIT
// State evolution of cross-attention whose keys have another dimension than the queries.
#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/channels/rows/row_channel.hpp"
#include "bayesaim/model/model.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/ginibre.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/theory/bayes_optimal.hpp"
#include "bayesaim/theory/free_entropy.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::theory {
namespace {

using channels::Attention;
using channels::Geometry;
using channels::RowHardmax;
using channels::RowLinear;
using channels::RowSoftmax;

Geometry cross(int queries, int keys) { return {Attention::cross, queries, keys}; }

double error_of(double width, double aspect, const channels::Channel& channel, double alpha) {
    const priors::Bilinear prior(width, aspect);
    const FixedPoint point = solve_state_evolution(SpectralCurve(prior.law()), channel, alpha);
    EXPECT_TRUE(point.status == Termination::converged || point.status == Termination::exact_recovery);
    return point.error();
}

/// Bilinear sequence regression with a ratio of dimensions of 2 (arXiv 2410.18858, tables of the repository
/// SPOC-group/bilinear-sequence-regression), whose fixed points have a tolerance of some 1e-7, and the same numbers
/// computed independently (Python, 400 nodes).
TEST(RectangularStateEvolution, PublishedBilinearSequenceRegression) {
    const RowLinear one_index(cross(1, 1));
    const struct {
        double width, alpha, published, computed;
    } rows[] = {{0.1, 0.1, 0.648805049, 0.648804907},
                {0.5, 0.3, 0.590245448, 0.590245391},
                {0.5, 0.6, 0.051176979, 0.051176643},
                {1, 0.6, 0.302986551, 0.302986519}};
    for (const auto& row : rows) {
        const double error = error_of(row.width, 2, one_index, row.alpha);
        EXPECT_NEAR(error, row.published, 1e-6) << row.width << " " << row.alpha;
        EXPECT_NEAR(error, row.computed, 2e-9) << row.width << " " << row.alpha;
    }
}

TEST(RectangularStateEvolution, ExchangeOfQueriesAndKeysChangesNothing) {
    for (const double alpha : {0.05, 0.2, 0.4}) {
        const RowLinear channel(cross(2, 1), 0.1);
        EXPECT_NEAR(error_of(0.4, 2, channel, alpha), error_of(0.2, 0.5, channel, alpha), 1e-11);
    }
    const RowHardmax hardmax(cross(2, 2));
    EXPECT_NEAR(error_of(0.6, 3, hardmax, 0.5), error_of(0.2, 1.0 / 3, hardmax, 0.5), 1e-9);
}

/// The limit of large width does not depend on the aspect: E = D/(1+D) for independent entries.
TEST(RectangularStateEvolution, IndependentEntriesHaveNoAspect) {
    const RowHardmax channel(cross(2, 2));
    const priors::Ginibre square, rectangular(2.5);
    for (const double alpha : {0.1, 1.0, 5.0}) {
        const double expected = solve_state_evolution(SpectralCurve(square.law()), channel, alpha).error();
        EXPECT_NEAR(solve_state_evolution(SpectralCurve(rectangular.law()), channel, alpha).error(), expected,
                    1e-9 * expected);
        EXPECT_NEAR(error_of(1e5, 2.5, channel, alpha), expected, 1e-4 * expected);
    }
}

/// Between the errors of neighbouring aspects, and continuous at 1.
TEST(RectangularStateEvolution, AspectOneIsTheSquareError) {
    for (const RowSoftmax channel(cross(2, 2)); const double alpha : {0.1, 0.3}) {
        const double square = error_of(0.5, 1, channel, alpha),
                     below = error_of(0.5, 1 / 1.001, channel, alpha),
                     above = error_of(0.5, 1.001, channel, alpha);
        EXPECT_LT(above, square);  // r/d2 falls
        EXPECT_LT(square, below);
        EXPECT_NEAR(0.5 * (above + below), square, 1e-5);
    }
}

/// Recovery where alpha K reaches the number of parameters, r (d1 + d2 - r) per d1 d2.
TEST(RectangularThresholds, StrongRecoveryCountsParameters) {
    const priors::Bilinear prior(0.5, 2);
    const SpectralCurve curve(prior.law());
    const double nu = 0.5 * 2.5 / 2;
    EXPECT_NEAR(curve.recovery_ratio(), nu, 1e-15);
    const auto linear = strong_recovery(curve, RowLinear(cross(2, 3)));
    ASSERT_TRUE(linear);
    EXPECT_NEAR(*linear, nu / 6, 1e-12);
    const auto softmax = strong_recovery(curve, RowSoftmax(cross(2, 3)));
    ASSERT_TRUE(softmax);
    EXPECT_NEAR(*softmax, nu / 4, 1e-12);
    EXPECT_GT(error_of(0.5, 2, RowSoftmax(cross(2, 3)), 0.99 * nu / 4), 1e-3);
    EXPECT_EQ(error_of(0.5, 2, RowSoftmax(cross(2, 3)), 1.001 * nu / 4), 0);
}

/// A few singular values show in noise below D = sqrt(aspect)/width.
TEST(RectangularThresholds, WeakRecoveryOfSmallWidth) {
    for (const double aspect : {2.0, 0.25}) {
        const priors::Bilinear prior(1e-4, aspect);
        const double critical = std::sqrt(aspect) / 1e-4;
        EXPECT_GT(spectral::mmse(prior.law(), 1.2 * critical), 0.999);
        EXPECT_LT(spectral::mmse(prior.law(), 0.8 * critical), 0.97);
        const RowHardmax channel(cross(2, 2));
        const Thresholds found = find_thresholds(SpectralCurve(prior.law()), channel, {}, {});
        EXPECT_NEAR(*found.weak_recovery_scaled, weak_recovery_scaled(channel) / std::sqrt(aspect), 1e-12);
    }
}

/// d(free entropy)/d alpha is the information of one sample, at a fixed point.
TEST(RectangularFreeEntropy, GrowsByTheInformationOfASample) {
    const priors::Bilinear prior(0.5, 2);
    const SpectralCurve curve(prior.law());
    const RowLinear channel(cross(2, 2), 0.1);
    const auto at = [&](double alpha) {
        return *free_entropy(curve, channel, alpha, solve_state_evolution(curve, channel, alpha), {});
    };
    const auto point = solve_state_evolution(curve, channel, 0.2);
    EXPECT_NEAR((at(0.2 + 1e-4) - at(0.2 - 1e-4)) / 2e-4, *channel.information(point.parameters, {}), 1e-6);
}

TEST(RectangularModels, NeedCrossAttention) {
    const auto make = [](const char* prior, Attention attention, double aspect, int tokens = 3) {
        return model::make_model({.prior = prior,
                                  .widths = {0.5},
                                  .aspect = aspect,
                                  .channel_options = {.tokens = tokens, .attention = attention}});
    };
    EXPECT_EQ(make("bilinear", Attention::cross, 2).prior(0).law().aspect(), 2);
    EXPECT_EQ(make("ginibre", Attention::cross, 2).prior(0).law().aspect(), 2);
    test::expect_invalid([&] { make("bilinear", Attention::masked, 2); },
                         "aspect must be 1 with masked attention");
    test::expect_invalid([&] { make("bilinear", Attention::cross, 0); }, "aspect must be positive");
    test::expect_invalid([&] { make("bilinear", Attention::cross, -1); }, "aspect must be positive");
    const Record record = model::describe(make("bilinear", Attention::cross, 2));
    EXPECT_EQ(record.find("aspect")->number(), 2);
    EXPECT_EQ(model::describe(make("bilinear", Attention::cross, 1)).find("aspect"), nullptr);
    model::ModelOptions options;
    model::read_options(record, options);
    EXPECT_EQ(options.aspect, 2);
}

}  // namespace
}  // namespace bayesaim::theory
