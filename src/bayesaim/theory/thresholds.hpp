// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <optional>

#include "bayesaim/theory/bayes_optimal.hpp"

namespace bayesaim::theory {

/// Weak recovery at small width, in alpha/rho: below it data do not reduce the error. With Q = 1, one layer,
///   1 / (v^2 F(q = 0)).
double weak_recovery_scaled(const channels::Channel& channel, const channels::Integration& integration = {});

/// Strong recovery: the alpha from which the error is exactly zero. As C -> 0 the outputs fix m combinations
/// of each sample, Tr(V F) -> m, while the priors give Tr(C qhat) -> recovery_ratio; so
///   alpha = recovery_ratio / (v m).
/// Returns std::nullopt for channels without m. recovery_ratio = 2 rho - rho^2 (1 for rho >= 1) for each
/// layer of tied attention: alpha = 2/(T^2+T-2) (rho - rho^2/2) for softmax, L times as much for L layers of
/// equal width; (2 rho - rho^2)/(T (T - 1)) for untied softmax.
std::optional<double> strong_recovery(const EstimationCurve& prior, const channels::Channel& channel);

/// A first-order transition. Two fixed points exist between the spinodals. Their free entropies are equal at
/// the information-theoretic threshold. An algorithm finds the better one only above the upper spinodal.
struct FirstOrderTransition {
    double appears = 0;                ///< lower spinodal: the informed fixed point appears
    double information_theoretic = 0;  ///< the informed fixed point becomes optimal
    double algorithmic = 0;            ///< upper spinodal: the uninformed fixed point disappears
};

/// The search for a first-order transition: `steps` logarithmic steps, then bisection.
struct TransitionSearch {
    double lowest = 0.01, highest = 10;
    int steps = 24;
    double tolerance = 1e-8;  ///< relative
    /// Receives the finished fraction of the steps; returns false to stop the search without a result.
    std::function<bool(double)> progress{};
};

/// Returns std::nullopt if both fixed points agree at every step, or if the search was stopped.
std::optional<FirstOrderTransition> find_first_order_transition(const EstimationCurve& prior,
                                                                const channels::Channel& channel,
                                                                const TransitionSearch& search = {},
                                                                const StateEvolutionOptions& options = {});

/// The thresholds of learning; std::nullopt for a threshold that does not exist.
struct Thresholds {
    std::optional<double> weak_recovery_scaled;   ///< in alpha/width at small width; one layer
    std::optional<double> strong_recovery;        ///< the error is zero from here on
    std::optional<double> information_theoretic;  ///< where the optimal error vanishes or jumps
    std::optional<double> algorithmic;            ///< where the error of algorithms vanishes or jumps
    std::optional<double> appears;                ///< lower spinodal of a first-order transition
};

/// All thresholds. With strong recovery the error vanishes continuously, so optimum and algorithm have that
/// threshold. Otherwise searches for a first-order transition, unless expectations are sampled: too slow.
Thresholds find_thresholds(const EstimationCurve& prior, const channels::Channel& channel,
                           const TransitionSearch& search = {}, const StateEvolutionOptions& options = {});

}  // namespace bayesaim::theory
