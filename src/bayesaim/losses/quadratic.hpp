// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/losses/loss.hpp"

namespace bayesaim::losses {

/// Losses that are quadratic in the residual e = target - h, a symmetric T x T matrix:
///   square     (1/2) sum_ab e_ab^2,                 target y of the linear channel
///   logit      (1/2) sum_ab (e_ab - mean e)^2,      target the logits of softmax outputs
///   row-logit  (1/2) sum_ab (e_ab - row mean_a)^2,  the same target
/// e = e0 + (r_a + r_b) + mean with rows of e0, and r, that sum to 0, is an orthogonal decomposition into
/// T(T-1)/2, T-1 and 1 dimensions of htilde, and all three losses are diagonal in it, with the weights
/// (1, 1, 1), (1, 1, 0) and (1, 1/2, 0). A weight w gives g = w e/(1 + w V) in its part.
class Quadratic final : public Loss {
  public:
    enum class Kind { square, logit, row_logit };
    /// beta of the softmax; label_noise is that of the teacher, for means() only.
    Quadratic(Kind kind, int tokens, double beta, double label_noise);

    std::string name() const override;
    channels::Geometry geometry() const override { return {channels::Attention::tied, tokens_, tokens_}; }
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override;
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override;
    ProximalMeans means(const Alignment& at, double variance, const Integration& integration) const override;
    std::optional<SquareForm> square_form() const override;
    double generalization(const Alignment& at, const Integration& integration) const override;

  private:
    struct Part {
        double dimension, weight;
    };
    double slope(double variance) const;

    Kind kind_;
    int tokens_;
    double beta_, label_noise_;
    Part parts_[3];
};

}  // namespace bayesaim::losses
