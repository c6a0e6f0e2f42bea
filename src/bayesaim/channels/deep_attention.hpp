// SPDX-License-Identifier: MIT
#pragma once
#include <memory>

#include "bayesaim/channels/layered_channel.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/channels/posteriors/zoomed_rule.hpp"

namespace bayesaim::channels {

struct DeepAttentionOptions {
    int layers = 2;            ///< L, from 1 to linalg::max_layers
    int tokens = 2;            ///< T, from 2 to max_deep_tokens
    double beta = 1;           ///< inverse temperature
    double residual = 1;       ///< c, 0 to 1e6, strength of the residual connections
    int points = 1024;         ///< of importance sampling, where L or T exceeds 2
    ZoomOptions quadrature{};  ///< for L = T = 2
};

/// The attention of the last of L layers, y = softmax_beta(H_L), H_L = B^{L-1} h^L (B^{L-1})' (see
/// posteriors/layer_mixing.hpp). Outputs are log y.
///
/// y fixes H_L up to a constant, hence the last layer up to a constant once the others are known; what
/// remains is an integral over the others, attention_posterior or LayerPosterior. One layer is Softmax.
class DeepAttention final : public LayeredChannel {
  public:
    explicit DeepAttention(const DeepAttentionOptions& options = {});

    std::string name() const override { return "deep-softmax"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    int tokens() const override { return options_.tokens; }
    int layers() const override { return options_.layers; }
    bool logarithmic_outputs() const override { return true; }
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override;
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override;
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override;
    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override;
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override;
    /// Known for one layer only.
    std::optional<double> information(const OrderParameters& parameters,
                                      const Integration& integration) const override;
    std::optional<int> exact_observations() const override;
    bool sampled() const override { return layers() > 1; }
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

    /// L >= 2.
    std::vector<LayerMoments> posterior(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                        const Overlap& variance) const override;

  private:
    DeepAttentionOptions options_;
    Softmax one_layer_;
    std::shared_ptr<const LayerPosterior> sampled_posterior_;
};

}  // namespace bayesaim::channels
