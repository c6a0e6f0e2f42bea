// SPDX-License-Identifier: MIT
#pragma once
#include <memory>

#include "bayesaim/channels/channel.hpp"

namespace bayesaim::channels {

/// Softmax or linear outputs of tokens whose lengths differ much: AMP then works on tokens of one length, z_a = x_a/sqrt(s_a)
/// with s_a = |x_a|^2/d, and this channel knows the s_a. With sigma_ab = sqrt(s_a s_b) and kappa1 = tr S,
///   h_ab = sigma_ab h_ab(z) + delta_ab (s_a - 1) kappa1 sqrt(d),
/// so that with u_ab = tau_ab/sigma_ab the outputs show u_ab (h_ab - offset_aa) = htilde_ab(z), and r = that - omega:
///   linear   g = r/(V + u^2 D),
///   softmax  g = (r - u (u . r)/(u . u))/V, over all pairs (tied attention) or over each row.
/// Tied, cross and masked attention. The outputs have more columns than those of the channel inside: the s_a of the
/// tokens, then, in cross-attention, those of the keys. For fits, not for theory.
class UnequalLengths final : public Channel {
  public:
    /// `inside` is a softmax or linear channel; `trace` is kappa1 sqrt(d).
    UnequalLengths(std::shared_ptr<const Channel> inside, double trace);
    /// Whether such outputs can be handled.
    static bool handles(const Channel& inside);

    std::string name() const override { return inside_->name(); }
    std::vector<std::pair<std::string, double>> parameters() const override { return inside_->parameters(); }
    int tokens() const override { return inside_->tokens(); }
    Geometry geometry() const override { return inside_->geometry(); }
    bool logarithmic_outputs() const override { return inside_->logarithmic_outputs(); }
    bool fast_slope() const override { return true; }
    std::optional<SmoothOutput> smooth_output() const override { return inside_->smooth_output(); }
    std::optional<int> exact_observations() const override { return inside_->exact_observations(); }
    /// Not available: nothing draws such outputs.
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override;
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override;
    Eigen::MatrixXd score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                const Overlap& variance) const override;
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override;

  private:
    Eigen::VectorXd scales(const ConstRowsRef& outputs, Eigen::Index sample) const;  // u

    std::shared_ptr<const Channel> inside_;
    double trace_, noise_ = 0, beta_ = 1;
    bool softmax_;
    std::vector<std::pair<int, int>> pairs_;   // tokens of each pair
    std::vector<std::pair<int, int>> groups_;  // softmax: first pair and number of pairs that share a shift
};

}  // namespace bayesaim::channels
