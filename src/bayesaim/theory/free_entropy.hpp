// SPDX-License-Identifier: MIT
#pragma once
#include <optional>

#include "bayesaim/theory/state_evolution.hpp"

namespace bayesaim::theory {

/// Free entropy of a fixed point, per d^2, up to a constant that is the same for all fixed points at one
/// alpha:
///   -Tr(q qhat)/4 + I_in(qhat) + alpha I_out(q).
/// Nothing where the channel does not know I_out; infinite at exact recovery.
std::optional<double> free_entropy(const EstimationCurve& prior, const channels::Channel& channel,
                                   double alpha, const FixedPoint& point,
                                   const StateEvolutionOptions& options = {});

/// Both fixed points at one alpha, and the Bayes-optimal one: that of larger free entropy where they differ.
/// For a channel whose expectations are sampled the informed side is not solved (no gap is known there, and
/// it would double the time).
struct BayesOptimal {
    FixedPoint uninformed;  ///< what a polynomial algorithm such as AMP reaches
    FixedPoint informed;
    bool differ = false;  ///< a statistical-to-computational gap
    bool informed_wins = false;
    const FixedPoint& optimal() const { return informed_wins ? informed : uninformed; }
};
BayesOptimal solve_bayes_optimal(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                                 const StateEvolutionOptions& options = {});

/// A first-order transition: between the spinodals two fixed points exist; the free entropy changes its
/// favourite at the information-theoretic threshold; an algorithm follows only from the upper spinodal on.
struct FirstOrderTransition {
    double appears = 0;                ///< lower spinodal: the informed fixed point comes into being
    double information_theoretic = 0;  ///< it becomes the optimal one
    double algorithmic = 0;            ///< upper spinodal: the uninformed one disappears
};

/// Looks for a first-order transition in [lowest, highest] on `scan` logarithmic steps and closes in by
/// bisection to the relative tolerance. Nothing if the fixed points agree at every step.
std::optional<FirstOrderTransition> find_first_order_transition(const EstimationCurve& prior,
                                                                const channels::Channel& channel,
                                                                double lowest, double highest, int scan = 24,
                                                                double tolerance = 1e-8,
                                                                const StateEvolutionOptions& options = {});

}  // namespace bayesaim::theory
