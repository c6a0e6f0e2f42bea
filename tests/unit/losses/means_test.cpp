// SPDX-License-Identifier: MIT
// Means of losses over data against plain averages of their steps, and Stein's identities.
#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/numerics/statistics.hpp"

#include "support/expect_invalid.hpp"
#include "support/losses.hpp"

namespace bayesaim::losses {
namespace {

using test::LossCase;

struct MeansCase {
    LossCase loss;
    Alignment at;
    double variance;
    Eigen::Index samples = 100000;
};

class LossMeans : public testing::TestWithParam<MeansCase> {};

/// Steps of samples that are drawn here. With g a function of omega and htilde*, of covariance 2 [[q, m], [m, Q]],
///   E sum g omega = -2 q curvature + 2 m signal,   E sum g htilde* = -2 m curvature + 2 Q signal.
TEST_P(LossMeans, AreThoseOfDrawnSamples) {
    const auto& [of, at, variance, count] = GetParam();
    const auto channel = of.make_channel();
    const auto loss = of.make_loss();
    const auto data = test::loss_samples(*channel, at, count, 7);
    channels::Rows g(count, channel->pairs());
    Eigen::VectorXd log_z(count);
    loss->score(data.outputs, data.omega, linalg::scalar_overlap(variance), g, log_z);
    const ProximalMeans means = loss->means(at, variance, {.points = 256});
    const auto expect = [&](const Eigen::VectorXd& values, double expected, const char* what) {
        const auto mean = numerics::mean_of(std::vector<double>(values.begin(), values.end())).value();
        EXPECT_NEAR(mean.value, expected,
                    4 * *mean.standard_error + 3 * means.relative_error * std::abs(expected))
            << what << ", " << of.title();
        EXPECT_LT(*mean.standard_error, 0.05 * std::abs(expected) + 1e-3) << "too few samples to tell";
    };
    const Eigen::VectorXd power = g.rowwise().squaredNorm();
    expect(power, means.power, "power");
    expect(-log_z - 0.5 * variance * power, means.loss, "loss");
    expect(g.cwiseProduct(data.omega).rowwise().sum(),
           -2 * at.self_overlap * means.curvature + 2 * at.overlap * means.signal, "g omega");
    expect(g.cwiseProduct(data.teacher).rowwise().sum(),
           -2 * at.overlap * means.curvature + 2 * at.total * means.signal, "g htilde*");
}

INSTANTIATE_TEST_SUITE_P(
    Losses, LossMeans,
    testing::Values(MeansCase{{"square", "linear", 2, 1, 0.5}, {1.5, 0.9, 1.0}, 2},
                    MeansCase{{"logit", "softmax", 3, 1, 0}, {1.5, 0.9, 1.0}, 2},
                    MeansCase{{"row-logit", "softmax", 3, 1, 0}, {1.5, 0.9, 1.0}, 0.5},
                    MeansCase{{"cross-entropy", "softmax", 2, 1, 0}, {1.5, 0.6, 0.4}, 6.4},
                    MeansCase{{"cross-entropy", "softmax", 2, 3, 0}, {1.5, 0.486, 0.282}, 4.9},
                    MeansCase{{"cross-entropy", "softmax", 3, 1, 0}, {1.5, 0.68, 0.46}, 6.3, 20000},
                    MeansCase{{"square", "softmax", 2, 1, 0}, {1.5, 0.4, 0.2}, 6.4},
                    MeansCase{{"square", "softmax", 2, 3, 0}, {1.5, 0.3, 0.12}, 4.4}));

/// Halving the step of the rule changes nothing: the error of the quadrature is what is said of it.
TEST(LossQuadrature, OfTwoTokensHasConverged) {
    // The step of the square loss jumps where two minima are equally good.
    for (const auto& [name, accuracy] : {std::pair("cross-entropy", 2e-6), {"square", 5e-5}}) {
        for (const double beta : {0.3, 1.0, 2.0}) {
            const auto loss = LossCase{name, "softmax", 2, beta, 0}.make_loss();
            const Alignment at{1.5, 0.6, 0.4};
            const ProximalMeans usual = loss->means(at, 3, {.points = 128}),
                                fine = loss->means(at, 3, {.points = 512});
            for (const auto member : {&ProximalMeans::curvature, &ProximalMeans::signal,
                                      &ProximalMeans::power, &ProximalMeans::loss})
                EXPECT_NEAR(usual.*member, fine.*member, accuracy * fine.*member) << name << " " << beta;
        }
    }
}

TEST(LossTable, RefusesWhatItCannotTrain) {
    const auto attempt = [](const char* loss, const char* channel, channels::ChannelOptions options = {}) {
        return [=] { make_loss(loss, *channels::make_channel(channel, options)); };
    };
    test::expect_invalid(attempt("", "hardmax"), "one layer of tied attention, got hardmax");
    test::expect_invalid(attempt("", "deep-softmax"), "one layer of tied attention, got deep-softmax");
    channels::ChannelOptions cross;
    cross.attention = channels::Attention::cross;
    test::expect_invalid(attempt("", "softmax", cross), "got softmax of cross attention");
    test::expect_invalid(attempt("logit", "linear"), "loss of channel linear must be square, got logit");
    test::expect_invalid(attempt("hinge", "softmax"), "loss must be one of square, logit");
    EXPECT_EQ(make_loss("", *channels::make_channel("softmax", {}))->name(), "logit");
    EXPECT_EQ(make_loss("", *channels::make_channel("linear", {}))->name(), "square");
}

}  // namespace
}  // namespace bayesaim::losses
