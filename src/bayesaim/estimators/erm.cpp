// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/erm.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/saved_state.hpp"
#include "bayesaim/denoisers/soft_threshold.hpp"
#include "bayesaim/estimators/data_pass.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;
using losses::Penalty;
constexpr double infinity = std::numeric_limits<double>::infinity();

void check(const data::Dataset& data, const losses::Loss& loss, const ErmOptions& options) {
    data::check_tokens(loss.geometry(), *data.tokens, data.keys());
    check_size("rows of the outputs", data.outputs.rows(), data.tokens->samples());
    check_size("columns of the outputs", data.outputs.cols(), loss.outputs());
    check_positive("regularization", options.regularization);
    check_between("regularization", options.regularization, 0, losses::largest_regularization);
    check_positive("tolerance", options.tolerance);
    check_at_least("iterations", options.max_iterations, 1);
    check_at_least("save stride", options.save_stride, 1);
    check_non_negative("damping", options.damping);
    if (options.damping >= 1) throw_invalid("damping", "below 1", options.damping);
    if (options.initial_estimate)
        check_size("dimension of the initial estimate", options.initial_estimate->rows(), data.tokens->dim());
}

/// The proximal map of the penalty at R.
struct Shrunk {
    Matrix estimate;
    double divergence = 0, zero_fraction = 0;
};

/// Between two iterations of message passing.
struct Passing {
    double variance = 2, damping = 0, least = infinity;
    int since_least = 0, next_check = 0;
    Messages messages{};
};

template <class Archive>
void visit(Archive& archive, Passing& passing) {
    archive("variance", passing.variance);
    archive("damping", passing.damping);
    archive("least", passing.least);
    archive("since_least", passing.since_least);
    archive("next_check", passing.next_check);
    archive("messages", passing.messages);
}

/// Between two steps of the proximal gradient.
struct Descending {
    double lipschitz = 1, momentum = 1, objective = infinity;
    Matrix point{};
};

template <class Archive>
void visit(Archive& archive, Descending& descending) {
    archive("lipschitz", descending.lipschitz);
    archive("momentum", descending.momentum);
    archive("objective", descending.objective);
    archive("point", descending.point);
}

/// Everything that the next iteration depends on.
struct Training {
    Matrix estimate{};
    double curvature = 0;              // the last A
    std::optional<Passing> passing{};  // one of these, once it has begun
    std::optional<Descending> descending{};
    std::vector<ErmIteration> record{};
};

template <class Archive>
void visit(Archive& archive, Training& training) {
    archive("estimate", training.estimate);
    archive("curvature", training.curvature);
    archive("passing", training.passing);
    archive("descending", training.descending);
    archive("record", training.record);
}

class Trainer {
  public:
    Trainer(const data::Dataset& data, const losses::Loss& loss, const ErmOptions& options, ThreadPool& pool)
        : data_(data),
          loss_(loss),
          options_(options),
          pool_(pool),
          d_(static_cast<double>(data.tokens->dim())) {
        const Eigen::Index dim = data.tokens->dim();
        if (options.resume) {
            data::load(*options.resume, "erm", training_);
            check_resumed(dim);
        } else {
            training_.estimate = options.initial_estimate.value_or(Matrix::Zero(dim, dim));
        }
    }

    ErmResult run() {
        std::optional<Termination> status;
        if (options_.solver != Solver::proximal_gradient && !training_.descending) status = pass_messages();
        if (!status && options_.solver != Solver::message_passing) status = descend();
        result_.status = status.value_or(Termination::iteration_limit);
        finish();
        return std::move(result_);
    }

    /// The value of the loss and sum g Z, minus its gradient, at S.
    struct Gradient {
        double loss;
        Matrix pulled;
    };
    Gradient gradient_at(const Matrix& s) {
        Messages fresh;
        fresh.spare = std::move(scratch_.spare);
        const linalg::Overlap none = linalg::zero_overlap(1);
        const std::vector<Matrix> one = {s};
        Pass pass = pass_over_data(
            data_, loss_, {.estimates = one, .variance = none, .onsager = none, .log_z = true}, fresh, pool_);
        scratch_.spare = std::move(fresh.spare);
        return {-pass.log_z, std::move(pass.pulled[0])};
    }

    /// Infinite where numbers overflow.
    double kkt_residual(const Matrix& s, const Matrix& pulled, double curvature) {
        const Matrix r = s + pulled / (d_ * curvature);
        const double size = r.norm();
        if (!std::isfinite(size)) return infinity;
        return size > 0 ? (s - shrink(r, curvature).estimate).norm() / size : 0;
    }

