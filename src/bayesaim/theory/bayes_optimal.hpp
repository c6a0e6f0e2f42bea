// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "bayesaim/core/record.hpp"
#include "bayesaim/theory/state_evolution.hpp"

namespace bayesaim::theory {

/// Both fixed points at one alpha. If they differ, the one of larger free entropy is Bayes-optimal. The
/// informed side is not solved if the fixed point is unique, nor if expectations are sampled (no such channel
/// is known to have a gap, and it would double the time).
struct BayesOptimal {
    FixedPoint uninformed;  ///< reached by polynomial algorithms such as AMP
    FixedPoint informed;
    bool differ = false;  ///< a statistical-to-computational gap
    bool informed_wins = false;
    const FixedPoint& optimal() const { return informed_wins ? informed : uninformed; }
};
BayesOptimal solve_bayes_optimal(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                                 const StateEvolutionOptions& options = {});

/// The generalisation error at a fixed point. Its sampling error includes what the sampling error of C makes
/// of it: its change if C is one standard error larger.
channels::GeneralizationError generalization_error(const EstimationCurve& prior, const FixedPoint& at,
                                                   const channels::Channel& channel,
                                                   const channels::Integration& integration = {});

/// All results of the theory at one alpha.
struct TheoryPoint {
    double alpha = 0;
    FixedPoint fixed_point;        ///< the Bayes-optimal one
    double algorithmic_error = 0;  ///< of the fixed point that an algorithm reaches
    channels::GeneralizationError generalization;
    /// The theory is an approximation, whose error is estimated in FixedPoint::relative_error.
    bool approximate = false;
};
TheoryPoint solve_theory(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                         const StateEvolutionOptions& options = {});

/// A curve. Points are independent and are solved in parallel, unless the expectations inside a point are
/// sampled: these then share the threads. `progress` receives the finished fraction. If it returns false, or the
/// pool stops (ThreadPool::stop_when), the curve stops, and only the points before the first missing one are
/// returned.
std::vector<TheoryPoint> solve_curve(const EstimationCurve& prior, const channels::Channel& channel,
                                     std::span<const double> alphas, StateEvolutionOptions options,
                                     ThreadPool& pool, const std::function<bool(double)>& progress = {});

/// The named values of a point in the program, studies, figures and Python: alpha, estimation_error,
/// standard_error, overlap, conjugate_overlap, generalization_error, generalization_standard_error,
/// plugin_generalization_error, algorithmic_error, iterations, status. For several layers matrices are nested
/// lists, and layer_errors (the diagonal of C) and error_matrix (C) are added.
Record values(const TheoryPoint& point);

/// The values of an iterate: estimation_error, and for several layers layer_errors and error_matrix.
Record values(const OrderParameters& parameters);

}  // namespace bayesaim::theory
