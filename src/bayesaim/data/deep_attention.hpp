// SPDX-License-Identifier: MIT
#pragma once
#include <span>
#include <vector>

#include "bayesaim/data/dataset.hpp"

/// Networks of several attention layers or heads, run on tokens: what the channels of attention indices claim
/// to be. Identities between the two are tested, not assumed.
namespace bayesaim::data {

struct EncoderOptions {
    double beta = 1;      ///< inverse temperature
    double residual = 1;  ///< c >= 0
};

/// One layer of a deep encoder.
struct EncoderLayer {
    linalg::Matrix logits;  ///< H_l = X_{l-1} S_l X_{l-1}'/sqrt(d) - Tr(S_l)/sqrt(d) B^{l-1} B^{l-1}', T x T
    linalg::Matrix attention;  ///< softmax_beta(H_l), row by row
    linalg::Matrix read_out;   ///< softmax_beta(H_l) X_{l-1}: what seq2seq shows of the last layer, T x d
    linalg::Matrix tokens;     ///< X_l = c X_{l-1} + read_out, T x d
};

/// All layers, from tokens X_0 (T x d, one token per row) and weights S_1 .. S_L. B^l collects what the
/// layers have done to the tokens, B^l = (c + softmax_beta(H_l)) B^{l-1}; the trace term removes the mean of
/// H. Pinned by: Encoder.TokensAreMixedByTheIndices.
std::vector<EncoderLayer> run_encoder(const linalg::ConstMatrixRef& tokens,
                                      std::span<const linalg::Matrix> weights, const EncoderOptions& options);

/// How several heads become one attention matrix.
enum class HeadAveraging {
    logits,  ///< softmax_beta of the mean of h^m: only the mean of the S_m can be learned (priors::MultiHead)
    attention,  ///< the mean of softmax_beta(h^m), what transformers do: another map, with no closed form
};

/// The T x T attention of heads with weights S_1 .. S_M on tokens X_0, T x d.
linalg::Matrix multi_head_attention(const linalg::ConstMatrixRef& tokens,
                                    std::span<const linalg::Matrix> heads, double beta,
                                    HeadAveraging averaging);

/// htilde of all samples, n x L K, layer by layer.
channels::Rows all_layer_indices(const TokenSource& source, std::span<const linalg::Matrix> weights,
                                 ThreadPool& pool);

/// A teacher of several layers and the data it labelled.
struct DeepSynthetic {
    std::vector<linalg::Matrix> weights;  ///< S_1 .. S_L, the truth
    Dataset data;
};

/// Each S_l from its prior, with the stream of index l; otherwise as make_synthetic.
DeepSynthetic make_deep_synthetic(std::span<const priors::Prior* const> priors,
                                  const channels::Channel& channel, const SyntheticOptions& options,
                                  ThreadPool& pool);

/// New samples of the same teacher.
TestSet make_deep_test_set(std::span<const linalg::Matrix> weights, const channels::Channel& channel,
                           Eigen::Index samples, std::uint64_t seed, ThreadPool& pool);

/// Tr((estimate_l - S_l)(estimate_k - S_k)) / d, L x L.
linalg::Overlap estimation_errors(std::span<const linalg::Matrix> estimates,
                                  std::span<const linalg::Matrix> weights);

}  // namespace bayesaim::data