  private:
    void check_resumed(Eigen::Index dim) const {
        data::check_resumed("estimate", training_.estimate, dim, dim);
        if (const auto& passing = training_.passing) {
            data::check_resumed("variance", passing->messages.variance, 1, 1);
            for (const channels::Rows* rows : {&passing->messages.omega, &passing->messages.g})
                data::check_resumed("messages", rows->transpose(), loss_.pairs(), data_.tokens->samples());
        }
        if (const auto& descending = training_.descending) {
            data::check_resumed("point", descending->point, dim, dim);
            check_positive("resumed lipschitz", descending->lipschitz);
        }
    }

    Shrunk shrink(const Matrix& r, double curvature) {
        if (options_.penalty == Penalty::frobenius) {
            const double factor = curvature / (curvature + options_.regularization);
            return {factor * r, factor * (d_ + 1) / d_, 0};
        }
        if (!r.allFinite()) return {r, 0, 0};  // overflowed: it has no eigenvalues
        auto [estimate, eigenvalues, zeros, divergence] =
            denoisers::soft_threshold(r, options_.regularization / curvature, pool_);
        return {std::move(estimate), divergence, static_cast<double>(zeros) / d_};
    }

    double penalty(const Matrix& s) const {
        return options_.regularization * d_ *
               (options_.penalty == Penalty::trace ? s.trace() : 0.5 * s.squaredNorm());
    }

    /// Takes the step into the record. Returns the end, if there is one.
    std::optional<Termination> record(ErmIteration& now, std::chrono::steady_clock::time_point start) {
        now.iteration = static_cast<int>(training_.record.size()) + 1;
        if (options_.measure) now.true_error = options_.measure(training_.estimate);
        now.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        training_.record.push_back(now);
        stop_ = !proceed(options_.progress, now, pool_.ranks());
        if (now.kkt_residual && *now.kkt_residual <= options_.tolerance) return Termination::converged;
        return std::nullopt;
    }

    /// At the end of an iteration: saves it, if that is due. Returns whether the caller asks to stop.
    bool stops() {
        const bool due = static_cast<int>(training_.record.size()) % options_.save_stride == 0;
        if (options_.save && (stop_ || due)) {
            if (training_.passing) gather(training_.passing->messages, data_.shares(), pool_.ranks());
            if (pool_.ranks().first()) {
                data::SavedState saved;
                data::save(saved, "erm", training_);
                options_.save(saved);
            }
        }
        return stop_;
    }

    bool exhausted() const { return static_cast<int>(training_.record.size()) >= options_.max_iterations; }

    /// The end, std::nullopt if message passing does not get there.
    std::optional<Termination> pass_messages() {
        // Runs that do not shrink their changes for so long get more damping, and are given up at the end.
        constexpr int patience = 30;
        constexpr double most_damping = 0.95;
        if (!training_.passing) training_.passing = Passing{.damping = options_.damping};
        Passing& state = *training_.passing;
        Matrix& estimate = training_.estimate;
        while (!exhausted()) {
            const auto start = std::chrono::steady_clock::now();
            const linalg::Overlap v = linalg::scalar_overlap(state.variance);
            const std::vector<Matrix> one = {estimate};
            const Pass pass = pass_over_data(
                data_, loss_,
                {.estimates = one, .variance = v, .onsager = v, .damping = state.damping, .slope = true},
                state.messages, pool_);
            const double curvature = 2 * pass.slope(0, 0) / (d_ * d_);
            if (!(curvature > 0) || !std::isfinite(curvature)) return std::nullopt;
            const Matrix r = estimate + pass.pulled[0] / (d_ * curvature);
            Shrunk shrunk = shrink(r, curvature);
            ErmIteration now;
            now.change = (shrunk.estimate - estimate).norm() / std::max(r.norm(), 1e-300);
            now.curvature = training_.curvature = curvature;
            now.zero_fraction = shrunk.zero_fraction;
            if (!std::isfinite(now.change)) return std::nullopt;
            estimate = std::move(shrunk.estimate);
            state.variance = now.response = std::max(shrunk.divergence, 1 / (d_ * d_)) / curvature;
            const int iteration = static_cast<int>(training_.record.size());
            if (now.change < options_.tolerance && iteration >= state.next_check) {
                now.kkt_residual = kkt_residual(estimate, gradient_at(estimate).pulled, curvature);
                state.next_check = iteration + 5;
            }
            if (const auto end = record(now, start)) return end;
            if (now.change < 0.9 * state.least) {
                state.least = now.change;
                state.since_least = 0;
            } else if (++state.since_least > patience) {
                if (state.damping > most_damping) return std::nullopt;
                state.damping = 0.5 + 0.5 * state.damping;
                state.since_least = 0;
                state.least = infinity;
            }
            if (stops()) return Termination::stopped;
        }
        return Termination::iteration_limit;
    }

