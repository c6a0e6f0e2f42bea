// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/estimators/erm.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/erm_options.hpp"
#include "program/interrupt.hpp"
#include "program/progress.hpp"
#include "program/ranks.hpp"
#include "program/run_file.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    ModelArguments model;
    ErmArguments erm;
    std::string alpha, solver = "automatic", record;
    int dim = 100, seeds = 1, test_samples = 0;
    TokenArguments tokens;
    estimators::ErmOptions training;
    CheckpointArguments checkpoint;
};

using losses::least_regularization;

struct Run {
    double error = 0, training_loss = 0, zero_fraction = 0, kkt_residual = 0, iterations = 0, seconds = 0,
           generalization = 0;
    Termination status = Termination::stopped;
    std::vector<estimators::ErmIteration> record{};
};

template <class Archive>
void visit(Archive& archive, Run& run) {
    archive("error", run.error);
    archive("training_loss", run.training_loss);
    archive("zero_fraction", run.zero_fraction);
    archive("kkt_residual", run.kkt_residual);
    archive("iterations", run.iterations);
    archive("seconds", run.seconds);
    archive("generalization", run.generalization);
    archive("status", run.status);
    archive("record", run.record);
}

Run run_once(const Arguments& arguments, const model::Model& model, const losses::Loss& loss,
             const data::SyntheticOptions& synthetic, double regularization, RunFile<Run>& store,
             Progress& progress, ThreadPool& pool) {
    const data::Synthetic problem = data::make_synthetic(model.priors(), model.channel(), synthetic, pool);
    estimators::ErmOptions options = arguments.training;
    options.regularization = regularization;
    store.connect(arguments.checkpoint.every, options);
    const auto measure = [&](const linalg::Matrix& estimate) {
        return data::estimation_error(estimate, problem.weights[0]);
    };
    if (!arguments.record.empty()) options.measure = measure;
    options.progress = [&](const estimators::ErmIteration& now) {
        progress.update(
            static_cast<double>(now.iteration) / options.max_iterations,
            fmt::format("alpha {:g}, lambda {:g}, seed {}, iteration {}, change {:.1e}", synthetic.alpha,
                        regularization, synthetic.seed, now.iteration, now.change));
        return !interrupted();
    };
    const estimators::ErmResult result = run_erm(problem.data, loss, options, pool);
    Run run;
    run.status = result.status;
    if (run.status == Termination::stopped) return run;
    run.error = measure(result.estimate);
    run.training_loss = result.training_loss;
    run.zero_fraction = result.zero_fraction;
    run.kkt_residual = result.kkt_residual;
    run.iterations = static_cast<double>(result.record.size());
    for (const auto& now : result.record) run.seconds += now.seconds / run.iterations;
    run.record = result.record;
    if (arguments.test_samples > 0) {
        const data::TestSet test = data::make_test_set(problem.weights, model.channel(),
                                                       arguments.test_samples, synthetic.seed, pool);
        const auto prediction = estimators::predict(*test.tokens, result.estimate, 0, model.channel(), pool);
        run.generalization =
            estimators::mean_squared_distance(prediction.plug_in, test.targets, test.tokens->shares(), pool);
    }
    return run;
}

numerics::Mean mean_over(const std::vector<Run>& runs, double Run::*member) {
    std::vector<double> values;
    for (const Run& run : runs) values.push_back(run.*member);
    return numerics::mean_of(values).value_or(numerics::Mean{std::nan("")});
}

Record summarise(const Arguments& arguments, const std::vector<Run>& runs, const theory::ErmPoint& theory,
                 double bayes_error) {
    const auto mean = [&](double Run::*member) { return mean_over(runs, member); };
    const numerics::Mean error = mean(&Run::error), loss = mean(&Run::training_loss),
                         zeros = mean(&Run::zero_fraction);
    double worst_residual = 0;
    Termination status = runs.front().status;
    for (const Run& run : runs) {
        worst_residual = std::max(worst_residual, run.kkt_residual);
        if (succeeded(status)) status = run.status;
    }
    Record point = {{"alpha", theory.alpha},
                    {"regularization", theory.regularization},
                    {"dim", arguments.dim},
                    {"seeds", runs.size()},
                    {"mean_error", error.value},
                    {"standard_error", error.standard_error},
                    {"theory_error", theory.error},
                    {"z_score", error.z_score(theory.error)},
                    {"difference_percent", percent_above(error.value, theory.error)},
                    {"bayes_error", bayes_error},
                    {"training_loss", loss.value},
                    {"training_loss_standard_error", loss.standard_error},
                    {"theory_training_loss", theory.training_loss},
                    {"zero_fraction", zeros.value},
                    {"zero_fraction_standard_error", zeros.standard_error},
                    {"theory_zero_fraction", theory.zero_fraction}};
    if (arguments.test_samples > 0) {
        const numerics::Mean measured = mean(&Run::generalization);
        point.update({{"generalization_error", measured.value},
                      {"generalization_standard_error", measured.standard_error},
                      {"theory_generalization_error", theory.generalization_error}});
    }
    point.update({{"kkt_residual", worst_residual},
                  {"iterations", mean(&Run::iterations).value},
                  {"seconds_per_iteration", mean(&Run::seconds).value},
                  {"status", to_string(status)}});
    return point;
}

