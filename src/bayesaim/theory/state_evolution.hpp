// SPDX-License-Identifier: MIT
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/core/outcome.hpp"
#include "bayesaim/theory/estimation_curve.hpp"

/// State evolution, for any number of layers. With C = Q - q, which without data is diagonal,
///   qhat = v^2 alpha F(q, C),   C = C(qhat) of the priors (EstimationCurve).
///
///   const priors::Wishart prior(0.5);
///   const channels::Softmax channel(2);
///   const auto point = theory::solve_state_evolution(theory::SpectralCurve(prior.law()), channel, 0.1);
///   point.error();  // 0.3921960, ||estimate - S||^2 / d of the best estimate
namespace bayesaim::theory {

using channels::OrderParameters;

/// How a fixed point is found.
enum class Method {
    automatic,  ///< bracketed if possible, otherwise monotone for one layer and newton for several
    /// One layer, exact observations (linear without noise, softmax): the root of mmse(D)/D = v alpha m.
    bracketed,
    monotone,  ///< one layer: the monotone iteration, accelerated by the secant rule
    newton,    ///< any number of layers: the iteration, then Newton steps with the derivative of its map
};
/// The method of this name. Throws InvalidArgument with a message that calls the argument `name`.
Method parse_method(std::string_view name, std::string_view text);

/// A fixed point at a close alpha, from which the method `bracketed` starts.
struct Neighbour {
    double alpha = 0, noise_variance = 0;  ///< D = 1/qhat
};

struct StateEvolutionOptions {
    double tolerance = 1e-12;  ///< relative change of the error in one iteration
    /// The tolerance for channels with sampled expectations: far below their sampling error.
    double sampled_tolerance = 1e-6;
    int max_iterations = 1000;
    Method method = Method::automatic;
    channels::Integration integration{};
    std::optional<Neighbour> neighbour{};
    /// Whether solve_theory computes the errors of predictions too, which are NaN otherwise. For softmax of three and more
    /// tokens they take most of the time.
    bool generalization = true;
};

/// The start of the iteration: no data (as for an algorithm) or next to the truth (for other fixed points).
enum class Start { uninformed, informed };

/// The error of each informed start, relative to the error of the prior.
inline constexpr double informed_error = 1e-6;

/// A fixed point of state evolution.
struct FixedPoint {
    OrderParameters parameters;  ///< overlap q and error C = Q - q
    Overlap conjugate;           ///< qhat; infinite at exact recovery
    double relative_error = 0;   ///< standard error of Tr C due to sampled expectations, divided by Tr C
    int iterations = 0;
    Termination status = Termination::converged;

    double error() const { return parameters.error.trace(); }  ///< estimation error Tr(Q - q)
};

/// For the next alpha; std::nullopt if qhat is 0 or infinite.
std::optional<Neighbour> neighbour_of(double alpha, const FixedPoint& point);

/// The fixed point reached from one side. Its error is zero above the strong-recovery threshold, and that of
/// the prior at alpha = 0.
FixedPoint solve_state_evolution(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                                 Start start = Start::uninformed, const StateEvolutionOptions& options = {});

/// The error of predicting a new sample at the fixed point; zero at exact recovery.
channels::GeneralizationError generalization_error(const FixedPoint& point, const channels::Channel& channel,
                                                   const channels::Integration& integration = {});

/// All iterates from the start (no data, or informed_error of the prior's error); AMP follows them.
std::vector<OrderParameters> state_evolution_trajectory(const EstimationCurve& prior,
                                                        const channels::Channel& channel, double alpha,
                                                        int iterations, Start start = Start::uninformed,
                                                        const StateEvolutionOptions& options = {});

/// The growth rate Tr C_{t+1} / Tr C_t of state evolution near the truth, once the shape of C has settled. It
/// is threshold/alpha for channels with strong recovery: 1 at the threshold.
double recovery_growth_rate(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                            const channels::Integration& integration = {});

}  // namespace bayesaim::theory
