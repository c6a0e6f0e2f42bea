// SPDX-License-Identifier: MIT
#pragma once
#include <span>
#include <vector>

#include "bayesaim/data/attention.hpp"

/// Networks of several attention layers or heads, run on tokens. The channels express the same networks in
/// attention indices; tests check that the two agree.
namespace bayesaim::data {

struct EncoderOptions {
    double beta = 1;      ///< inverse temperature
    double residual = 1;  ///< c >= 0
};

/// One layer of a deep encoder.
struct EncoderLayer {
    linalg::Matrix logits;  ///< H_l = X_{l-1} S_l X_{l-1}'/sqrt(d) - Tr(S_l)/sqrt(d) B^{l-1} B^{l-1}', T x T
    linalg::Matrix attention;  ///< softmax_beta(H_l), row by row
    linalg::Matrix read_out;   ///< softmax_beta(H_l) X_{l-1}: the output of seq2seq in the last layer, T x d
    linalg::Matrix tokens;     ///< X_l = c X_{l-1} + read_out, T x d
};

/// All layers, from tokens X_0 (T x d, one token per row) and weights S_1 .. S_L. X_l = B^l X_0 with
/// B^l = (c + softmax_beta(H_l)) B^{l-1}; the trace term removes the mean of H.
/// Pinned by: Encoder.TokensAreMixedByTheIndices.
std::vector<EncoderLayer> run_encoder(const linalg::ConstMatrixRef& tokens,
                                      std::span<const linalg::Matrix> weights, const EncoderOptions& options);

/// How several heads become one attention matrix.
enum class HeadAveraging {
    logits,  ///< softmax_beta of the mean of h^m: only the mean of the S_m can be learned (priors::MultiHead)
    attention,  ///< the mean of softmax_beta(h^m), as in transformers: another map, with no closed form
};

/// The T x T attention of heads with weights S_1 .. S_M on tokens X_0, T x d.
linalg::Matrix multi_head_attention(const linalg::ConstMatrixRef& tokens,
                                    std::span<const linalg::Matrix> heads, double beta,
                                    HeadAveraging averaging);

}  // namespace bayesaim::data
