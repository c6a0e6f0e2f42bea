// SPDX-License-Identifier: MIT
#include "bayesaim/data/deep_attention.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/attention.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;

Matrix row_softmax(const Matrix& logits, double beta) {
    Matrix result = beta * logits;
    for (Eigen::Index a = 0; a < result.rows(); ++a) {
        result.row(a) = (result.row(a).array() - result.row(a).maxCoeff()).exp();
        result.row(a) /= result.row(a).sum();
    }
    return result;
}

void check_weights(std::span<const Matrix> weights, Eigen::Index dim) {
    check_at_least("layers", static_cast<long long>(weights.size()), 1);
    for (const Matrix& s : weights) {
        check_size("rows of the weights", s.rows(), dim);
        check_size("columns of the weights", s.cols(), dim);
    }
}

}  // namespace

std::vector<EncoderLayer> run_encoder(const linalg::ConstMatrixRef& tokens, std::span<const Matrix> weights,
                                      const EncoderOptions& options) {
    check_weights(weights, tokens.cols());
    check_at_least("tokens", tokens.rows(), 2);
    check_positive("beta", options.beta);
    check_non_negative("residual", options.residual);
    const double scale = 1 / std::sqrt(static_cast<double>(tokens.cols()));
    Matrix x = tokens, mixing = Matrix::Identity(tokens.rows(), tokens.rows());
    std::vector<EncoderLayer> layers;
    for (const Matrix& s : weights) {
        EncoderLayer layer;
        layer.logits = scale * (x * s * x.transpose() - s.trace() * mixing * mixing.transpose());
        layer.attention = row_softmax(layer.logits, options.beta);
        layer.read_out = layer.attention * x;
        layer.tokens = options.residual * x + layer.read_out;
        mixing = (options.residual * mixing + layer.attention * mixing).eval();
        x = layer.tokens;
        layers.push_back(std::move(layer));
    }
    return layers;
}

Matrix multi_head_attention(const linalg::ConstMatrixRef& tokens, std::span<const Matrix> heads, double beta,
                            HeadAveraging averaging) {
    check_weights(heads, tokens.cols());
    check_positive("beta", beta);
    Matrix mean = Matrix::Zero(tokens.rows(), tokens.rows());
    for (const Matrix& s : heads) {
        Matrix h = tokens * s * tokens.transpose();
        h.diagonal().array() -= s.trace();
        h /= std::sqrt(static_cast<double>(tokens.cols()));
        mean += averaging == HeadAveraging::logits ? h : row_softmax(h, beta);
    }
    mean /= static_cast<double>(heads.size());
    return averaging == HeadAveraging::logits ? row_softmax(mean, beta) : mean;
}

channels::Rows all_layer_indices(const TokenSource& source, std::span<const Matrix> weights,
                                 ThreadPool& pool) {
    check_weights(weights, source.dim());
    const Eigen::Index pairs = source.tokens() * (source.tokens() + 1) / 2;
    channels::Rows index(source.samples(), static_cast<Eigen::Index>(weights.size()) * pairs);
    for (std::size_t l = 0; l < weights.size(); ++l) {
        index.middleCols(static_cast<Eigen::Index>(l) * pairs, pairs) =
            all_attention_indices(source, weights[l], pool);
    }
    return index;
}

DeepSynthetic make_deep_synthetic(std::span<const priors::Prior* const> priors,
                                  const channels::Channel& channel, const SyntheticOptions& options,
                                  ThreadPool& pool) {
    check_size("number of priors", static_cast<long long>(priors.size()), channel.layers());
    check_positive("alpha", options.alpha);
    check_at_least("dimension", options.dim, 1);
    const double d = static_cast<double>(options.dim);
    const auto samples =
        std::max<Eigen::Index>(1, static_cast<Eigen::Index>(std::llround(options.alpha * d * d)));
    DeepSynthetic result;
    for (std::size_t l = 0; l < priors.size(); ++l) {
        result.weights.push_back(priors[l]->sample(options.dim, options.seed, l, pool));
    }
    result.data.tokens =
        gaussian_tokens(samples, channel.tokens(), options.dim, options.seed, options.storage,
                        options.precision, pool, options.test ? Purpose::test_tokens : Purpose::tokens);
    result.data.outputs.resize(samples, channel.tokens() * channel.tokens());
    constexpr std::uint64_t first_test_sample = std::uint64_t{1} << 63;  // label noise of its own
    channel.draw(all_layer_indices(*result.data.tokens, result.weights, pool), options.seed,
                 options.test ? first_test_sample : 0, result.data.outputs);
    return result;
}

TestSet make_deep_test_set(std::span<const Matrix> weights, const channels::Channel& channel,
                           Eigen::Index samples, std::uint64_t seed, ThreadPool& pool) {
    check_size("number of weights", static_cast<long long>(weights.size()), channel.layers());
    TestSet result;
    result.tokens =
        gaussian_tokens(samples, channel.tokens(), weights[0].rows(), seed, TokenStorage::regenerate,
                        Precision::double_precision, pool, Purpose::test_tokens);
    result.targets.resize(samples, channel.tokens() * channel.tokens());
    channel.predict(all_layer_indices(*result.tokens, weights, pool),
                    linalg::Overlap::Zero(channel.layers(), channel.layers()), result.targets);
    return result;
}

linalg::Overlap estimation_errors(std::span<const Matrix> estimates, std::span<const Matrix> weights) {
    check_size("number of estimates", static_cast<long long>(estimates.size()),
               static_cast<long long>(weights.size()));
    const auto layers = static_cast<Eigen::Index>(weights.size());
    linalg::Overlap errors(layers, layers);
    std::vector<Matrix> differences;
    for (std::size_t l = 0; l < weights.size(); ++l) {
        check_size("dimension of an estimate", estimates[l].rows(), weights[l].rows());
        differences.push_back(estimates[l] - weights[l]);
    }
    for (Eigen::Index l = 0; l < layers; ++l) {
        for (Eigen::Index k = 0; k < layers; ++k) {
            const Matrix &a = differences[static_cast<std::size_t>(l)],
                         &b = differences[static_cast<std::size_t>(k)];
            errors(l, k) = a.cwiseProduct(b).sum() / static_cast<double>(a.rows());
        }
    }
    return errors;
}

}  // namespace bayesaim::data
