// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/estimator_table.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <new>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/outcome.hpp"
#include "bayesaim/core/table.hpp"
#include "bayesaim/core/version.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/estimators/erm.hpp"
#include "bayesaim/experiments/costs.hpp"
#include "bayesaim/experiments/task_json.hpp"
#include "bayesaim/losses/table.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "bayesaim/theory/bayes_optimal.hpp"
#include "bayesaim/theory/erm.hpp"

namespace bayesaim::experiments {
namespace {

using Values = std::vector<std::pair<std::string, double>>;

/// The accuracy of the theory of a task.
theory::StateEvolutionOptions theory_options(const Task& task, ThreadPool& pool) {
    theory::StateEvolutionOptions options;
    options.integration.points = task.integration_points;
    options.integration.pool = &pool;
    return options;
}

/// The Bayes-optimal error of this task, a lower bound for AMP and gradient descent.
double theory_error(const Task& task, const TaskContext& context) {
    Task point = task;
    point.estimator = "theory";
    return context.theory.at(point, [&] {
        const model::Model model = make_model(task);
        return solve_state_evolution(*theory::make_curve(model.laws(), model.channel().geometry()),
                                     model.channel(), task.alpha, theory::Start::uninformed,
                                     theory_options(task, context.pool))
            .error();
    });
}

/// The error of each of several layers.
void add_layer_errors(const linalg::Overlap& error, Values& values) {
    for (Eigen::Index l = 0; l < error.rows() && error.rows() > 1; ++l)
        values.emplace_back(fmt::format("error_{}", l + 1), error(l, l));
}

Outcome solve_theory(const theory::EstimationCurve& curve, const channels::Channel& channel, const Task& task,
                     const TaskContext& context) {
    const theory::TheoryPoint point =
        theory::solve_theory(curve, channel, task.alpha, theory_options(task, context.pool));
    Values numbers;
    for (const auto& [name, value] : theory::values(point)) {
        if (name == "alpha") continue;
        if (const auto* number = value.as<double>())
            numbers.emplace_back(name == "estimation_error" ? "error" : name, *number);
    }
    numbers.emplace_back("iterations", point.fixed_point.iterations);
    add_layer_errors(point.fixed_point.parameters.error, numbers);
    return make_outcome(point.fixed_point.status, numbers);
}

Outcome run_theory(const Task& task, const TaskContext& context) {
    const model::Model model = make_model(task);
    return solve_theory(*theory::make_curve(model.laws(), model.channel().geometry()), model.channel(), task,
                        context);
}

Outcome run_small_width(const Task& task, const TaskContext& context) {
    return solve_theory(theory::SmallWidthCurve(), make_model(task).channel(), task, context);
}

void check_small_width(const Task& task) {
    if (layers_of(task) > 1)
        throw InvalidArgument("estimator small-width is not available for a channel of several layers");
    if (task.attention == "self" || task.attention == "causal")
        throw InvalidArgument(
            fmt::format("estimator small-width is not available for {} attention", task.attention));
}

data::Synthetic make_problem(const Task& task, data::Precision token_precision, const model::Model& model,
                             ThreadPool& pool) {
    data::SyntheticOptions synthetic;
    synthetic.dim = task.dim;
    synthetic.alpha = task.alpha;
    synthetic.seed = task.seed;
    synthetic.storage = data::parse_token_storage("token_storage", task.token_storage);
    synthetic.precision = token_precision;
    return data::make_synthetic(model.priors(), model.channel(), synthetic, pool);
}

Outcome run_amp(const Task& task, const TaskContext& context) {
    const model::Model model = make_model(task);
    const data::Synthetic problem = make_problem(task, precision_of(task), model, context.pool);

    estimators::AmpOptions options;
    options.response = estimators::parse_response("response", task.response);
    options.damping = task.damping;
    options.adaptive_damping = task.adaptive_damping;
    options.max_iterations = task.max_iterations;
    options.tolerance = task.tolerance;
    set_initial(task.initial, model, problem, task.seed, options, context.pool);
    options.progress = [&](const estimators::AmpIteration& now) {
        return !context.progress ||
               context.progress(static_cast<double>(now.iteration) / options.max_iterations,
                                fmt::format("amp, alpha {:g}, dim {}, seed {}, iteration {}", task.alpha,
                                            task.dim, task.seed, now.iteration));
    };
    const estimators::AmpResult result =
        estimators::run_amp(problem.data, model.laws(), model.channel(), options, context.pool);
    if (result.status == Termination::stopped) return make_outcome(result.status, {});
    const linalg::Overlap error =
        data::estimation_errors(model.channel().geometry(), result.estimates, problem.weights);
    Values numbers = {{"error", error.trace()},
                      {"predicted_error", result.predicted_error.trace()},
                      {"theory_error", theory_error(task, context)},
                      {"iterations", static_cast<double>(result.record.size())}};
    add_layer_errors(error, numbers);
    return make_outcome(result.status, numbers);
}

void check_gd(const Task& task) {
    // The student is a product of factors, as the teacher is: wishart, which untied attention reads as
    // bilinear.
    if (untied(task)) {
        check_one_of("prior of gradient descent", task.prior, {"wishart", "bilinear"});
    } else {
        check_one_of("prior of gradient descent", task.prior, {"wishart"});
    }
    check_one_of("channel of gradient descent", task.channel, channels::smooth_channels());
}

Outcome run_gd(const Task& task, const TaskContext& context) {
    const model::Model model = make_model(task);
    const data::Synthetic problem =
        make_problem(task, data::Precision::double_precision, model, context.pool);

    estimators::AveragedGradientDescentOptions options;
    options.starts = task.starts;
    options.descent.width = student_columns(task);
    options.descent.max_steps = task.steps;
    options.descent.learning_rate = task.learning_rate;
    options.descent.weight_decay = task.weight_decay;
    options.descent.precision = precision_of(task);
    options.descent.seed = task.seed;
    options.descent.record_stride = task.steps;
    options.progress = [&](const std::vector<estimators::Descent>& descents) {
        double steps = 0;
        for (const estimators::Descent& descent : descents) steps += descent.step;
        const double fraction = steps / task.starts / task.steps;
        return !context.progress ||
               context.progress(fraction, fmt::format("gd, alpha {:g}, dim {}, seed {}, {:.0f}% of the steps",
                                                      task.alpha, task.dim, task.seed, 100 * fraction));
    };
    const auto result =
        estimators::run_averaged_gradient_descent(problem.data, model.channel(), options, context.pool);
    if (result.status == Termination::stopped) return make_outcome(result.status, {});
    const auto errors = estimators::measure_starts(result.descents, [&](const linalg::Matrix& estimate) {
        return data::estimation_error(estimate, problem.weights[0]);
    });
    const auto mean = numerics::mean_of(errors.each);  // over the starts that did not diverge
    // A run that took all its steps is a success; only a diverged run is not.
    const bool lost = result.status == Termination::diverged;
    Values values = {{"error", mean ? mean->value : std::nan("")},
                     {"averaged_error", errors.averaged.back()},
                     {"theory_error", theory_error(task, context)},
                     {"iterations", static_cast<double>(result.descents.front().step)}};
    if (task.weight_decay > 0)
        values.emplace_back("training_objective",
                            estimators::training_objective(result.descents).value_or(std::nan("")));
    return make_outcome(lost ? Termination::diverged : Termination::converged, values);
}

// ---- training ---------------------------------------------------------------------------------------------

theory::ErmOptions erm_options(const Task& task, ThreadPool& pool) {
    theory::ErmOptions options;
    options.penalty = losses::parse_penalty("penalty", task.penalty);
    options.integration.points = task.integration_points;
    options.integration.pool = &pool;
    return options;
}

/// The theory of training at the settings of the task, and at its best regularisation if that is asked for.
theory::ErmPoint solve_erm(const Task& task, const model::Model& model, const losses::Loss& loss,
                           ThreadPool& pool) {
    const spectral::SpectralLaw& teacher = model.prior(0).law();
    const theory::ErmOptions options = erm_options(task, pool);
    return task.optimal_regularization
               ? theory::solve_optimal_erm(teacher, loss, task.alpha, options)
               : theory::solve_erm(teacher, loss, task.alpha, task.regularization, options);
}

void check_erm(const Task& task) {
    losses::make_loss(task.loss, make_model(task).channel());
    if (task.optimal_regularization && task.regularization != 0)
        throw_conflict("optimal_regularization", "regularization");
}

void check_training(const Task& task) {
    check_erm(task);
    if (!task.optimal_regularization) check_positive("regularization of estimator erm", task.regularization);
}

Outcome run_erm_theory(const Task& task, const TaskContext& context) {
    const model::Model model = make_model(task);
    const theory::ErmPoint point =
        solve_erm(task, model, *losses::make_loss(task.loss, model.channel()), context.pool);
    return make_outcome(point.status, {{"error", point.error},
                                       {"standard_error", point.relative_error * point.error},
                                       {"generalization_error", point.generalization_error},
                                       {"training_loss", point.training_loss},
                                       {"zero_fraction", point.zero_fraction},
                                       {"best_regularization", point.regularization},
                                       {"iterations", point.iterations}});
}

Outcome run_erm(const Task& task, const TaskContext& context) {
    const model::Model model = make_model(task);
    const auto loss = losses::make_loss(task.loss, model.channel());
    const data::Synthetic problem = make_problem(task, precision_of(task), model, context.pool);
    estimators::ErmOptions options;
    options.penalty = losses::parse_penalty("penalty", task.penalty);
    options.regularization = task.regularization;
    if (task.optimal_regularization)
        options.regularization = std::max(solve_erm(task, model, *loss, context.pool).regularization,
                                          losses::least_regularization);
    options.tolerance = task.tolerance;
    options.max_iterations = task.max_iterations;
    options.progress = [&](const estimators::ErmIteration& now) {
        return !context.progress ||
               context.progress(static_cast<double>(now.iteration) / options.max_iterations,
                                fmt::format("erm, alpha {:g}, dim {}, seed {}, iteration {}", task.alpha,
                                            task.dim, task.seed, now.iteration));
    };
    const auto result = estimators::run_erm(problem.data, *loss, options, context.pool);
    if (result.status == Termination::stopped) return make_outcome(result.status, {});
    Task point = task;
    point.estimator = "erm-theory";
    const double theory = context.theory.at(point, [&] {
        return theory::solve_erm(model.prior(0).law(), *loss, task.alpha, options.regularization,
                                 erm_options(task, context.pool))
            .error;
    });
    return make_outcome(result.status,
                        {{"error", data::estimation_error(result.estimate, problem.weights[0])},
                         {"theory_error", theory},
                         {"training_loss", result.training_loss},
                         {"zero_fraction", result.zero_fraction},
                         {"best_regularization", options.regularization},
                         {"kkt_residual", result.kkt_residual},
                         {"iterations", static_cast<double>(result.record.size())}});
}

}  // namespace

const std::vector<EstimatorEntry>& estimator_table() {
    static const std::vector<std::string> theory_values = {"error",
                                                           "standard_error",
                                                           "overlap",
                                                           "conjugate_overlap",
                                                           "generalization_error",
                                                           "generalization_standard_error",
                                                           "plugin_generalization_error",
                                                           "algorithmic_error",
                                                           "iterations"};
    static const std::vector<EstimatorEntry> table = {
        {"theory",
         "state evolution: Bayes-optimal error for large d",
         {},
         theory_values,
         run_theory,
         theory_operations,
         theory_bytes},
        {"small-width",
         "the same for width to 0; alpha counts in units of the width",
         {},
         theory_values,
         run_small_width,
         theory_operations,
         theory_bytes,
         check_small_width,
         false},
        {"amp",
         "approximate message passing on synthetic data",
         {"dim", "response", "damping", "adaptive_damping", "max_iterations", "tolerance", "initial",
          "precision", "token_storage", "seed"},
         {"error", "predicted_error", "theory_error", "iterations"},
         run_amp,
         amp_operations,
         amp_bytes},
        {"gd",
         "gradient descent (Adam, full batch) on synthetic data, and its average over starts",
         {"dim", "starts", "steps", "learning_rate", "student_width", "weight_decay", "precision",
          "token_storage", "seed"},
         {"error", "averaged_error", "theory_error", "iterations"},
         run_gd,
         gd_operations,
         gd_bytes,
         check_gd},
        {"erm-theory",
         "attention trained with weight decay, for large d",
         {"loss", "penalty", "regularization", "optimal_regularization"},
         {"error", "standard_error", "generalization_error", "training_loss", "zero_fraction",
          "best_regularization", "iterations"},
         run_erm_theory,
         erm_theory_operations,
         theory_bytes,
         check_erm},
        {"erm",
         "attention trained with weight decay on synthetic data, solved to its minimum",
         {"dim", "loss", "penalty", "regularization", "optimal_regularization", "max_iterations", "tolerance",
          "precision", "token_storage", "seed"},
         {"error", "theory_error", "training_loss", "zero_fraction", "best_regularization", "kkt_residual",
          "iterations"},
         run_erm,
         erm_operations,
         amp_bytes,
         check_training},
    };
    return table;
}

void set_initial(const std::string& initial, const model::Model& model, const data::Synthetic& problem,
                 std::uint64_t seed, estimators::AmpOptions& options, ThreadPool& pool) {
    const std::size_t start = check_one_of("initial", initial, {"mean", "prior", "informed"});
    if (start == 0) return;
    const linalg::Overlap no_data =
        theory::make_curve(model.laws(), model.channel().geometry())->prior_error();
    if (start == 1) {
        const std::size_t layers = model.priors().size();  // the teacher has streams 0 .. layers - 1
        for (std::size_t l = 0; l < layers; ++l)
            options.initial_estimates.push_back(
                model.prior(l).sample(problem.weights[l].rows(), seed, layers + l, pool));
        options.initial_error = 2 * no_data;
    } else {
        options.initial_estimates = problem.weights;
        options.initial_error = theory::informed_error * no_data;
    }
}

Outcome make_outcome(Termination status, const Values& values) {
    Outcome outcome{std::string(to_string(status))};
    for (const auto& [name, value] : values) {
        if (std::isfinite(value)) outcome.values.emplace_back(name, value);
    }
    return outcome;
}

double TheoryErrors::at(const Task& point, const std::function<double()>& solve) {
    std::packaged_task<double()> work(solve);
    std::shared_future<double> value = work.get_future().share();
    const auto [known, first] = [&] {
        const std::lock_guard lock(mutex_);
        const auto [place, added] = known_.try_emplace(canonical(point), value);
        return std::pair(place->second, added);
    }();
    if (first) work();
    return known.get();
}

std::optional<Outcome> run_task(const Task& task, const TaskContext& context) {
    const auto start = std::chrono::steady_clock::now();
    Outcome outcome;
    try {
        outcome = find_row(estimator_table(), "estimator", task.estimator).run(task, context);
    } catch (const Stopped&) {
        return std::nullopt;
    } catch (const std::bad_alloc&) {
        outcome = {"failed", "not enough memory for a problem of this size"};
    } catch (const std::exception& error) {
        outcome = {"failed", error.what()};
    }
    if (outcome.status == to_string(Termination::stopped)) return std::nullopt;
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    outcome.commit = git_commit();
    return outcome;
}

std::optional<double> Outcome::value(std::string_view name) const {
    for (const auto& [known, value] : values) {
        if (known == name) return value;
    }
    return std::nullopt;
}

bool Outcome::good() const {
    return status == to_string(Termination::converged) || status == to_string(Termination::exact_recovery);
}

bool Outcome::same_results(const Outcome& other) const {
    const auto is_there = [&](const auto& mine) {
        const auto theirs = other.value(mine.first);
        return theirs && std::bit_cast<std::uint64_t>(*theirs) == std::bit_cast<std::uint64_t>(mine.second);
    };
    return status == other.status && reason == other.reason && values.size() == other.values.size() &&
           std::all_of(values.begin(), values.end(), is_there);
}

Json to_json(const Outcome& outcome) {
    Json object = {{"status", outcome.status}};
    if (!outcome.reason.empty()) object["reason"] = outcome.reason;
    object["values"] = Json::object();
    for (const auto& [name, value] : outcome.values) object["values"][name] = value;
    object["seconds"] = outcome.seconds;
    object["commit"] = outcome.commit;
    return object;
}

Outcome outcome_from_json(const Json& object) {
    Outcome outcome{object.at("status").get<std::string>(), object.value("reason", "")};
    for (const auto& [name, value] : object.at("values").items()) {
        outcome.values.emplace_back(name, value.get<double>());
    }
    outcome.seconds = object.value("seconds", 0.0);
    outcome.commit = object.value("commit", "");
    return outcome;
}

}  // namespace bayesaim::experiments
