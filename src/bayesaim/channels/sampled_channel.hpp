// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/channel.hpp"

namespace bayesaim::channels {

/// A channel that knows how to draw y and how to score it; the rest is quasi-Monte Carlo over
///   omega ~ N(0, 2q),  htilde ~ N(omega, V),  y ~ P(y | htilde):
///   score_power     E sum g^2
///   information     E log Z, if score() gives log Z
///   predict         E[y], the mean of draw() over htilde
///   generalization  E ||g(htilde) - g(htilde')||^2 / 2 of two htilde that share omega, and for the plug-in
///   rule
///                   E ||g(omega) - g(htilde)||^2, where g = predict(., V = 0)
/// These are starting points: 1e-2 to 1e-3 of the value, `relative_error` says how good. Draws are cheap: 16
/// points for each one of `integration`. A channel with label noise must bring its own predict().
/// Pinned by: SampledChannel.AgreesWithTheClosedForm.
class SampledChannel : public Channel {
  public:
    bool sampled() const override { return true; }

    /// Whether score() fills log_z with the logarithm of a normalised probability.
    virtual bool knows_log_z() const { return true; }

    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override;
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override;
    std::optional<double> information(const OrderParameters& parameters,
                                      const Integration& integration) const override;
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

  private:
    struct Sample;
    template <class Function>
    auto average(const OrderParameters& parameters, const Integration& integration, Function f) const;
};

}  // namespace bayesaim::channels
