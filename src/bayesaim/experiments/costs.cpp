// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/costs.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/estimators/gradient_descent.hpp"
#include "bayesaim/experiments/forecast.hpp"

namespace bayesaim::experiments {

data::Precision precision_of(const Task& task) { return data::parse_precision("precision", task.precision); }

bool untied(const Task& task) { return task.attention != Task{}.attention; }

static double keys_of(const Task& task) { return task.key_tokens > 0 ? task.key_tokens : task.tokens; }

Eigen::Index student_columns(const Task& task) {
    return estimators::student_columns(task.student_width > 0 ? task.student_width : task.width, task.dim);
}

/// The posterior of one sample, which takes most of the time where it has no closed form. Fitted to measured
/// times (0.1 ms with two layers of two tokens) at 3 10^10 operations a second.
static double posterior_operations(const Task& task) {
    const int layers = layers_of(task);
    if (layers > 1 && task.channel == "deep-seq2seq") return layers == 2 ? 1.5e7 : 1.5e8;
    if (layers > 1) return layers > 2 ? 8e7 : task.tokens > 2 ? 4e7 : 3e6;
    return task.channel.starts_with("hardmax") && task.tokens > 2 ? 5e4 * std::pow(task.tokens, 3) : 0;
}

/// About 20 averages over the points of all shifts with several layers; otherwise fitted to
/// docs/performance.md.
double theory_operations(const Task& task) {
    if (layers_of(task) > 1)
        return 20.0 * channels::Integration{}.shifts * task.integration_points * posterior_operations(task);
    const model::Model model = make_model(task);
    if (model.channel().exact_observations()) return 5e6;
    return model.channel().sampled() ? 4e10 * task.integration_points / 128 : 1e8;
}

/// Per iteration 1.5 products of d x d with d x nT, an eigendecomposition and the shrinkage of d eigenvalues,
/// for each layer; and the posterior of each sample.
double amp_operations(const Task& task) {
    const double d = task.dim * std::sqrt(task.aspect), samples = task.alpha * d * d,
                 layers = layers_of(task);
    const double one = 3 * samples * task.tokens * d * d + 50 * std::pow(d, 3) + 1e6 * d;
    return std::min(80, task.max_iterations) * (layers * one + samples * posterior_operations(task));
}

/// As AMP, with some 150 iterations.
double erm_operations(const Task& task) {
    Task amp = task;
    amp.max_iterations = 80;
    return 2 * amp_operations(amp);
}

/// Closed forms, or some ten averages of 30,000 proximal steps.
double erm_theory_operations(const Task& task) {
    const bool closed = task.loss.empty() || task.loss.ends_with("logit") || task.channel == "linear";
    return (closed ? 3e7 : 3e9) * (task.optimal_regularization ? closed ? 4 : 30 : 1);
}

/// Two products of d x r with d x nT per step and start, for queries and for keys in untied attention.
double gd_operations(const Task& task) {
    const double d = task.dim, columns = static_cast<double>(student_columns(task));
    const double tokens = task.tokens + (untied(task) ? keys_of(task) : 0);
    return 4.0 * task.starts * task.steps * task.alpha * tokens * d * d * d * columns;
}

/// Spectral laws and quadratures.
double theory_bytes(const Task&) { return 2e6; }

/// Bytes of a number of this precision.
static double size_of(const Task& task) {
    return precision_of(task) == data::Precision::double_precision ? 8 : 4;
}

static ProblemSize size_of_problem(const Task& task, double token_size) {
    const double d = task.dim * std::sqrt(task.aspect), tokens = task.tokens, layers = layers_of(task);
    const bool kept =
        data::parse_token_storage("token_storage", task.token_storage) == data::TokenStorage::memory;
    return {.samples = std::max(1.0, task.alpha * d * d),
            .dim = d,
            .tokens = tokens,
            .keys = task.attention == "cross" ? keys_of(task) : 0,
            .pairs = layers * tokens * (tokens + 1) / 2,
            .layers = layers,
            .symmetric = !untied(task),
            .token_size = kept ? token_size : 0};
}

double amp_bytes(const Task& task) {
    return amp_bytes(size_of_problem(task, size_of(task)), default_threads(), 1) + theory_bytes(task);
}

double gd_bytes(const Task& task) {
    const double columns = static_cast<double>(student_columns(task)) * (untied(task) ? 2 : 1);
    return gd_bytes(size_of_problem(task, 8), columns, task.starts, size_of(task), default_threads(), 1) +
           theory_bytes(task);
}

}  // namespace bayesaim::experiments
