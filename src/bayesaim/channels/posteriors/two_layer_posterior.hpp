// SPDX-License-Identifier: MIT
#pragma once
#include <Eigen/Core>

#include "bayesaim/channels/posteriors/layer_mixing.hpp"
#include "bayesaim/channels/posteriors/zoomed_rule.hpp"

/// Posteriors of the indices of two layers of two tokens, in the coordinates that count,
///   p = (h11 - h22)/sqrt(2),   r = (h11 - 2 h12 + h22)/2        (the two rows of informed_directions(2)).
/// Before y: h^l ~ N(omega^l, V), and omega is (p, r) of layer 1, then of layer 2.
/// In layer 1, with u_1 = h12 - h11 = -p/sqrt(2) - r, u_2 = h12 - h22 = p/sqrt(2) - r and s the logistic
/// function, a = s(beta u_1) and b = s(beta u_2) are the attention of each token to the other;
/// det B = (c+1) delta, delta = c + 1 - a - b.
namespace bayesaim::channels {

/// Given y = softmax_beta(H_2), m_a = log(y_ab/y_aa)/beta. Layer 2 follows from layer 1,
///   u_1 = [m_1 (c+1-b) + m_2 a]/((c+1) delta^2),   u_2 = [m_1 b + m_2 (c+1-a)]/((c+1) delta^2),
/// and with z = (h^1 - omega^1)/sqrt(V_11), k = V_12/V_11
///   Z = int dz N(z) N(h^2; omega^2 + k (h^1 - omega^1), V_22 - k V_12) |delta|^-3,
/// by ZoomedRule over |z| <= 7.5. Both logistic functions are products of functions of p and of r: no
/// exponential per node. For c < 1 the curve delta = 0, r = r0(p), cuts the plane; next to it the integrand
/// falls like exp(-const/delta^4). Each side is integrated on its own with r = r0(p) +- sqrt(V_11)
/// log(1+e^t). Pinned by: TwoLayerPosterior.*.
LayerMoments attention_posterior(const Eigen::Vector2d& m, const Eigen::Vector4d& omega,
                                 const linalg::Overlap& variance, double beta, double residual,
                                 const ZoomOptions& options = {});

/// Given the read-out of seq2seq, Y = softmax_beta(H_2) B, mu = (Y_12, Y_21). The attention of layer 2 is
/// A_12 = (mu_1 - a)/delta, A_21 = (mu_2 - b)/delta. For delta > 0 both lie between 0 and 1 if
/// a < min(mu_1, c+1-mu_2) and b < min(mu_2, c+1-mu_1); for delta < 0 a and b must exceed the maxima instead.
/// This rectangle is mapped to the plane by u = end -+ log(1 + e^t). The odds
/// A_12/(1 - A_12) = (mu_1 - a)/(c+1-mu_1-b) are ratios of functions of a and of b. Layer 2 follows as above
/// from m = logit/beta,
///   Z = int dz N(z) N(h^2; ..) |delta|^-5 / [sqrt(2) (c+1) beta^2 A_12 (1 - A_12) A_21 (1 - A_21)].
/// Pinned by: SequencePosterior.*.
LayerMoments sequence_posterior(const Eigen::Vector2d& mu, const Eigen::Vector4d& omega,
                                const linalg::Overlap& variance, double beta, double residual,
                                const ZoomOptions& options = {});

}  // namespace bayesaim::channels
