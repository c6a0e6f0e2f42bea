// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/theory/state_evolution.hpp"

/// The methods behind solve_state_evolution, which checks their arguments.
namespace bayesaim::theory {

/// The order parameters with this error.
OrderParameters parameters_at(const EstimationCurve& prior, const Overlap& error);

FixedPoint exact_recovery(const EstimationCurve& prior, int iterations);

/// One iteration of state evolution.
struct Iterate {
    Overlap error, conjugate;
    double relative_error = 0, roughness = 0;  ///< of qhat; see channels::ScorePower
};
Iterate iterate(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                const Overlap& error, const channels::Integration& integration);

/// For a channel with m exact observations: mmse(D)/D = v alpha m, decreasing in D from recovery_ratio() to
/// 0, by inverse interpolation in log D inside a bracket. The fixed point is unique.
FixedPoint solve_bracketed(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                           const StateEvolutionOptions& options);

/// Follows the monotone map E -> mmse(1/qhat(E)) in x = log E from one side to the first fixed point. The
/// residual r(x) = log mmse - x keeps its sign on the way. The secant rule lengthens the steps; if it
/// oversteps, the root is bracketed.
FixedPoint solve_monotone(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                          Start start, const StateEvolutionOptions& options);

/// solve_parts if it has an answer. Otherwise follows the iteration of L x L matrices with one in sixteen of the
/// integration points, then takes a few Newton steps with all of them and the derivative found there. Above the
/// strong-recovery threshold an error that has fallen below 1e-7 of the prior's is exact recovery. relative_error
/// combines the sampling error of Tr C with covariance_error.
FixedPoint solve_newton(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                        Start start, const StateEvolutionOptions& options);

/// For two parts of S and a channel that is not sampled: Newton's method in (log E_s, log E_a) from the start, with the
/// derivative of the closed form at each step. std::nullopt if it finds no fixed point that the iteration would find
/// too, a stable one; above strong recovery; and for other models.
/// Pinned by: SelfAttention.NewtonFindsThePlainIteration.
std::optional<FixedPoint> solve_parts(const EstimationCurve& prior, const channels::Channel& channel,
                                      double alpha, Start start, const StateEvolutionOptions& options);

}  // namespace bayesaim::theory
