// SPDX-License-Identifier: MIT
// Fits of data of which the program knows nothing, against AMP that knows the prior, and against the truth.
#include "bayesaim/estimators/fit.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/user_spectrum.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::estimators {
namespace {

using channels::Attention;
using linalg::Matrix;

struct Setting {
    const char* channel = "softmax";
    Attention attention = Attention::tied;
    int tokens = 2;
    Eigen::Index dim = 80;
    double alpha = 0.12;
    double label_noise = 0, beta = 1;
};

channels::ChannelOptions channel_options(const Setting& setting, double label_noise) {
    channels::ChannelOptions options;
    options.tokens = setting.tokens;
    options.attention = setting.attention;
    options.label_noise = label_noise;
    options.beta = setting.beta;
    return options;
}

ChannelOf channel_of(const Setting& setting) {
    return [setting](double label_noise) -> std::shared_ptr<const channels::Channel> {
        return channels::make_channel(setting.channel, channel_options(setting, label_noise));
    };
}

data::Synthetic problem(const Setting& setting, const priors::Prior& prior, std::uint64_t seed) {
    ThreadPool pool(1);
    return data::make_synthetic(prior, *channel_of(setting)(setting.label_noise),
                                {.dim = setting.dim, .alpha = setting.alpha, .seed = seed}, pool);
}

FitOptions learning(std::vector<Family> families, const char* channel = "softmax") {
    FitOptions options;
    options.families = std::move(families);
    options.amp.damping = std::string(channel) == "hardmax" ? 0.2 : 0.5;
    return options;
}

struct Means {
    double learned = 0, known = 0, width = 0, scale = 0, noise = 0;
};

/// Mean errors over seeds of the fit and of AMP that knows the prior.
Means compare(const Setting& setting, double width, Family family, int seeds) {
    const priors::Wishart prior(width);
    Means means;
    for (int seed = 0; seed < seeds; ++seed) {
        ThreadPool pool(1);
        const auto data = problem(setting, prior, 500 + static_cast<std::uint64_t>(seed));
        FitOptions options = learning({family}, setting.channel);
        options.holdout = 0;
        options.learn_label_noise = setting.label_noise > 0;
        const auto channel = channel_of(setting)(setting.label_noise);
        const auto fitted = fit(data.data, channel_of(setting), 0, {}, options, pool);
        const auto known = run_amp(data.data, prior.law(), *channel, options.amp, pool);
        double scale = 1;  // hardmax: of the learned law
        if (!channel->smooth_output())
            scale = fitted.learned.law->second_moment() * static_cast<double>(setting.dim) /
                    data.weights[0].squaredNorm();
        means.learned += measured_error(fitted, *channel, data.weights).trace() / seeds;
        means.known += scale * data::estimation_error(known.estimates[0], data.weights[0]) / seeds;
        means.width += fitted.learned.width.value_or(0) / seeds;
        means.scale += fitted.learned.scale.value_or(0) / seeds;
        means.noise += fitted.label_noise / seeds;
    }
    return means;
}

/// A fit with a width of 1 instead of 0.5 has an error 30% larger.
TEST(Fit, LearnedWidthCostsNothing) {
    for (const Setting& setting : {Setting{.dim = 100}, Setting{.channel = "hardmax", .alpha = 0.6},
                                   Setting{.channel = "linear", .alpha = 0.15, .label_noise = 0.3}}) {
        const Means means = compare(setting, 0.5, Family::weights, 4);
        EXPECT_LT(means.learned, 1.03 * means.known) << setting.channel;
        EXPECT_NEAR(means.width, 0.5, 0.05) << setting.channel;
        if (std::string(setting.channel) != "hardmax") {
            EXPECT_NEAR(means.scale, 1, 0.06) << setting.channel;
        }
        if (setting.label_noise > 0) {
            EXPECT_NEAR(means.noise, 0.3, 0.02);
        }
    }
}

/// Linear estimates, which need no law, have twice the error.
TEST(Fit, AnySpectrumIsLearned) {
    const Means means = compare({.dim = 100}, 0.5, Family::smooth, 3);
    EXPECT_LT(means.learned, 1.1 * means.known);
}

TEST(Fit, HeldOutSamplesChooseTheLaw) {
    ThreadPool pool(1);
    const Setting setting{.dim = 100};
    const std::vector<Family> all = {Family::weights, Family::gaussian, Family::smooth, Family::fine};
    const std::vector<double> values = {-1, 1}, weights = {0.3, 0.7};
    const priors::Wishart wishart(0.5);
    const priors::Wigner wigner;
    const priors::UserSpectrum signs(values, weights);
    const auto chosen = [&](const priors::Prior& prior) {
        const auto data = problem(setting, prior, 7);
        const auto result = fit(data.data, channel_of(setting), 0, {}, learning(all), pool);
        EXPECT_EQ(result.candidates.size(), 4U);
        return result.candidates[result.chosen].family;
    };
    EXPECT_EQ(chosen(wishart), Family::weights);
    EXPECT_EQ(chosen(wigner), Family::gaussian);
    EXPECT_EQ(chosen(signs), Family::fine);
}

Verdict verdict(const Setting& setting, const priors::Prior& truth, const spectral::SpectralLaw& assumed,
                double assumed_noise = 0) {
    ThreadPool pool(1);
    const auto data = problem(setting, truth, 3);
    const spectral::SpectralLaw* laws[] = {&assumed};
    return fit(data.data, channel_of(setting), assumed_noise, laws,
               learning({Family::given}, setting.channel), pool)
        .verdict;
}

TEST(Fit, VerdictTellsAWrongModel) {
    const priors::Wishart truth(0.5);
    const Setting softmax{.dim = 100}, hardmax{.channel = "hardmax", .alpha = 0.6};
    for (const Setting& setting : {softmax, hardmax}) {
        const Verdict right = verdict(setting, truth, truth.law());
        EXPECT_TRUE(right.fits) << setting.channel << right.text;
        EXPECT_EQ(right.text, "fits");
        for (const double width : {0.25, 1.0, 2.0}) {
            const Verdict wrong = verdict(setting, truth, priors::Wishart(width).law());
            EXPECT_FALSE(wrong.fits) << setting.channel << " " << width;
            EXPECT_NE(wrong.text.find("prior learn"), std::string::npos);
        }
    }
    const Setting noisy{.channel = "linear", .alpha = 0.15, .label_noise = 0.5};
    EXPECT_FALSE(verdict(noisy, truth, truth.law(), 0.05).fits) << "too little noise assumed";
}

/// Tokens of covariance C and a mean, logits without the subtraction of the trace: the estimate is that of the tokens as
/// they were given, and its outputs are those of the truth.
TEST(Fit, TokensThatAreNotWhite) {
    ThreadPool pool(1);
    constexpr Eigen::Index dim = 60, samples = 1000;
    constexpr int tokens = 3;
    const Matrix noise =
                     linalg::gaussian_matrix(dim, samples * tokens, RandomStream(1, Purpose::noise), pool),
                 other = linalg::gaussian_matrix(dim, dim, RandomStream(2, Purpose::noise), pool);
    const Matrix mix = Matrix::Identity(dim, dim) + 0.05 * other;
    const Matrix x = (mix * noise).colwise() + 0.5 * other.col(0);
    const priors::Bilinear prior(0.25);
    const Matrix s = prior.sample(dim, 5, 0, pool);
    const Setting setting{.attention = Attention::self, .tokens = tokens, .dim = dim};
    const auto channel = channel_of(setting)(0);
    data::Dataset data;
    data.tokens = data::given_tokens(x, tokens);
    data.outputs.resize(samples, tokens * tokens);
    for (Eigen::Index i = 0; i < samples; ++i) {
        const auto block = x.middleCols(i * tokens, tokens);
        Matrix logits = block.transpose() * s * block / std::sqrt(static_cast<double>(dim));
        for (int a = 0; a < tokens; ++a) {
            const double largest = logits.row(a).maxCoeff();
            logits.row(a).array() -= largest + std::log((logits.row(a).array() - largest).exp().sum());
            for (int b = 0; b < tokens; ++b) data.outputs(i, a * tokens + b) = logits(a, b);
        }
    }
    const auto result = fit(data, channel_of(setting), 0, {}, learning({Family::weights}), pool);
    EXPECT_TRUE(result.tokens.whitened);
    EXPECT_TRUE(result.verdict.fits) << result.verdict.text;
    EXPECT_LT((result.estimate - s).norm(), 2e-3 * s.norm());
    // The terms undo the whitening: predictions from the tokens as given are the outputs.
    const auto predicted = predict(*data.tokens, *data.tokens, result.estimates, 0 * result.predicted_error,
                                   *channel, pool, result.terms);
    EXPECT_LT((predicted.plug_in - channels::output_values(*channel, data.outputs)).cwiseAbs().maxCoeff(),
              1e-2);
    // As they are, they are no data of this model.
    FitOptions as_given = learning({Family::weights});
    as_given.tokens_as_given = true;
    EXPECT_FALSE(fit(data, channel_of(setting), 0, {}, as_given, pool).verdict.fits);
}

/// Keys with a covariance, queries without: each side has its own whitening.
TEST(Fit, OneSideOfCrossAttentionIsNotWhite) {
    ThreadPool pool(1);
    constexpr Eigen::Index dim = 40, samples = 1200;
    const Setting setting{.attention = Attention::cross, .dim = dim};
    const Matrix x = linalg::gaussian_matrix(dim, 2 * samples, RandomStream(1, Purpose::tokens), pool),
                 z = linalg::gaussian_matrix(dim, 2 * samples, RandomStream(1, Purpose::key_tokens), pool),
                 other = linalg::gaussian_matrix(dim, dim, RandomStream(2, Purpose::noise), pool);
    const std::vector<Matrix> weights = {priors::Bilinear(0.25).sample(dim, 3, 0, pool)};
    const auto channel = channel_of(setting)(0);
    data::Dataset data;
    data.tokens = data::given_tokens(x, 2);
    const Matrix skewed = (Matrix::Identity(dim, dim) + 0.08 * other) * z;
    data.key_tokens = data::given_tokens(skewed, 2);
    data.outputs.resize(samples, 4);
    channel->draw(data::attention_indices(channel->geometry(), *data.tokens, *data.key_tokens, weights, pool),
                  0, 0, data.outputs);
    const auto result = fit(data, channel_of(setting), 0, {}, learning({Family::weights}), pool);
    EXPECT_TRUE(result.tokens.whitened);
    EXPECT_TRUE(result.verdict.fits) << result.verdict.text;
    EXPECT_LT((result.estimate - weights[0]).norm(), 2e-3 * weights[0].norm());
    EXPECT_LT(measured_error(result, *channel, weights).trace(), 1e-5);
}

/// Lengths as of Student's t with 5 degrees of freedom: plain AMP has an error of 0.87.
TEST(Fit, TokensOfUnequalLengths) {
    ThreadPool pool(1);
    constexpr Eigen::Index dim = 100, samples = 1200;
    const Setting setting{.dim = dim};
    const priors::Wishart prior(0.5);
    constexpr std::uint64_t seeds = 6;
    double error = 0;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        Matrix x = linalg::gaussian_matrix(dim, 2 * samples, RandomStream(seed, Purpose::tokens), pool);
        const Matrix chi = linalg::gaussian_matrix(5, 2 * samples, RandomStream(seed, Purpose::noise), pool);
        for (Eigen::Index k = 0; k < x.cols(); ++k) x.col(k) *= std::sqrt(3 / chi.col(k).squaredNorm());
        const auto channel = channel_of(setting)(0);
        const std::vector<Matrix> weights = {prior.sample(dim, seed, 0, pool)};
        data::Dataset data;
        data.tokens = data::given_tokens(x, 2);
        data.outputs.resize(samples, 4);
        channel->draw(data::attention_indices(*data.tokens, weights, pool), 0, 0, data.outputs);
        const auto result = fit(data, channel_of(setting), 0, {}, learning({Family::weights}), pool);
        EXPECT_TRUE(result.tokens.one_length);
        error += data::estimation_error(result.estimate, weights[0]) / seeds;
    }
    EXPECT_LT(error, 0.34);
}