int run(Arguments arguments) {
    data::SyntheticOptions synthetic = arguments.tokens.synthetic(arguments.dim);
    estimators::ErmOptions& training = arguments.training;
    training.solver = estimators::parse_solver("--solver", arguments.solver);
    check_positive("--tolerance", training.tolerance);
    check_non_negative("--damping", training.damping);
    if (training.damping >= 1) throw_invalid("--damping", "below 1", training.damping);
    arguments.checkpoint.check();
    arguments.erm.chosen();
    const auto regularizations = arguments.erm.regularizations();
    for (const auto& value : regularizations) {
        if (value == 0.0)
            throw_invalid(
                "--regularization",
                fmt::format("positive: training needs it to choose one of many minima ({:g} is close to "
                            "the limit 0+, which `theory --estimator erm` has)",
                            least_regularization),
                0);
    }
    const experiments::Grid grid("--alpha", arguments.alpha);
    arguments.check_writable();
    check_writable(arguments.record);
    check_writable(arguments.checkpoint.file);
    const model::Model model = arguments.model.make();
    const auto loss = arguments.erm.make_loss(model.channel());
    const spectral::SpectralLaw& teacher = teacher_of(model);
    ThreadPool pool(arguments.thread_count(), ranks());
    catch_interrupts();
    theory::ErmOptions theory_options = arguments.erm.options({.pool = &pool});
    training.penalty = theory_options.penalty;

    Report report{"erm", model::describe(model)}, iterations{"erm"};
    arguments.erm.describe(*loss, report.configuration);
    report.configuration.update({{"alpha", arguments.alpha},
                                 {"dim", arguments.dim},
                                 {"seed", arguments.seed},
                                 {"seeds", arguments.seeds},
                                 {"solver", arguments.solver},
                                 {"tolerance", training.tolerance},
                                 {"damping", training.damping},
                                 {"max_iterations", training.max_iterations},
                                 {"token_storage", arguments.tokens.storage},
                                 {"precision", arguments.tokens.precision},
                                 {"test_samples", arguments.test_samples}});

    RunFile<Run> store(arguments.checkpoint, report);
    const auto curve = theory::make_curve(model.laws(), model.channel().geometry());
    const std::vector<double> alphas = grid.values(strong_recovery(*curve, model.channel()));
    Progress progress(arguments.quiet,
                      alphas.size() * regularizations.size() * static_cast<std::size_t>(arguments.seeds));
    std::size_t done = 0;  // runs of the checkpoint that were used
    for (const auto& wanted : regularizations) {
        for (const double alpha : alphas) {
            if (any_rank_interrupted()) break;
            const double regularization =
                wanted ? *wanted
                       : std::max(solve_optimal_erm(teacher, *loss, alpha, theory_options).regularization,
                                  least_regularization);
            std::vector<Run> runs;
            for (int i = 0; i < arguments.seeds && !any_rank_interrupted(); ++i) {
                synthetic.alpha = alpha;
                synthetic.seed = arguments.seed + static_cast<std::uint64_t>(i);
                if (done == store.finished().size()) {
                    Run now =
                        run_once(arguments, model, *loss, synthetic, regularization, store, progress, pool);
                    if (now.status == Termination::stopped) break;  // a stopped run has no result
                    store.finish(std::move(now));
                    progress.finish_item();
                } else {
                    progress.skip_item();
                }
                Run run = store.finished()[done++];
                for (const estimators::ErmIteration& iteration : run.record) {
                    Record row = {
                        {"alpha", alpha}, {"regularization", regularization}, {"seed", synthetic.seed}};
                    row.update(estimators::values(iteration));
                    iterations.points.push_back(std::move(row));
                }
                runs.push_back(std::move(run));
            }
            if (runs.empty()) break;
            report.points.push_back(summarise(
                arguments, runs, solve_erm(teacher, *loss, alpha, regularization, theory_options),
                solve_state_evolution(*curve, model.channel(), alpha, theory::Start::uninformed).error()));
        }
    }
    progress.clear();
    write_csv(arguments.record, iterations);
    if (!arguments.quiet) explain_differences(report, "training");
    return arguments.publish(report, is_success, arguments.checkpoint.remark());
}

}  // namespace

void add_erm(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "erm",
        "Attention trained with weight decay on synthetic data, solved to its minimum, beside its theory",
        run, Program::Runs::divided);
    command.text("--alpha", arguments.alpha, "samples per d^2, as in `theory`", "GRID").required();
    arguments.erm.add_to(command);
    arguments.model.add_channel_to(command, ModelArguments::Channels::smooth);
    arguments.model.add_prior_to(command);
    command.count("--dim", arguments.dim, 2, "dimension d");
    command.count("--seeds", arguments.seeds, 1, "number of independent problems");
    command.count("--test-samples", arguments.test_samples, 0,
                  "new samples on which predictions are measured; adds generalisation errors to the result");
    auto& training = arguments.training;
    command
        .text("--solver", arguments.solver,
              "message-passing, proximal-gradient, or automatic: the first, and where it fails the second")
        .values({"automatic", "message-passing", "proximal-gradient"});
    command.number("--tolerance", training.tolerance,
                   "stop at this KKT residual, the distance from the minimum in units of a step");
    command.number("--damping", training.damping, "of message passing: 0 or more, below 1");
    command.count("--iterations", training.max_iterations, 1, "maximum number of iterations");
    arguments.tokens.add_to(command);
    arguments.checkpoint.add_to(command, "iterations");
    command.text("--record", arguments.record, "CSV file of every iteration of every run", "FILE");
    arguments.add_to(command);
    command.footer(
        "Examples:\n  bayesaim erm --width 0.5 --alpha 0.12 --regularization 0.05 --seeds 4\n"
        "  bayesaim erm --channel linear --label-noise 0.5 --width 0.5 --alpha 0.1,0.2,0.4 --regularization "
        "optimal\n"
        "  bayesaim erm --loss cross-entropy --width 0.5 --alpha 0.12 --regularization log:0.01:0.2:4");
}

}  // namespace bayesaim::program
