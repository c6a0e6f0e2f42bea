// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/core/outcome.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/denoisers/joint.hpp"
#include "bayesaim/estimators/prediction.hpp"

namespace bayesaim::estimators {

using linalg::Overlap;

/// One iteration, as it goes into the record.
struct DeepAmpIteration {
    int iteration = 0;
    Overlap self_overlap;                 ///< Tr(Shat_l Shat_k)/d; Q - predicted_error where all is well
    Overlap predicted_error;              ///< C
    Overlap noise_covariance;             ///< Delta of R
    double change = 0;                    ///< sum over layers of ||Shat - previous||^2 / d
    std::optional<Overlap> true_error{};  ///< where the caller can measure it
    double seconds = 0;
};

struct DeepAmpOptions {
    int max_iterations = 60;
    double tolerance = 1e-5;  ///< stop when the change is below this times Tr C
    double damping = 0.4;     ///< weight of the previous g
    denoisers::JointOptions denoiser{.linear_outside_support = true};
    /// Measures the estimates (when the truth is known); goes into the record and nowhere else.
    std::function<Overlap(const std::vector<linalg::Matrix>&)> measure{};
    /// Told of each iteration; false stops the run.
    std::function<bool(const DeepAmpIteration&)> progress{};
};

struct DeepAmpResult {
    std::vector<linalg::Matrix> estimates;  ///< Shat_l; those of the most consistent iterate if it diverged
    Overlap predicted_error;                ///< C
    Termination status = Termination::iteration_limit;
    std::vector<DeepAmpIteration> record;
};

/// Approximate message passing for y = g(h^1 .. h^L), any channel. From Shat_l = kappa1_l I, C = diag(Var),
///   omega = htilde(Shat) - O g,  V = 2 C                                   (no g at first)
///   g = damped g_out(y, omega, V),  A = (4/d^2) sum -dg_out/domega damped alike
///   R_l = Shat_l + sum_m (A^-1)_lm (2/d) sum g^m_ab Z_ab
///   Delta = A^-1 [(4/d^2) sum g g'] A^-1,  Shat, C from denoise_jointly,  O = 2 C Delta^-1 A^-1
/// On data from the model A = (4/d^2) sum g g' = Delta^-1 and O = V. At finite d they differ, and the
/// sandwich Delta is the variance that R does have. Without damping runs on tokens drift or explode. The same
/// bits for any number of threads. Pinned by: DeepAmp.*.
DeepAmpResult run_deep_amp(const data::Dataset& data, denoisers::Laws priors,
                           const channels::Channel& channel, const DeepAmpOptions& options, ThreadPool& pool);

/// Predicted outputs of new samples, from estimates of every layer and their error C.
Prediction predict_deep(const data::TokenSource& tokens, std::span<const linalg::Matrix> estimates,
                        const Overlap& error, const channels::Channel& channel, ThreadPool& pool);

}  // namespace bayesaim::estimators
