// SPDX-License-Identifier: MIT
#include "bayesaim/data/encoder.hpp"

#include <gtest/gtest.h>

#include "bayesaim/channels/posteriors/layer_mixing.hpp"
#include "bayesaim/channels/table.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/multi_head.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::data {
namespace {

using channels::TokenMatrix;
using linalg::Matrix;

constexpr int dim = 40;

/// Random symmetric weights, one matrix per layer, and tokens, one per row.
struct Network {
    std::vector<Matrix> weights;
    Matrix tokens;
};

Network network(int layers, int tokens) {
    ThreadPool pool(1);
    Network result;
    for (int l = 0; l < layers; ++l) {
        result.weights.push_back(priors::Wishart(0.5).sample(dim, 3, static_cast<std::uint64_t>(l), pool));
    }
    result.tokens = linalg::gaussian_matrix(tokens, dim, RandomStream(4, Purpose::tokens, 0), pool);
    return result;
}

/// htilde of the tokens X_0, layer by layer: the input of the channel.
channels::Rows indices(const Network& net) {
    ThreadPool pool(1);
    const auto source = given_tokens(Matrix(net.tokens.transpose()), net.tokens.rows());
    return attention_indices(*source, net.weights, pool);
}

/// X_l = B^l X_0, H_l = B^{l-1} h^l B^{l-1}' and the read-out softmax(H_L) B^{L-1} X_0, with B from the
/// indices alone. Round-off; with the residual or the trace term left out the distance is of order 1.
TEST(Encoder, TokensAreMixedByTheIndices) {
    for (const int tokens : {2, 3, 5}) {
        for (const double residual : {0.0, 0.5, 1.0, 2.0}) {
            const Network net = network(3, tokens);
            const channels::Rows htilde = indices(net);
            const double beta = 0.7;
            const auto layers = run_encoder(net.tokens, net.weights, {.beta = beta, .residual = residual});
            const int pairs = tokens * (tokens + 1) / 2;
            for (int l = 0; l < 3; ++l) {
                const EncoderLayer& layer = layers[static_cast<std::size_t>(l)];
                const Matrix before = channels::mixing_matrix(htilde.data(), l, tokens, beta, residual),
                             after = channels::mixing_matrix(htilde.data(), l + 1, tokens, beta, residual);
                const Matrix h = channels::index_matrix(htilde.data() + l * pairs, tokens);
                const Matrix logits = before * h * before.transpose();
                EXPECT_LT((layer.tokens - after * net.tokens).norm(), 1e-11 * layer.tokens.norm());
                EXPECT_LT((layer.logits - logits).norm(), 1e-11 * (1 + logits.norm())) << "layer " << l;
                const Matrix attention = channels::row_softmax(logits, beta);
                EXPECT_LT((layer.read_out - attention * before * net.tokens).norm(),
                          1e-11 * net.tokens.norm());
                EXPECT_NEAR((after * Eigen::VectorXd::Ones(tokens)).maxCoeff(), std::pow(residual + 1, l + 1),
                            1e-12);
            }
        }
    }
}

/// The channel's outputs are the attention of the last layer.
TEST(Encoder, LastAttentionIsTheOutputOfTheChannel) {
    for (const int layers : {1, 2, 3}) {
        const Network net = network(layers, 3);
        const auto channel = channels::make_channel(
            "deep-softmax", {.tokens = 3, .beta = 0.7, .layers = layers, .residual = 0.5});
        channels::Rows outputs(1, 9);
        channel->draw(indices(net), 0, 0, outputs);
        const Matrix attention =
            run_encoder(net.tokens, net.weights, {.beta = 0.7, .residual = 0.5}).back().attention;
        for (int a = 0; a < 3; ++a) {
            for (int b = 0; b < 3; ++b) EXPECT_NEAR(std::exp(outputs(0, 3 * a + b)), attention(a, b), 1e-12);
        }
    }
}

/// Heads with averaged logits are one layer with the mean of their weights; averaged attentions are not.
TEST(MultiHeadAttention, AveragedLogitsAreOneLayer) {
    const Network heads = network(3, 3);
    Matrix mean = Matrix::Zero(dim, dim);
    for (const Matrix& s : heads.weights) mean += s / 3;
    const Matrix one[] = {mean};
    const Matrix single = run_encoder(heads.tokens, one, {.beta = 1.5}).back().attention;
    const Matrix logits = multi_head_attention(heads.tokens, heads.weights, 1.5, HeadAveraging::logits),
                 attention = multi_head_attention(heads.tokens, heads.weights, 1.5, HeadAveraging::attention);
    EXPECT_LT((logits - single).norm(), 1e-12);
    EXPECT_GT((attention - single).norm(), 0.05);
    EXPECT_LT((attention.rowwise().sum() - Eigen::VectorXd::Ones(3)).norm(), 1e-12);
    // The draw of the reduced prior is that mean.
    ThreadPool pool(1);
    EXPECT_LT((priors::MultiHead(3, 0.5).sample(dim, 3, 0, pool) - mean).norm(), 1e-12);
}

/// The read-out of the last layer is Y X_0 with the outputs Y of the channel.
TEST(Encoder, ReadOutIsTheOutputOfTheSequenceChannel) {
    for (const int layers : {2, 3}) {
        const Network net = network(layers, 2);
        const auto channel =
            channels::make_channel("deep-seq2seq", {.beta = 0.7, .layers = layers, .residual = 0.5});
        channels::Rows outputs(1, 4);
        channel->draw(indices(net), 0, 0, outputs);
        const Matrix read_out =
            run_encoder(net.tokens, net.weights, {.beta = 0.7, .residual = 0.5}).back().read_out;
        EXPECT_LT((outputs.reshaped<Eigen::RowMajor>(2, 2) * net.tokens - read_out).norm(),
                  1e-12 * read_out.norm());
    }
}

TEST(Encoder, RejectsWrongArguments) {
    const Network net = network(1, 2);
    test::expect_invalid([&] { run_encoder(net.tokens, net.weights, {.residual = -1}); }, "residual");
    test::expect_invalid([&] { run_encoder(net.tokens, {}, {}); },
                         "weights must be at least one matrix, got none");
    test::expect_invalid([&] { run_encoder(net.tokens.topRows(1), net.weights, {}); },
                         "tokens must be at least 2");
}

}  // namespace
}  // namespace bayesaim::data
