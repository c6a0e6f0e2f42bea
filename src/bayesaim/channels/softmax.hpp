// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/channel.hpp"

namespace bayesaim::channels {

/// Throws InvalidArgument unless a softmax can have this inverse temperature.
void check_softmax_beta(double beta);

/// y = softmax_beta(h) row by row; outputs are log y, which does not underflow. T >= 2, 0 < beta < infinity.
///
/// y fixes h up to one scalar x: with phi_ab = log(y_ab / y_aT) / beta, h_ab = m_ab + x, m_ab = phi_ab +
/// phi_Ta. So the residual r = tau m - omega counts orthogonally to tau (|tau|^2 = T^2), for every beta:
///   g = (r - tau (tau . r) / T^2) / V.
class Softmax final : public Channel {
  public:
    explicit Softmax(int tokens, double beta = 1);

    std::string name() const override { return "softmax"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    int tokens() const override { return tokens_; }
    bool logarithmic_outputs() const override { return true; }
    bool sampled() const override { return false; }
    bool fast_slope() const override { return true; }
    std::optional<SmoothOutput> smooth_output() const override { return SmoothOutput{true, beta_}; }
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override;
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override;
    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override;
    Eigen::MatrixXd score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                const Overlap& variance) const override;
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override;
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override;
    std::optional<double> information(const OrderParameters& parameters,
                                      const Integration& integration) const override;
    std::optional<int> exact_observations() const override { return pairs() - 1; }
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

  private:
    int tokens_;
    double beta_;
    Eigen::VectorXd scale_;  // tau
};

}  // namespace bayesaim::channels
