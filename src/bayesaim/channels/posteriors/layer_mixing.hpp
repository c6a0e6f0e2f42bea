// SPDX-License-Identifier: MIT
#pragma once
#include <Eigen/Core>

#include "bayesaim/channels/channel.hpp"

/// What L layers of softmax attention with residual connections compute, in terms of the indices h^1 .. h^L:
///   B^0 = 1,   H_l = B^{l-1} h^l (B^{l-1})',   B^l = (c + softmax_beta(H_l)) B^{l-1},   X_l = B^l X_0.
/// B^l maps 1 to (c+1)^l 1 and softmax ignores constants along rows, so a constant added to any h^l changes
/// nothing: of the K pairs of htilde^l, the direction tau/T counts in no layer.
namespace bayesaim::channels {

/// Beyond this the integrals over layers have 35 dimensions and more.
inline constexpr int max_deep_tokens = 8;

/// A small T x T matrix; no heap memory.
using TokenMatrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, max_deep_tokens, max_deep_tokens>;

/// h_ab = htilde_ab / tau_ab from K numbers, and back.
TokenMatrix index_matrix(const double* htilde, int tokens);
void scaled_indices(const TokenMatrix& h, double* htilde);

/// Row by row, exp(beta h_ab) / sum_b exp(beta h_ab), and its logarithm.
TokenMatrix row_softmax(const TokenMatrix& h, double beta);
TokenMatrix row_log_softmax(const TokenMatrix& h, double beta);

/// B^l from B^{l-1} and h^l.
TokenMatrix next_mixing(const TokenMatrix& mixing, const TokenMatrix& h, double beta, double residual);

/// B^layers from htilde, layer by layer in blocks of K.
TokenMatrix mixing_matrix(const double* htilde, int layers, int tokens, double beta, double residual);

/// The symmetric M_0 with softmax_beta(M_0) = y, unique up to a constant: with phi_ab = log(y_ab/y_aT)/beta,
/// M_0 = phi_ab + phi_Ta. From the T^2 logarithms of y.
TokenMatrix logits_of_output(const double* log_outputs, int tokens, double beta);

/// E, (K-1) x K: orthonormal rows orthogonal to tau, the directions of htilde that count. For T = 2 they are
/// (1, 0, -1)/sqrt(2) and (1, -sqrt(2), 1)/2.
Eigen::MatrixXd informed_directions(int tokens);

}  // namespace bayesaim::channels
