// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <memory>

#include <Eigen/Core>

#include "bayesaim/channels/posteriors/layer_posterior.hpp"
#include "bayesaim/numerics/importance_sampling.hpp"

namespace bayesaim::channels {

/// Posterior of the indices of L layers of two tokens when the read-out of seq2seq is known,
/// Y = softmax_beta(H_L) B^{L-1}, any L >= 2.
///
/// Divided by its row sums, Y is a stochastic matrix M. Taking off layer l, M <- (c+1) M (c + A_l)^-1, leaves
/// one again: with K = c + 1, A_l given by a and b (attention of each token to the other), delta = K - a - b,
///   M_12 <- (K M_12 - a)/delta,  M_11 <- (K M_11 - b)/delta,  M_21 <- (K M_21 - b)/delta,
///   M_22 <- (K M_22 - a)/delta,
/// which are positive if a < K M_12, K M_22, 1 and b < K M_21, K M_11, 1 (delta > 0), or if a and b exceed
/// these K M (delta < 0, for c < 1 only). After L - 1 layers M is the attention of the last. So the read-out
/// confines each layer in turn to a rectangle. Mapped to the plane by two numbers x for layers 1 .. L-1,
///   Z = int dx prod_l |dh^l/dx| N(h; omega, V) |D|^-5 / (sqrt(2) K^{L-1} beta^2 M_11 M_12 M_21 M_22),
///   D = prod delta,  h^l = (B^{l-1})^-1 H_l (B^{l-1})^-T,  |dh^l/dH_l| = |D_{l-1}|^-3 / K^{l-1},
/// is smooth without edges. AdaptiveImportance computes the integral; for c < 1 one for each choice of signs
/// of delta. Pinned by: ReadoutPosterior.*.
class ReadoutPosterior {
  public:
    ReadoutPosterior(int layers, double beta, double residual, int points, std::uint64_t seed = 0);

    /// Y_11, Y_12, Y_21, Y_22; omega has 2 L coordinates. If all weights are 0, returns the prior, error 1.
    LayerMoments operator()(const Eigen::Vector4d& outputs, const Eigen::VectorXd& omega,
                            const linalg::Overlap& variance) const;

    /// The integrand over x, for outputs divided by their row sum. Its reference draws layer after layer from
    /// the prior. Bit l of `negative`: delta < 0 in layer l.
    std::unique_ptr<numerics::ImportanceTarget> integrand(const Eigen::Vector4d& shares,
                                                          const Eigen::VectorXd& omega,
                                                          const linalg::Overlap& variance,
                                                          unsigned negative = 0) const;

  private:
    int layers_;
    double beta_, residual_;
    Eigen::MatrixXd starts_;  // z, one per column
    numerics::AdaptiveImportance integral_;
};

}  // namespace bayesaim::channels
