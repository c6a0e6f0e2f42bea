// SPDX-License-Identifier: MIT
#pragma once
#include <string>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/channels/posteriors/layer_mixing.hpp"

namespace bayesaim::channels {

struct LayeredModel {
    int layers;       ///< L, from 2 to linalg::max_layers
    int tokens;       ///< T, from 2 to max_deep_tokens
    double beta;      ///< inverse temperature
    double residual;  ///< c, 0 to 1e6, strength of the residual connections
};

/// Base class of the channels with several softmax layers. In each layer the outputs depend only on the K - 1
/// directions E of htilde (see posteriors/layer_mixing.hpp), so the posterior of E htilde gives everything:
///   g^l = E' [V^-1 (<E htilde> - E omega)]_l,  sum over pairs of -dg/domega = (K-1) V^-1 - V^-1 <Cov> V^-1.
/// score_power() averages the second form: its samples scatter 2 to 10 times less than the samples of g g'.
class LayeredChannel : public Channel {
  public:
    std::string name() const override { return name_; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    int tokens() const override { return model_.tokens; }
    int layers() const override { return model_.layers; }
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override;

    /// Posterior of each sample's indices, with the error of its integral and the effective sample number.
    std::vector<LayerMoments> posterior(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                        const Overlap& variance) const;

    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override;
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override;
    /// relative_error: the largest standard error of a layer's F, with the mean error of the integrals.
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override;
    bool fast_slope() const override { return true; }
    /// log Z is not normalised: the constants of the integrals are left out.
    bool knows_log_z() const override { return false; }
    /// As the errors vanish, the other layers are known and y fixes the last one up to its constant.
    std::optional<int> observed_combinations() const override { return pairs() - 1; }

  protected:
    /// Checks the model; messages begin with the name of the channel.
    LayeredChannel(std::string name, const LayeredModel& model, double largest_beta);

    const LayeredModel& model() const { return model_; }
    double slope_step() const override { return 0.05; }

    /// The T x T outputs, given H_L and B^{L-1}.
    virtual TokenMatrix output(const TokenMatrix& logits, const TokenMatrix& mixing) const = 0;
    /// The posterior given one sample's T^2 outputs; omega in the coordinates that count.
    virtual LayerMoments posterior_of(const double* output, const Eigen::VectorXd& omega,
                                      const Overlap& variance) const = 0;

  private:
    /// E omega^l of one sample, layer by layer.
    Eigen::VectorXd coordinates(const ConstRowsRef& omega, Eigen::Index row) const;
    void write_scores(const std::vector<LayerMoments>& moments, const ConstRowsRef& omega,
                      const Overlap& precision, RowsRef g) const;

    std::string name_;
    LayeredModel model_;
    Eigen::MatrixXd directions_;  // E
};

}  // namespace bayesaim::channels
