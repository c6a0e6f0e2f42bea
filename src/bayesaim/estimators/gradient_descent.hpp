// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/core/outcome.hpp"
#include "bayesaim/data/dataset.hpp"

namespace bayesaim::estimators {

enum class Optimizer { adam, gradient_descent };

/// One row of the history.
struct DescentStep {
    static constexpr bool one_row = true;
    int step = 0;
    double loss = 0;                     ///< with the penalty; of a mini-batch, scaled to all samples
    double gradient_norm = 0;            ///< ||g||_F, with the penalty
    std::optional<double> true_error{};  ///< if the options have a measure
};

struct GradientDescentOptions {
    Eigen::Index width = 1;  ///< columns r of the student W, or of each of W_Q and W_K
    Optimizer optimizer = Optimizer::adam;
    double learning_rate = 0.1;
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< of Adam
    double weight_decay = 0;                            ///< adds weight_decay ||W||_F^2 to the loss
    int max_steps = 1000;
    Eigen::Index batch_size = 0;    ///< samples per step; 0 is all
    double gradient_tolerance = 0;  ///< stop when the gradient norm is at most this; 0 never stops
    double loss_tolerance = 0;      ///< the same for the loss
    data::Precision precision = data::Precision::float_precision;
    std::uint64_t seed = 0;  ///< of the starts and of the mini-batches
    int record_stride = 10;  ///< steps from one row of the history to the next
    /// Measures S (if the truth is known) for the history. Several threads may call it.
    std::function<double(const linalg::Matrix&)> measure{};
};

/// One start, with everything that its next step depends on; the numbers of a float run are floats.
struct Descent {
    std::uint64_t start = 0;
    int step = 0;
    int factors = 1;  ///< 1 for W, d x r; 2 for [W_Q | W_K], d x 2r, of untied attention
    linalg::Matrix weights, first_moment, second_moment;  ///< the student and Adam's moments
    std::optional<Termination> status{};                  ///< std::nullopt while it runs
    std::vector<DescentStep> record{};
    double seconds = 0;  ///< computing time, on one thread or several

    /// S = W W' / sqrt(r d), or W_Q W_K' / sqrt(r d)
    linalg::Matrix estimate() const;
};

/// The parts of a descent that is saved; see data/saved_state.hpp.
template <class Archive>
void visit(Archive& archive, DescentStep& row) {
    archive("step", row.step);
    archive("loss", row.loss);
    archive("gradient_norm", row.gradient_norm);
    archive("true_error", row.true_error);
}
template <class Archive>
void visit(Archive& archive, Descent& descent) {
    archive("start", descent.start);
    archive("step", descent.step);
    archive("factors", descent.factors);
    archive("weights", descent.weights);
    archive("first_moment", descent.first_moment);
    archive("second_moment", descent.second_moment);
    archive("status", descent.status);
    archive("record", descent.record);
    archive("seconds", descent.seconds);
}

/// The columns r = width d of a student, rounded, at least 1. Throws InvalidArgument for more than a million.
Eigen::Index student_columns(double width, Eigen::Index dim);

/// Weight decay in terms of S. ||W||_F^2 is sqrt(r d) Tr S; of the factors of one S the smallest
/// ||W_Q||_F^2 + ||W_K||_F^2 is 2 sqrt(r d) ||S||_*, the nuclear norm. If r >= d, the factors make every S
/// (tied: every positive semidefinite S), and the minimum of half the objective is that of
///   tied:    L(S)/2 + lambda d Tr S,      lambda = (weight_decay/2) sqrt(r/d),
///   untied:  L(S)/2 + lambda d ||S||_*,   lambda = weight_decay sqrt(r/d),
/// which is convex for linear outputs. Returns lambda. Pinned by: WeightDecay.*.
double equivalent_regularization(double weight_decay, Eigen::Index width, Eigen::Index dim, int factors = 1);

/// Gradient descent on the attention loss (estimators/attention_loss), full batch or mini-batches, plus
/// weight_decay ||W||_F^2, which is in full in every step: g = dL/dW + 2 weight_decay W.
///   Adam:   m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
///           W -= lr / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)        as torch.optim.Adam
///   plain:  W -= lr g
/// W starts as N(0, 1) entries from RandomStream(seed, Purpose::initial, start). A descent depends only
/// on data, options and its start: not on threads, other starts or interruptions.
class GradientDescent {
  public:
    virtual ~GradientDescent() = default;

    virtual Descent start(std::uint64_t index) const = 0;

    /// Takes at most `steps` more steps. Without a pool the calling thread works alone. A descent that ends
    /// gets a status: converged (a tolerance is met), iteration limit, or diverged (loss or gradient are not
    /// finite; W is then useless). The last evaluation, which decides the status, counts as a step here.
    virtual void advance(Descent& descent, int steps, ThreadPool* pool) const = 0;
};

/// Prepares the data once, in the precision of the options. Throws InvalidArgument for bad options.
std::unique_ptr<GradientDescent> make_gradient_descent(const data::Dataset& data,
                                                       const channels::Channel& channel,
                                                       const GradientDescentOptions& options,
                                                       ThreadPool& pool);

/// Runs start 0 to its end.
Descent run_gradient_descent(const data::Dataset& data, const channels::Channel& channel,
                             const GradientDescentOptions& options, ThreadPool& pool);

}  // namespace bayesaim::estimators
