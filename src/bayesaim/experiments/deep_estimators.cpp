// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/deep_estimators.hpp"

#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/outcome.hpp"
#include "bayesaim/data/deep_attention.hpp"
#include "bayesaim/estimators/deep_amp.hpp"
#include "bayesaim/theory/deep_state_evolution.hpp"

namespace bayesaim::experiments {
namespace {

/// Layers that have a column of their own; `error` is the sum over all.
constexpr Eigen::Index named_layers = 2;

void add_layers(const char* name, const linalg::Overlap& error, Outcome& outcome) {
    for (Eigen::Index l = 0; l < std::min(named_layers, error.rows()); ++l)
        outcome.values.emplace_back(fmt::format("{}_{}", name, l + 1), error(l, l));
}

theory::FixedPoint solve(const Task& task, const spectral::SpectralLaw& law, ThreadPool& pool) {
    theory::StateEvolutionOptions options;
    options.integration.points = task.integration_points;
    options.integration.pool = &pool;
    const std::vector laws(static_cast<std::size_t>(task.layers), &law);
    return solve_deep_state_evolution(laws, make_deep_channel(task), task.alpha, theory::Start::uninformed,
                                      options);
}

Outcome run_theory(const Task& task, const TaskContext& context) {
    const auto prior = make_prior(task);
    const theory::FixedPoint point = solve(task, prior->law(), context.pool);
    Outcome outcome{std::string(to_string(point.status))};
    outcome.values = {{"error", point.error()}, {"standard_error", point.relative_error * point.error()}};
    add_layers("error", point.parameters.error, outcome);
    return outcome;
}

Outcome run_amp(const Task& task, const TaskContext& context) {
    const auto prior = make_prior(task);
    const channels::DeepAttention channel = make_deep_channel(task);
    const auto layers = static_cast<std::size_t>(task.layers);
    const std::vector<const priors::Prior*> priors(layers, prior.get());
    const std::vector<const spectral::SpectralLaw*> laws(layers, &prior->law());
    data::SyntheticOptions synthetic;
    synthetic.dim = task.dim;
    synthetic.alpha = task.alpha;
    synthetic.seed = task.seed;
    const auto problem = data::make_deep_synthetic(priors, channel, synthetic, context.pool);
    estimators::DeepAmpOptions options;
    options.max_iterations = task.max_iterations;
    options.progress = [&](const estimators::DeepAmpIteration& now) {
        return !context.progress ||
               context.progress(static_cast<double>(now.iteration) / options.max_iterations,
                                fmt::format("deep-amp, alpha {:g}, dim {}, seed {}, iteration {}", task.alpha,
                                            task.dim, task.seed, now.iteration));
    };
    const auto result = estimators::run_deep_amp(problem.data, laws, channel, options, context.pool);
    Outcome outcome{std::string(to_string(result.status))};
    if (result.status == Termination::stopped) return outcome;
    const linalg::Overlap error = data::estimation_errors(result.estimates, problem.weights);
    const theory::FixedPoint theory = solve(task, prior->law(), context.pool);
    outcome.values = {{"error", error.trace()},
                      {"predicted_error", result.predicted_error.trace()},
                      {"theory_error", theory.error()},
                      {"iterations", static_cast<double>(result.record.size())}};
    add_layers("error", error, outcome);
    return outcome;
}

}  // namespace

std::vector<EstimatorEntry> deep_estimators() {
    std::vector<std::string> layer_values;
    for (Eigen::Index l = 0; l < named_layers; ++l) layer_values.push_back(fmt::format("error_{}", l + 1));
    std::vector<std::string> theory_values = {"error", "standard_error"},
                             amp_values = {"error", "predicted_error", "theory_error", "iterations"};
    theory_values.insert(theory_values.end(), layer_values.begin(), layer_values.end());
    amp_values.insert(amp_values.end(), layer_values.begin(), layer_values.end());
    // Some 50 microseconds a sample of two layers of two tokens, at 10^10 operations a second.
    const auto theory_operations = [](const Task& task) { return 1e8 * task.integration_points; };
    const auto amp_operations = [](const Task& task) {
        return 5e5 * task.alpha * task.dim * task.dim * std::min(task.max_iterations, 60);
    };
    return {{"deep-theory",
             "state evolution of softmax attention of several layers",
             {"layers", "residual"},
             theory_values,
             run_theory,
             theory_operations},
            {"deep-amp",
             "approximate message passing for several layers",
             {"layers", "residual", "dim", "max_iterations", "seed"},
             amp_values,
             run_amp,
             amp_operations}};
}

}  // namespace bayesaim::experiments
