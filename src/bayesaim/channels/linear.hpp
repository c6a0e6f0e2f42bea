// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/channel.hpp"

namespace bayesaim::channels {

/// y_ab = h_ab + sqrt(label_noise) z_ab, z symmetric with N(0, 1) entries.
///   g_ab = (tau_ab y_ab - omega_ab) / (V + tau_ab^2 label_noise)
class Linear final : public Channel {
  public:
    explicit Linear(int tokens, double label_noise = 0);

    std::string name() const override { return "linear"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    int tokens() const override { return tokens_; }
    bool sampled() const override { return false; }
    bool fast_slope() const override { return true; }
    std::optional<SmoothOutput> smooth_output() const override { return SmoothOutput{}; }
    /// Outputs are symmetric.
    void check_outputs(const ConstRowsRef& outputs) const override;
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
    std::optional<int> exact_observations() const override;
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override;

  private:
    Eigen::VectorXd observation_variance(double variance) const;  // V + tau^2 label_noise

    int tokens_;
    double label_noise_;
    Eigen::VectorXd scale_;  // tau
};

}  // namespace bayesaim::channels
