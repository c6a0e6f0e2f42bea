// SPDX-License-Identifier: MIT
#include "bayesaim/channels/deep_attention.hpp"

#include "bayesaim/channels/posteriors/two_layer_posterior.hpp"

namespace bayesaim::channels {

DeepAttention::DeepAttention(const DeepAttentionOptions& options)
    : LayeredChannel("deep-softmax", {options.layers, options.tokens, options.beta, options.residual}, 1e6),
      quadrature_(options.quadrature) {
    if (layers() > 2 || tokens() > 2) {
        sampled_posterior_ = std::make_shared<LayerPosterior>(layers(), tokens(), options.beta,
                                                              options.residual, options.points);
    }
}

TokenMatrix DeepAttention::output(const TokenMatrix& logits, const TokenMatrix&) const {
    return row_log_softmax(logits, model().beta);
}

LayerMoments DeepAttention::posterior_of(const double* log_y, const Eigen::VectorXd& omega,
                                         const Overlap& variance) const {
    const double beta = model().beta;
    if (sampled_posterior_)
        return (*sampled_posterior_)(logits_of_output(log_y, tokens(), beta), omega, variance);
    const Eigen::Vector2d m((log_y[1] - log_y[0]) / beta, (log_y[2] - log_y[3]) / beta);
    return attention_posterior(m, omega, variance, beta, model().residual, quadrature_);
}

}  // namespace bayesaim::channels