TEST(Fit, SaysWhatItCannotUse) {
    ThreadPool pool(1);
    const Setting setting{.dim = 40, .alpha = 0.5};
    const priors::Wishart prior(0.5);
    const data::Dataset good = problem(setting, prior, 1).data;
    const auto attempt = [&](const data::Dataset& data, FitOptions options = learning({Family::weights})) {
        return [&pool, data, setting, options] { fit(data, channel_of(setting), 0, {}, options, pool); };
    };
    data::Dataset constant = good;
    constant.outputs.rowwise() = constant.outputs.row(0).eval();
    test::expect_invalid(attempt(constant), "outputs must be different from sample to sample");
    data::Dataset one_hot = good;
    Matrix tokens = Matrix::Zero(40, 2 * good.tokens->samples());
    for (Eigen::Index k = 0; k < tokens.cols(); ++k) tokens((7 * k) % 40, k) = std::sqrt(40.0);
    one_hot.tokens = data::given_tokens(tokens, 2);
    test::expect_invalid(attempt(one_hot), "tokens must be spread over their 40 coordinates");
    data::Dataset flat = good;
    tokens = linalg::gaussian_matrix(40, tokens.cols(), RandomStream(1, Purpose::noise), pool);
    tokens.row(0).setZero();
    flat.tokens = data::given_tokens(tokens, 2);
    test::expect_invalid(attempt(flat), "covariance of the tokens must be invertible");
    FitOptions few = learning({Family::weights});
    few.holdout = 0.01;
    test::expect_invalid(attempt(good, few), "held-out samples must be at least 20");
}

}  // namespace
}  // namespace bayesaim::estimators
