// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/tokens.hpp"

namespace bayesaim::data {

/// The forward map of one attention layer and its transpose, block by block.
///   htilde_ab = tau_ab (x_a' S x_b - delta_ab Tr S) / sqrt(d)     over the pairs a <= b
/// One product of the block with S; `projected` receives S X.
void attention_indices(const TokenSource::Block& block, Eigen::Index tokens,
                       const linalg::ConstMatrixRef& weights, linalg::Matrix& projected,
                       channels::RowsRef index);

/// Y = X G of each sample, G_aa = g_aa, G_ab = g_ab / sqrt(2): then sum_ab g_ab Z_ab = (X Y' - Tr(G) I) /
/// sqrt(d).
void mix_tokens(const TokenSource::Block& block, Eigen::Index tokens, const channels::ConstRowsRef& g,
                linalg::Matrix& mixed);

/// lower += X Y' on blocks of the lower triangle, for X Y' symmetric: little more than half a product.
void accumulate_symmetric(const TokenSource::Block& x, const linalg::Matrix& y, linalg::Matrix& lower);

/// htilde of all samples.
channels::Rows all_attention_indices(const TokenSource& source, const linalg::ConstMatrixRef& weights,
                                     ThreadPool& pool);

}  // namespace bayesaim::data
