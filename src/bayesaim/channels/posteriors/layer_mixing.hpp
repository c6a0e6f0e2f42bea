// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>
#include <numbers>

#include <Eigen/Core>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/linalg/decompositions.hpp"

/// L layers of softmax attention with residual connections, in terms of the indices h^1 .. h^L:
///   B^0 = 1,   H_l = B^{l-1} h^l (B^{l-1})',   B^l = (c + softmax_beta(H_l)) B^{l-1},   X_l = B^l X_0.
/// B^l maps 1 to (c+1)^l 1 and softmax ignores constants along rows, so no output depends on a constant added
/// to h^l: in every layer the direction tau/T of htilde^l is irrelevant and K - 1 directions count.
namespace bayesaim::channels {

/// At T = 8 the integrals over layers already have K - 1 = 35 dimensions or more.
inline constexpr int max_deep_tokens = 8;

/// A small T x T matrix; no heap memory.
using TokenMatrix = linalg::SmallMatrix;
static_assert(max_deep_tokens <= linalg::max_small);

inline constexpr double half_root = 1 / std::numbers::sqrt2;

/// 1/(1 + e^-x): the attention of one of two tokens to the other.
inline double logistic(double x) { return x > 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }

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

/// Posterior of the indices of L layers, in the K - 1 coordinates E htilde that count, layer by layer.
struct LayerMoments {
    Eigen::VectorXd mean;        ///< L (K-1)
    linalg::Overlap covariance;  ///< L x L: sum over the K - 1 coordinates
    double log_z = 0;
    double error = 0;              ///< estimated, of the mean in posterior deviations
    double effective_samples = 0;  ///< of importance sampling; 0 for a quadrature
    bool adaptive = false;         ///< not a smooth function of omega and V: jumps by about the error
};

}  // namespace bayesaim::channels
