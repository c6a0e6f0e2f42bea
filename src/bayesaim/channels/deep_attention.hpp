// SPDX-License-Identifier: MIT
#pragma once
#include <memory>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/channels/layer_posterior.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/channels/two_layer_posterior.hpp"

namespace bayesaim::channels {

struct DeepAttentionOptions {
    int layers = 2;                           ///< L, from 1 to linalg::max_layers
    int tokens = 2;                           ///< T, from 2 to max_deep_tokens
    double beta = 1;                          ///< inverse temperature
    double residual = 1;                      ///< c >= 0, strength of the residual connections
    int points = 1024;                        ///< of importance sampling, where L or T exceeds 2
    TwoLayerPosterior::Options quadrature{};  ///< for L = T = 2
};

/// The attention of the last of L layers, y = softmax_beta(H_L), H_L = B^{L-1} h^L (B^{L-1})' (see
/// deep_attention_map.hpp). Outputs are log y.
///
/// y fixes H_L up to a constant, hence the last layer up to a constant once the others are known; what
/// remains is an integral over the others, TwoLayerPosterior or LayerPosterior. With E the directions that
/// count,
///   g^l = E' [V^-1 (<E htilde> - E omega)]_l,  sum over pairs of -dg/domega = (K-1) V^-1 - V^-1 <Cov> V^-1.
/// One layer is Softmax. State evolution takes F from the second form: its samples scatter 2 to 10 times less
/// than those of g g'.
class DeepAttention final : public Channel {
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
    /// Averages over Sobol points for L >= 2.
    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override;
    /// relative_error: the larger of the two layers' standard errors, with the mean error of the integrals.
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override;
    /// Known for one layer only.
    std::optional<double> information(const OrderParameters& parameters,
                                      const Integration& integration) const override;
    std::optional<int> exact_observations() const override;
    bool sampled() const override { return layers() > 1; }
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

    /// Posterior of each sample's indices, with the error of its integral and the effective number of
    /// samples. L >= 2.
    std::vector<LayerMoments> posterior(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                        const Overlap& variance) const;

  private:
    void write_scores(const std::vector<LayerMoments>& moments, const ConstRowsRef& omega,
                      const Overlap& precision, RowsRef g) const;

    DeepAttentionOptions options_;
    Softmax one_layer_;
    Eigen::MatrixXd directions_;  // E
    std::shared_ptr<const LayerPosterior> sampled_posterior_;
};

}  // namespace bayesaim::channels
