// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/diagnostics.hpp"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/wishart.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;

constexpr Eigen::Index dim = 80, samples = 600;
constexpr double error = 0.2;

struct Case {
    explicit Case(const char* name, double label_noise = 0)
        : channel(channels::make_channel(name, {.tokens = 2, .label_noise = label_noise})) {
        ThreadPool pool(1);
        const priors::Wishart prior(0.5);
        auto made = data::make_synthetic(
            prior, *channel, {.dim = dim, .alpha = static_cast<double>(samples) / (dim * dim), .seed = 1},
            pool);
        data = std::move(made.data);
        // An estimate that is off by a symmetric Gaussian matrix of known size.
        estimates = {made.weights[0] +
                     std::sqrt(error / (1 + 1.0 / dim)) *
                         linalg::gaussian_orthogonal_ensemble(dim, RandomStream(2, Purpose::noise), pool)};
    }
    HeldOutFit at(double promised, double uncertainty = 0.1) const {
        ThreadPool pool(1);
        return held_out_fit(data, {estimates, linalg::scalar_overlap(promised), *channel}, uncertainty, pool);
    }

    std::unique_ptr<channels::Channel> channel;
    data::Dataset data;
    std::vector<Matrix> estimates;
};

TEST(HeldOutFit, ResidualsShowTheErrorAndRefuteAWrongPromise) {
    for (const double noise : {0.0, 0.3}) {
        const Case one(noise > 0 ? "linear" : "softmax", noise);
        const HeldOutFit right = one.at(error);
        // sqrt(2/(n m)) is 0.041 for softmax, 0.033 for three linear outputs
        EXPECT_NEAR(*right.ratio, 1, 0.15) << noise;
        EXPECT_NEAR(*right.error / error, 1, 0.3) << noise;
        EXPECT_FALSE(right.refuted) << noise;
        EXPECT_EQ(right.loss, *right.error);
        EXPECT_TRUE(one.at(error / 3).refuted) << noise;
        EXPECT_TRUE(one.at(3 * error).refuted) << noise;
        // The error that residuals show does not depend on the promise.
        EXPECT_NEAR(*one.at(error / 3).error / *right.error, 1, 1e-9) << noise;
    }
    EXPECT_FALSE(Case("softmax").at(error / 1.5, 0.5).refuted) << "within its own uncertainty";
}

/// The parts of S have errors of their own, and the noise is no error: with it the error seemed C (E + noise)/(C + noise).
TEST(HeldOutFit, NoiseIsNoErrorOfTheParts) {
    ThreadPool pool(1);
    for (const channels::Attention attention : {channels::Attention::self, channels::Attention::causal}) {
        channels::ChannelOptions options;
        options.tokens = 3;
        options.attention = attention;
        options.label_noise = 0.5;
        const auto channel = channels::make_channel("linear", options);
        const priors::Bilinear prior(0.5);
        const auto made = data::make_synthetic(prior, *channel,
                                               {.dim = dim, .alpha = 600.0 / (dim * dim), .seed = 1}, pool);
        const std::vector<Matrix> estimates = {
            made.weights[0] + std::sqrt(error) *
                                  linalg::gaussian_matrix(dim, dim, RandomStream(2, Purpose::noise), pool) /
                                  std::sqrt(static_cast<double>(dim))};
        for (const double promised : {error, error / 4}) {
            const linalg::Overlap c = promised / 2 * linalg::Overlap::Identity(2, 2);
            const HeldOutFit held = held_out_fit(made.data, {estimates, c, *channel}, 0.1, pool);
            EXPECT_NEAR(*held.error / error, 1, 0.25) << to_string(attention) << " " << promised;
            EXPECT_EQ(held.refuted, promised != error);
        }
    }
}

TEST(HeldOutFit, LabelsAreAsProbableAsTheModelExpects) {
    const Case one("hardmax");
    const HeldOutFit right = one.at(error);
    EXPECT_FALSE(right.ratio);
    EXPECT_LT(std::abs(*right.z), 3);
    EXPECT_FALSE(right.refuted);
    EXPECT_TRUE(one.at(error / 30).refuted);
    EXPECT_LT(right.loss, one.at(error / 30).loss);
}

TEST(HeldOutFit, ExactRecoveryHasNoRatio) {
    Case one("softmax");
    ThreadPool pool(1);
    one.estimates =
        data::make_synthetic(priors::Wishart(0.5), *one.channel, {.dim = dim, .alpha = 0.01, .seed = 1}, pool)
            .weights;
    for (const double promised : {0.0, 1e-12}) {
        const HeldOutFit exact = one.at(promised);
        EXPECT_FALSE(exact.ratio);
        EXPECT_FALSE(exact.refuted);
        EXPECT_LT(*exact.error, 1e-12);
    }
}

TEST(HoldOut, CutsTheSamplesInTwo) {
    const Case one("softmax");
    const Split split = hold_out(one.data, 100, 5);
    EXPECT_EQ(split.held_out.tokens->samples(), 100);
    EXPECT_EQ(split.training.tokens->samples(), samples - 100);
    std::set<double> first_outputs;
    for (const data::Dataset* part : {&split.held_out, &split.training}) {
        Matrix scratch, whole;
        for (Eigen::Index i = 0; i < part->outputs.rows(); ++i) {
            first_outputs.insert(part->outputs(i, 0));
            // The tokens are those of the outputs.
            const auto index = static_cast<std::size_t>(i);
            const auto block = part->tokens->block({index, index + 1}, scratch);
            bool found = false;
            for (Eigen::Index k = 0; k < samples && !found; ++k) {
                const auto at = static_cast<std::size_t>(k);
                found = one.data.outputs.row(k) == part->outputs.row(i) &&
                        one.data.tokens->block({at, at + 1}, whole) == block;
            }
            EXPECT_TRUE(found);
        }
    }
    EXPECT_EQ(first_outputs.size(), static_cast<std::size_t>(samples));
    EXPECT_EQ(hold_out(one.data, 100, 5).held_out.outputs, split.held_out.outputs);
    EXPECT_NE(hold_out(one.data, 100, 6).held_out.outputs, split.held_out.outputs);
}

}  // namespace
}  // namespace bayesaim::estimators