    /// FISTA with backtracking, started anew when the objective rises (O'Donoghue and Candes 2015). The step is 1/(d L).
    std::optional<Termination> descend() {
        constexpr double growth = 2, relief = 0.98;
        Matrix& estimate = training_.estimate;
        if (!training_.descending) {
            training_.passing.reset();
            training_.descending = Descending{.lipschitz = curvature_or_one(), .point = estimate};
        }
        auto& [lipschitz, momentum, objective, point] = *training_.descending;
        while (!exhausted()) {
            const auto start = std::chrono::steady_clock::now();
            const Gradient at_point = gradient_at(point);
            if (!std::isfinite(at_point.loss) || !at_point.pulled.allFinite()) return Termination::diverged;
            Shrunk shrunk;
            double loss = 0;
            for (;; lipschitz *= growth) {
                shrunk = shrink(point + at_point.pulled / (d_ * lipschitz), lipschitz);
                const Matrix move = shrunk.estimate - point;
                loss = move.allFinite() ? gradient_at(shrunk.estimate).loss : infinity;
                const double bound = at_point.loss - at_point.pulled.cwiseProduct(move).sum() +
                                     0.5 * d_ * lipschitz * move.squaredNorm();
                // Roundings of the loss decide nothing.
                if (loss <= bound + 1e-13 * std::abs(loss) || !(lipschitz < 1e20)) break;
            }
            if (!std::isfinite(loss)) return Termination::diverged;
            ErmIteration now;
            now.curvature = training_.curvature = lipschitz;
            now.zero_fraction = shrunk.zero_fraction;
            now.change = (shrunk.estimate - estimate).norm() / std::max(shrunk.estimate.norm(), 1e-300);
            const double now_objective = loss + penalty(shrunk.estimate);
            const bool rises = now_objective > objective;
            objective = now_objective;
            const Matrix previous = std::exchange(estimate, std::move(shrunk.estimate));
            if (now.change < 10 * options_.tolerance)
                now.kkt_residual = kkt_residual(estimate, gradient_at(estimate).pulled, lipschitz);
            if (const auto end = record(now, start)) return end;
            if (rises) {
                momentum = 1;
                point = estimate;
            } else {
                const double next = 0.5 * (1 + std::sqrt(1 + 4 * momentum * momentum));
                point = estimate + (momentum - 1) / next * (estimate - previous);
                momentum = next;
            }
            lipschitz *= relief;
            if (stops()) return Termination::stopped;
        }
        return Termination::iteration_limit;
    }

    double curvature_or_one() const { return training_.curvature > 0 ? training_.curvature : 1; }

    void finish() {
        Matrix& estimate = training_.estimate;
        const Gradient at_end = gradient_at(estimate);
        const double samples = static_cast<double>(data_.tokens->samples());
        result_.training_loss = at_end.loss / samples;
        result_.objective = (at_end.loss + penalty(estimate)) / (d_ * d_);
        result_.kkt_residual = kkt_residual(estimate, at_end.pulled, curvature_or_one());
        result_.record = std::move(training_.record);
        result_.zero_fraction = result_.record.empty() ? 0 : result_.record.back().zero_fraction;
        result_.estimate = std::move(estimate);
    }

    const data::Dataset& data_;
    const losses::Loss& loss_;
    const ErmOptions& options_;
    ThreadPool& pool_;
    double d_;
    Training training_;
    bool stop_ = false;  // the caller asks for it
    Messages scratch_;   // memory of passes without messages
    ErmResult result_;
};

}  // namespace

Solver parse_solver(std::string_view name, std::string_view text) {
    return static_cast<Solver>(
        check_one_of(name, text, {"automatic", "message-passing", "proximal-gradient"}));
}

ErmResult run_erm(const data::Dataset& data, const losses::Loss& loss, const ErmOptions& options,
                  ThreadPool& pool) {
    check(data, loss, options);
    return Trainer(data, loss, options, pool).run();
}

double kkt_residual(const data::Dataset& data, const losses::Loss& loss, const linalg::Matrix& estimate,
                    losses::Penalty penalty, double regularization, double curvature, ThreadPool& pool) {
    ErmOptions options;
    options.penalty = penalty;
    options.regularization = regularization;
    check(data, loss, options);
    check_positive("curvature", curvature);
    Trainer trainer(data, loss, options, pool);
    return trainer.kkt_residual(estimate, trainer.gradient_at(estimate).pulled, curvature);
}

Record values(const ErmIteration& now) {
    Record record = {{"iteration", now.iteration}};
    if (now.true_error) record["true_error"] = *now.true_error;
    record.update({{"change", now.change},
                   {"curvature", now.curvature},
                   {"response", now.response},
                   {"zero_fraction", now.zero_fraction},
                   {"kkt_residual", now.kkt_residual ? Value(*now.kkt_residual) : Value()},
                   {"seconds", now.seconds}});
    return record;
}

}  // namespace bayesaim::estimators
