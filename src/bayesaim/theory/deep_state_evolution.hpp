// SPDX-License-Identifier: MIT
#pragma once
#include <vector>

#include "bayesaim/denoisers/joint.hpp"
#include "bayesaim/theory/state_evolution.hpp"

/// State evolution of several layers. With C = Q - q, which without data is diagonal (the Q_lk = kappa1_l
/// kappa1_k between layers are known beforehand),
///   qhat = 4 alpha F(q, C),   C = cavity_covariance(qhat).
/// One prior law per layer, so widths may differ.
namespace bayesaim::theory {

using denoisers::Laws;

/// The order parameters with error C: q = kappa1 kappa1' + diag(Var) - C.
OrderParameters deep_parameters(Laws laws, const Overlap& error);

/// The fixed point reached from one side. F is averaged over the same points in every iteration
/// (options.integration): the iteration is followed with one in sixteen of them, then all of them enter a few
/// Newton steps with the derivative found there. relative_error is what the average leaves of Tr C. Above the
/// strong-recovery threshold an error that has fallen below 1e-7 of the prior's is exact recovery. One layer
/// is solve_state_evolution. Pinned by: DeepStateEvolution.*.
FixedPoint solve_deep_state_evolution(Laws laws, const channels::Channel& channel, double alpha, Start start,
                                      const StateEvolutionOptions& options = {});

/// The iterates from the first on: what AMP follows.
std::vector<OrderParameters> deep_state_evolution_trajectory(Laws laws, const channels::Channel& channel,
                                                             double alpha, int iterations, Start start,
                                                             const StateEvolutionOptions& options = {});

/// Strong recovery of deep softmax attention. As C -> 0 the outputs fix K - 1 combinations of each sample,
/// Tr(V F) -> K - 1, while the priors give Tr(C qhat) -> sum_l (1 - sum of squared atom weights): so
///   alpha = sum_l recovery_ratio_l / (2 (K - 1)),   L (rho - rho^2/2)/(K - 1) for equal widths rho < 1.
double deep_strong_recovery(Laws laws, const channels::Channel& channel);

/// Tr C_{t+1} / Tr C_t of state evolution next to the truth, the shape of C being that which the iteration
/// settles on: 1 at the threshold, and by the law above threshold/alpha.
double recovery_growth_rate(Laws laws, const channels::Channel& channel, double alpha,
                            const channels::Integration& integration = {});

}  // namespace bayesaim::theory
