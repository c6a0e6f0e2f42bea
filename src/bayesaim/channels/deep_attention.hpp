// SPDX-License-Identifier: MIT
#pragma once
#include <memory>

#include "bayesaim/channels/layered_channel.hpp"
#include "bayesaim/channels/posteriors/layer_posterior.hpp"
#include "bayesaim/channels/posteriors/zoomed_rule.hpp"

namespace bayesaim::channels {

struct DeepAttentionOptions {
    int layers = 2;            ///< L, from 2 to linalg::max_layers; one layer is Softmax
    int tokens = 2;            ///< T, from 2 to max_deep_tokens
    double beta = 1;           ///< inverse temperature
    double residual = 1;       ///< c, 0 to 1e6, strength of the residual connections
    int points = 1024;         ///< of importance sampling, where L or T exceeds 2
    ZoomOptions quadrature{};  ///< for L = T = 2
};

/// The attention of the last of L layers, y = softmax_beta(H_L), H_L = B^{L-1} h^L (B^{L-1})' (see
/// posteriors/layer_mixing.hpp). Outputs are log y.
///
/// y fixes H_L up to a constant, hence the last layer up to a constant once the others are known. An integral
/// over the other layers remains: attention_posterior or LayerPosterior.
class DeepAttention final : public LayeredChannel {
  public:
    explicit DeepAttention(const DeepAttentionOptions& options = {});

    bool logarithmic_outputs() const override { return true; }

  private:
    TokenMatrix output(const TokenMatrix& logits, const TokenMatrix& mixing) const override;
    LayerMoments posterior_of(const double* log_y, const Eigen::VectorXd& omega,
                              const Overlap& variance) const override;

    ZoomOptions quadrature_;
    std::shared_ptr<const LayerPosterior> sampled_posterior_;
};

}  // namespace bayesaim::channels
