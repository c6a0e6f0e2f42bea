// SPDX-License-Identifier: MIT
#pragma once
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/channels/posteriors/layer_posterior.hpp"

namespace bayesaim::channels {

/// What channels of several softmax layers have in common. Only the K - 1 directions E of htilde count in
/// each layer (see posteriors/layer_mixing.hpp); everything follows from the posterior of E htilde:
///   g^l = E' [V^-1 (<E htilde> - E omega)]_l,  sum over pairs of -dg/domega = (K-1) V^-1 - V^-1 <Cov> V^-1.
/// State evolution takes F from the second form: its samples scatter 2 to 10 times less than those of g g'.
class LayeredChannel : public Channel {
  public:
    /// Posterior of each sample's indices, with the error of its integral and the effective number of
    /// samples.
    virtual std::vector<LayerMoments> posterior(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                                const Overlap& variance) const = 0;

    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override;
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override;
    /// Averages over Sobol points.
    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override;
    /// relative_error: the largest standard error of a layer's F, with the mean error of the integrals.
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override;
    std::optional<double> information(const OrderParameters&, const Integration&) const override {
        return std::nullopt;
    }
    bool sampled() const override { return true; }
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

  protected:
    explicit LayeredChannel(int tokens) : directions_(informed_directions(tokens)) {}

    /// E omega^l of one sample, layer by layer.
    Eigen::VectorXd coordinates(const ConstRowsRef& omega, Eigen::Index row) const;

    double slope_step() const override { return 0.05; }

  private:
    void write_scores(const std::vector<LayerMoments>& moments, const ConstRowsRef& omega,
                      const Overlap& precision, RowsRef g) const;

    Eigen::MatrixXd directions_;  // E
};

}  // namespace bayesaim::channels
