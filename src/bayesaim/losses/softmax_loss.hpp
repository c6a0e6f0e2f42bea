// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/losses/loss.hpp"

namespace bayesaim::losses {

/// Losses of softmax outputs p = softmax(beta h), row by row:
///   cross-entropy  sum_a KL(y_a || p_a), that is cross-entropy minus the entropy of y
///   square         (1/2) sum_ab (y_ab - p_ab)^2; not convex: the step of two tokens is the global minimum, that of
///                  more the best of three starts
/// The step is Newton's. With the Hessian H of ell in htilde at z,
///   -dg/domega = H (I + V H)^{-1},   dg/dhtilde* = (I + V H)^{-1} H*,
/// H* = -d grad ell/dhtilde* through y. For two tokens everything happens in u_a = h_aa - h_12, where
/// u = B htilde, B B' = G = [[3/2, 1/2], [1/2, 3/2]], and H = B' diag(l'') B.
///
/// means(): two tokens by quadrature (two_token_means.hpp); more tokens (cross-entropy only) by shifted Sobol points.
class SoftmaxLoss final : public Loss {
  public:
    enum class Kind { cross_entropy, square };
    SoftmaxLoss(Kind kind, int tokens, double beta);

    std::string name() const override;
    channels::Geometry geometry() const override { return {channels::Attention::tied, tokens_, tokens_}; }
    bool convex() const override { return kind_ == Kind::cross_entropy; }
    bool sampled() const override { return tokens_ > 2; }
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override;
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override;
    ProximalMeans means(const Alignment& at, double variance, const Integration& integration) const override;
    double generalization(const Alignment& at, const Integration& integration) const override;

  private:
    template <class Each>
    void steps(const ConstRowsRef& outputs, const ConstRowsRef& omega, double variance, RowsRef g,
               Each each) const;

    Kind kind_;
    int tokens_;
    double beta_;
};

}  // namespace bayesaim::losses
