// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/core/outcome.hpp"
#include "bayesaim/core/record.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/estimators/learning.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::data {
struct SavedState;
}

/// Approximate message passing, for any number of layers:
///
///   const priors::Wishart prior(0.5);
///   const channels::Softmax channel(2);
///   ThreadPool pool(0);  // one thread per core
///   const auto problem = data::make_synthetic(prior, channel, {.dim = 100, .alpha = 0.1}, pool);
///   const auto result = estimators::run_amp(problem.data, prior.law(), channel, {}, pool);
///   data::estimation_error(result.estimates[0], problem.weights[0]);  // close to result.predicted_error
namespace bayesaim::estimators {

using linalg::Overlap;
using spectral::Laws;

/// Where the gain A of R comes from. On data from the model both have the same mean.
enum class Response {
    power,  ///< A = (v/d)^2 sum g g', v = 2 for tied attention, otherwise 1 (channels::Geometry)
    slope,  ///< A = (v/d)^2 sum -dg/domega. Right at few samples too, and for a wrong prior
    /// The slope for several layers, and for one layer if the channel's slope is fast and S is not symmetric or alpha d < 4;
    /// otherwise the power.
    automatic,
};
/// From its name. Throws InvalidArgument with the argument's `name` in the message.
Response parse_response(std::string_view name, std::string_view text);
std::string_view to_string(Response response);

/// One iteration, as it goes into the record. Matrices between layers are 1 x 1 for one layer.
struct AmpIteration {
    static constexpr bool one_row = true;
    int iteration = 0;
    Overlap self_overlap;                 ///< Tr(Shat_l Shat_k)/d; Q - predicted_error for a posterior mean
    Overlap predicted_error;              ///< C
    Overlap conjugate;                    ///< qhat, the power of the score
    Overlap response;                     ///< A
    Overlap noise_covariance;             ///< D of R
    double change = 0;                    ///< sum over layers of ||Shat - previous||^2 / d
    std::optional<Overlap> true_error{};  ///< if the options have a measure
    double seconds = 0;
};

/// The parts of a record that is saved; see data/saved_state.hpp.
template <class Archive>
void visit(Archive& archive, AmpIteration& now) {
    archive("iteration", now.iteration);
    archive("self_overlap", now.self_overlap);
    archive("predicted_error", now.predicted_error);
    archive("conjugate", now.conjugate);
    archive("response", now.response);
    archive("noise_covariance", now.noise_covariance);
    archive("change", now.change);
    archive("true_error", now.true_error);
    archive("seconds", now.seconds);
}

struct AmpOptions {
    int max_iterations = 200;
    double tolerance = 1e-6;        ///< stop when the change is below this times Tr C
    double damping = 0.5;           ///< weight of the previous omega and V
    bool adaptive_damping = false;  ///< more damping while the change grows, less while it falls
    Response response = Response::automatic;
    bool linear_outside_support = true;  ///< see DenoiseOptions
    /// Start: Shat_l = kappa1_l I unless estimates are given, C = diag(kappa2 - kappa1^2) unless given.
    std::vector<linalg::Matrix> initial_estimates{};
    std::optional<Overlap> initial_error{};
    Learning learning{};  ///< what is not known, and is learned; the response is then the slope
    /// Measures the estimates (if the truth is known); only the record uses its value.
    std::function<Overlap(std::span<const linalg::Matrix>)> measure{};
    /// Sees R of each component before it is denoised.
    std::function<void(std::span<const linalg::Matrix>)> observe{};
    /// Called after each iteration; returns false to stop the run.
    std::function<bool(const AmpIteration&)> progress{};
    /// Called on the first rank after every `save_stride` iterations, and before the run stops. A later run of the same
    /// data and options that resumes from what it gets has the same bits. Not with learning.
    std::function<void(const data::SavedState&)> save{};
    int save_stride = 10;
    std::shared_ptr<const data::SavedState> resume{};
};

struct AmpResult {
    /// Shat_l: the last iterate, or the most consistent one of a lost run.
    std::vector<linalg::Matrix> estimates;
    Overlap predicted_error;  ///< of these estimates, C
    Termination status = Termination::iteration_limit;
    std::vector<AmpIteration> record;
    std::vector<linalg::Matrix> noisy{};  ///< the last R, of each component
    // What was learned (AmpOptions::learning):
    std::shared_ptr<const spectral::SpectralLaw> law{};  ///< of S; null: the prior
    double label_noise = 0;
    data::LinearTerms terms{};
};

/// Approximate message passing for y = g(h^1 .. h^L), any channel, S_l with rotationally invariant priors.
/// From Shat_l = kappa1_l I, C = diag(kappa2 - kappa1^2), V = 2 C:
///   omega = htilde(Shat) - O g                                        (no g at first)
///   omega, V damped with the previous ones
///   g = g_out(y, omega, V),  qhat = (4/d^2) sum g g',  A = qhat or (4/d^2) sum -dg/domega (Response)
///   R_l = Shat_l + sum_m (A^-1)_lm (2/d) sum g^m_ab Z_ab,  D = A^-1 qhat A^-1
///   Shat, C = denoise(R, D) (one layer: rotation_invariant, several: joint),  O = 2 C D^-1 A^-1
/// On data from the model A = qhat = D^-1 and O = V for large d. At finite d they differ, and D is the actual
/// variance of R. If the outputs depend on one combination of layers only, as in y = sign(h^1 + h^2), qhat is
/// singular: the others get 1e-6 of the prior's precision. Joint denoisers are rough there unless the priors
/// are Gaussian or the data few; a run that they mislead does not converge. Matrix-free: for each layer two
/// products with the tokens and one eigendecomposition per iteration. Results have the same bits for any
/// number of threads and ranks and for stored and regenerated tokens. Pinned by: Amp.*, AmpOfSeveralLayers.*.
AmpResult run_amp(const data::Dataset& data, Laws priors, const channels::Channel& channel,
                  const AmpOptions& options, ThreadPool& pool);
/// One layer.
AmpResult run_amp(const data::Dataset& data, const spectral::SpectralLaw& prior,
                  const channels::Channel& channel, const AmpOptions& options, ThreadPool& pool);

/// The named values of an iteration: iteration, true_error (if measured), predicted_error, self_overlap,
/// conjugate_overlap, response, noise_variance, change, seconds. With several layers each is a trace, and
/// name_l has the value of layer l.
Record values(const AmpIteration& iteration);

}  // namespace bayesaim::estimators
