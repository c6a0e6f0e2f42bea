// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "bayesaim/core/outcome.hpp"
#include "bayesaim/core/record.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/losses/loss.hpp"
#include "bayesaim/losses/penalty.hpp"

namespace bayesaim::data {
struct SavedState;
}

/// Training as it is done in practice, solved to the end: the minimum of
///   sum_samples ell(y, htilde(S)) + lambda d penalty(S),
/// Tr S over S >= 0 (weight decay on W, S = W W'/sqrt(m d), width m >= d), or Tr S^2/2 over symmetric S.
namespace bayesaim::estimators {

/// How the minimum is found.
enum class Solver {
    automatic,         ///< message passing, then proximal gradient if it does not get there
    message_passing,   ///< about 50 passes over the data
    proximal_gradient  ///< FISTA; hundreds of passes
};
/// From its name. Throws InvalidArgument with the argument's `name` in the message.
Solver parse_solver(std::string_view name, std::string_view text);

struct ErmIteration {
    static constexpr bool one_row = true;
    int iteration = 0;
    double change = 0;                   ///< ||S - previous||_F / ||R||_F
    double curvature = 0, response = 0;  ///< A, or 1/step of the proximal gradient; V
    double zero_fraction = 0;
    std::optional<double> kkt_residual{};  ///< where it was computed
    std::optional<double> true_error{};    ///< if the options have a measure
    double seconds = 0;
};

/// The parts of a record that is saved; see data/saved_state.hpp.
template <class Archive>
void visit(Archive& archive, ErmIteration& now) {
    archive("iteration", now.iteration);
    archive("change", now.change);
    archive("curvature", now.curvature);
    archive("response", now.response);
    archive("zero_fraction", now.zero_fraction);
    archive("kkt_residual", now.kkt_residual);
    archive("true_error", now.true_error);
    archive("seconds", now.seconds);
}

struct ErmOptions {
    losses::Penalty penalty = losses::Penalty::trace;
    double regularization = 0.1;  ///< lambda > 0
    Solver solver = Solver::automatic;
    double tolerance = 1e-8;  ///< of the KKT residual
    int max_iterations = 5000;
    double damping = 0.4;  ///< weight of the previous omega and V of message passing
    std::optional<linalg::Matrix> initial_estimate{};  ///< otherwise 0
    std::function<double(const linalg::Matrix&)> measure{};
    std::function<bool(const ErmIteration&)> progress{};  ///< returns false to stop
    /// As those of AmpOptions.
    std::function<void(const data::SavedState&)> save{};
    int save_stride = 10;
    std::shared_ptr<const data::SavedState> resume{};
};

struct ErmResult {
    linalg::Matrix estimate;
    double training_loss = 0;  ///< mean of ell over the samples
    double objective = 0;      ///< the minimum divided by d^2
    double zero_fraction = 0;  ///< of the eigenvalues; exact zeros
    /// ||S - prox(S - step gradient)||_F / ||S - step gradient||_F with step 1/(d A): 0 exactly at the minimum.
    double kkt_residual = 0;
    Termination status = Termination::iteration_limit;
    std::vector<ErmIteration> record{};
};

/// Message passing (GAMP). From S = 0, V = 2:
///   omega = htilde(S) - V g,  g = the proximal step of the loss,  A = (2/d^2) sum -dg/domega
///   R = S + (1/(d A)) sum g Z,  S = prox of lambda/A at R,  V = divergence/A
/// with omega and V damped. Its fixed point is a stationary point of the training loss whatever A and V are, so the
/// minimum of a convex one. Matrix-free; the same bits for any number of threads.
/// Pinned by: Training.*, EveryLoss.*
ErmResult run_erm(const data::Dataset& data, const losses::Loss& loss, const ErmOptions& options,
                  ThreadPool& pool);

/// The KKT residual of any S, with the step 1/(d curvature).
double kkt_residual(const data::Dataset& data, const losses::Loss& loss, const linalg::Matrix& estimate,
                    losses::Penalty penalty, double regularization, double curvature, ThreadPool& pool);

/// The named values of an iteration.
Record values(const ErmIteration& iteration);

}  // namespace bayesaim::estimators
