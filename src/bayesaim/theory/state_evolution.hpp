// SPDX-License-Identifier: MIT
#pragma once
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/core/outcome.hpp"
#include "bayesaim/theory/estimation_curve.hpp"

namespace bayesaim::theory {

using channels::OrderParameters;
using linalg::Overlap;

struct StateEvolutionOptions {
    double tolerance = 1e-12;  ///< relative change of the error in one iteration
    /// The same for channels whose expectations are sampled: far below their sampling error.
    double sampled_tolerance = 1e-6;
    int max_iterations = 1000;
    channels::Integration integration;
};

/// Where the iteration begins: without data (what an algorithm can do), or next to the truth (what exists at
/// all).
enum class Start { uninformed, informed };

/// A fixed point of  E = mmse(1/qhat),  qhat = 4 alpha F(Q - E).
struct FixedPoint {
    OrderParameters parameters;  ///< overlap q and error E = Q - q
    Overlap conjugate;           ///< qhat; infinite at exact recovery
    double relative_error = 0;   ///< standard error of E due to sampled expectations, divided by E
    int iterations = 0;
    Termination status = Termination::converged;

    double error() const { return parameters.error.trace(); }  ///< estimation error Tr(Q - q)
    double scalar_conjugate() const { return conjugate(0, 0); }
};

/// The fixed point reached from one side. Channels with exact observations (linear without noise, softmax)
/// have one only, the root of mmse(D)/D = 2 alpha m, which is bracketed; error zero past the strong-recovery
/// threshold. For others the monotone iteration is followed, accelerated by the secant rule.
FixedPoint solve_state_evolution(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                                 Start start, const StateEvolutionOptions& options = {});

/// Of a new sample, at the fixed point; zero at exact recovery.
channels::GeneralizationError generalization_error(const FixedPoint& point, const channels::Channel& channel,
                                                   const channels::Integration& integration = {});

/// The iterates from the first (no data, or error 1e-6 of the prior's when informed) on: what AMP follows.
std::vector<OrderParameters> state_evolution_trajectory(const EstimationCurve& prior,
                                                        const channels::Channel& channel, double alpha,
                                                        int iterations, Start start,
                                                        const StateEvolutionOptions& options = {});

/// The error of each informed start, relative to the prior's.
inline constexpr double informed_error = 1e-6;

}  // namespace bayesaim::theory
