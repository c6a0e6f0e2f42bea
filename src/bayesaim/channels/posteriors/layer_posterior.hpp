// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>

#include <Eigen/Core>

#include "bayesaim/channels/posteriors/layer_mixing.hpp"

namespace bayesaim::channels {

/// Posterior given y = softmax_beta(H_L): an integral over layers 1 .. L-1, in (L-1)(K-1) dimensions. With
/// B = B^{L-1} and H_0 = B^-1 M_0 B^-T, the last layer up to its constant,
///   Z = int dh N(h; omega, V_<) N(E htilde(H_0); mu, V_L|<) |det B|^-(T+1),
///   mu = omega^L + k' (h - omega),  k = V_<^-1 V_<L,  V_L|< = V_LL - V_L< k.
///
/// Self-normalised importance sampling at Sobol points: four in five from a Gaussian at the mode with the
/// Gauss-Newton covariance of the residuals, widened by 1.3, the others from the prior; weights against the
/// mixture of both. The effective number of samples (sum w)^2 / sum w^2 is part of the result.
/// Pinned by: LayerPosterior.*.
class LayerPosterior {
  public:
    LayerPosterior(int layers, int tokens, double beta, double residual, int points, std::uint64_t seed = 0);

    /// logits = M_0; omega has L (K-1) coordinates.
    LayerMoments operator()(const TokenMatrix& logits, const Eigen::VectorXd& omega,
                            const linalg::Overlap& variance) const;

    int dimension() const { return (layers_ - 1) * static_cast<int>(directions_.rows()); }

  private:
    struct Problem;
    struct Residual;
    struct Mode;
    struct Sample;
    Residual residual(const Problem& problem, const Eigen::VectorXd& z) const;
    Mode mode(const Problem& problem) const;
    Sample weighted(const Problem& problem, const Mode& mode) const;
    LayerMoments moments(const Problem& problem, Sample sample) const;

    int layers_, tokens_;
    double beta_, residual_;
    Eigen::MatrixXd directions_;  // E
    Eigen::MatrixXd points_;      // standard normal, one per column
};

}  // namespace bayesaim::channels
