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
    /// For two layers. Finer than for the attention: for c < 1 outputs with Y_12 + Y_21 close to c + 1 leave
    /// layer 1 a corner of the plane; where that is not resolved importance sampling takes over.
    ZoomOptions quadrature{.coarse_cells = 47, .nodes = 65, .most_nodes = 1025, .cut = 25};
};

/// The read-out of a deep seq2seq model, X_L = Y X_0 with Y = softmax_beta(H_L) B^{L-1}: as the tokens X_0
/// are known, Y is observed. Two tokens: two layers by quadrature where it resolves the posterior
/// (sequence_posterior), otherwise importance sampling (ReadoutPosterior). With three tokens or more Y
/// overdetermines the last layer, T^2 - T numbers for its K - 1, so that the others are confined to a
/// surface; that is not implemented.
///
/// The error of predictions is that of Y; that of X_L is d times as large.
class DeepSequence final : public LayeredChannel {
  public:
    explicit DeepSequence(const DeepSequenceOptions& options = {});

    std::string name() const override { return "deep-seq2seq"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    int tokens() const override { return 2; }
    int layers() const override { return options_.layers; }
    /// Of each row of Y: (c+1)^(L-1).
    double row_sum() const;
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override;
    std::vector<LayerMoments> posterior(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                        const Overlap& variance) const override;

  private:
    DeepSequenceOptions options_;
    ReadoutPosterior sampled_posterior_;
};

}  // namespace bayesaim::channels
