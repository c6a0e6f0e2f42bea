// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/core/outcome.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::estimators {

/// One iteration, as it goes into the record.
struct AmpIteration {
    int iteration = 0;
    double self_overlap = 0;             ///< ||Shat||^2 / d; Q - predicted_error where all is well
    double predicted_error = 0;          ///< C = mmse(1/qhat)
    double conjugate = 0;                ///< qhat
    double change = 0;                   ///< ||Shat - previous||^2 / d
    std::optional<double> true_error{};  ///< where the caller can measure it
    double seconds = 0;
};

struct AmpOptions {
    int max_iterations = 200;
    double tolerance = 1e-6;             ///< stop when the change is below this times the predicted error
    double damping = 0.5;                ///< weight of the previous omega and V
    bool adaptive_damping = false;       ///< more damping while the change grows, less while it falls
    bool linear_outside_support = true;  ///< see DenoiseOptions
    /// Start: Shat = kappa1 I unless given, with C = kappa2 - kappa1^2 unless given.
    std::optional<linalg::Matrix> initial_estimate{};
    std::optional<double> initial_error{};
    /// Measures an estimate (when the truth is known); its value goes into the record and nowhere else.
    std::function<double(const linalg::Matrix&)> measure{};
    /// Told of each iteration; false stops the run.
    std::function<bool(const AmpIteration&)> progress{};
};

struct AmpResult {
    linalg::Matrix estimate;     ///< the last iterate; the most consistent one if the run diverged
    double predicted_error = 0;  ///< of that estimate, C
    Termination status = Termination::iteration_limit;
    std::vector<AmpIteration> record;
};

/// Approximate message passing for y = g(h), h from one weight matrix S with a rotationally invariant prior.
/// From Shat = kappa1 I, C = kappa2 - kappa1^2, V = 2 C:
///   omega = tau (x_a' Shat x_b - delta_ab Tr Shat)/sqrt(d) - V g         (no g at first)
///   omega, V damped with the previous ones
///   g = g_out(y, omega, V),  qhat = (4/d^2) sum g^2
///   R = Shat + 2/(d qhat) sum g_ab Z_ab,  Shat = denoise(R, D = 1/qhat),  C = mmse(D)
/// Matrix-free: two products with the tokens and one eigendecomposition per iteration. The same bits for any
/// number of threads and for stored and regenerated tokens.
AmpResult run_amp(const data::Dataset& data, const spectral::SpectralLaw& prior,
                  const channels::Channel& channel, const AmpOptions& options, ThreadPool& pool);

}  // namespace bayesaim::estimators
