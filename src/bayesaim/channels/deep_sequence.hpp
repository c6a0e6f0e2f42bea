// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/layered_channel.hpp"
#include "bayesaim/channels/posteriors/readout_posterior.hpp"
#include "bayesaim/channels/posteriors/zoomed_rule.hpp"

namespace bayesaim::channels {

struct DeepSequenceOptions {
    int layers = 2;       ///< L, from 2 to linalg::max_layers; one layer is Softmax
    double beta = 1;      ///< inverse temperature, up to 100
    double residual = 1;  ///< c, 0 to 1e6, strength of the residual connections
    int points = 1024;    ///< of importance sampling
    /// For two layers. Finer than for the attention: for c < 1 outputs with Y_12 + Y_21 near c + 1 confine
    /// layer 1 to a corner of the plane. If the rule does not resolve it, importance sampling takes over.
    ZoomOptions quadrature{.coarse_cells = 47, .nodes = 65, .most_nodes = 1025, .cut = 25};
};

/// The read-out of a deep seq2seq model, X_L = Y X_0 with Y = softmax_beta(H_L) B^{L-1}: as the tokens X_0
/// are known, Y is observed. Only two tokens are implemented: two layers by quadrature if it resolves the
/// posterior (sequence_posterior), otherwise importance sampling (ReadoutPosterior). With more tokens Y
/// overdetermines the last layer, T^2 - T numbers for its K - 1, and confines the others to a surface.
///
/// Predictions are of Y. The squared error of X_L is d times as large.
class DeepSequence final : public LayeredChannel {
  public:
    explicit DeepSequence(const DeepSequenceOptions& options = {});

    /// Outputs lie between 0 and the row sum (c+1)^(L-1).
    void check_outputs(const ConstRowsRef& outputs) const override;

  private:
    TokenMatrix output(const TokenMatrix& logits, const TokenMatrix& mixing) const override;
    LayerMoments posterior_of(const double* output, const Eigen::VectorXd& omega,
                              const Overlap& variance) const override;

    ZoomOptions quadrature_;
    ReadoutPosterior sampled_posterior_;
};

}  // namespace bayesaim::channels
