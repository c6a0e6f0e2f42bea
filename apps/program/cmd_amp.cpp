// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/text.hpp"
#include "bayesaim/estimators/fit.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/experiments/estimator_table.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/dry_run.hpp"
#include "program/host.hpp"
#include "program/interrupt.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"
#include "program/ranks.hpp"
#include "program/run_file.hpp"
#include "program/spectra.hpp"

namespace bayesaim::program {
namespace {

/// What is learned.
struct Learned {
    bool label_noise = false;
    estimators::Family family = estimators::Family::given;
};

struct Arguments : CommonArguments {
    ModelArguments model;
    std::string alpha, initial = "mean", record;
    int dim = 100, seeds = 1, test_samples = 0;
    std::string learn;
    Learned learned{};  // what --learn says
    TokenArguments tokens;
    AmpArguments amp;
    CheckpointArguments checkpoint;
    bool dry_run = false;
};

Learned parse_learn(const Arguments& arguments) {
    Learned learned;
    if (arguments.learn.empty()) return learned;
    for (const std::string_view word : split(arguments.learn, ',')) {
        const std::size_t what = check_one_of("--learn", word, {"width", "spectrum", "label-noise"});
        if (what < 2 && learned.family != estimators::Family::given)
            throw_conflict("--learn width", "spectrum");
        switch (what) {
            case 0:
                learned.family = estimators::Family::weights;
                break;
            case 1:
                learned.family = estimators::Family::smooth;
                break;
            default:
                learned.label_noise = true;
        }
    }
    if (learned.label_noise && arguments.model.options.channel != "linear")
        throw_inapplicable("--learn label-noise", "--channel linear",
                           fmt::format("channel is {}", arguments.model.options.channel));
    return learned;
}

/// One run: a seed at one alpha.
struct Run {
    linalg::Overlap errors;  ///< between layers
    Termination status = Termination::stopped;
    std::vector<estimators::AmpIteration> record{};
    double error = 0, generalization = 0, plugin_generalization = 0;
    double width = 0, scale = 0, label_noise = 0;  ///< learned
};

template <class Archive>
void visit(Archive& archive, Run& run) {
    archive("errors", run.errors);
    archive("status", run.status);
    archive("record", run.record);
    archive("error", run.error);
    archive("generalization", run.generalization);
    archive("plugin_generalization", run.plugin_generalization);
    archive("width", run.width);
    archive("scale", run.scale);
    archive("label_noise", run.label_noise);
}

/// One row of the record.
Record row_of(const data::SyntheticOptions& synthetic, const estimators::AmpIteration& iteration) {
    Record row = {{"alpha", synthetic.alpha}, {"seed", synthetic.seed}};
    row.update(estimators::values(iteration));
    return row;
}

/// The data without their prior: its law, or the label noise, is learned.
Run learn_once(const Arguments& arguments, const model::Model& model, const data::Synthetic& problem,
               const estimators::AmpOptions& amp, ThreadPool& pool) {
    estimators::FitOptions options;
    options.families = {arguments.learned.family};
    options.learn_label_noise = arguments.learned.label_noise;
    options.holdout = 0;
    options.tokens_as_given = true;
    options.amp = amp;
    options.amp.initial_estimates.clear();
    const auto channel_of = [&](double label_noise) { return arguments.model.make_channel(label_noise); };
    const estimators::FitResult result =
        estimators::fit(problem.data, channel_of, arguments.model.options.channel_options.label_noise,
                        model.laws(), options, pool);
    Run run{estimators::measured_error(result, model.channel(), problem.weights), result.status,
            result.record};
    // Hardmax does not show the scale of S, which is then that of the law; back to that of the weights.
    if (result.learned.law && !model.channel().smooth_output())
        run.errors *= problem.weights[0].squaredNorm() / static_cast<double>(problem.weights[0].rows()) /
                      result.learned.law->second_moment();
    run.error = run.errors.trace();
    run.width = result.learned.width.value_or(0);
    run.scale = result.learned.scale.value_or(0);
    run.label_noise = result.label_noise;
    return run;
}

Run run_once(const Arguments& arguments, const model::Model& model, const data::SyntheticOptions& synthetic,
             RunFile<Run>& store, Progress& progress, ThreadPool& pool) {
    const data::Synthetic problem = data::make_synthetic(model.priors(), model.channel(), synthetic, pool);
    estimators::AmpOptions options = arguments.amp.options;
    store.connect(arguments.checkpoint.every, options);
    experiments::set_initial(arguments.initial, model, problem, synthetic.seed, options, pool);
    options.measure = [&](std::span<const linalg::Matrix> estimates) {
        return data::estimation_errors(model.channel().geometry(), estimates, problem.weights);
    };
    const Host* host = Host::current();
    std::vector<double> eigenvalues;  // of R, which only a host shows
    if (host != nullptr && model.channel().components() == 1)
        options.observe = [&](std::span<const linalg::Matrix> noisy) {
            eigenvalues = eigenvalues_of(noisy[0], model.channel().geometry().symmetric());
        };
    options.progress = [&](const estimators::AmpIteration& now) {
        if (host != nullptr) {
            Record news = row_of(synthetic, now);
            news["eigenvalues"] = eigenvalues;
            host->news(news);
        }
        progress.update(static_cast<double>(now.iteration) / options.max_iterations,
                        fmt::format("alpha {:g}, seed {}, iteration {}, error {:.6f}", synthetic.alpha,
                                    synthetic.seed, now.iteration, now.true_error->trace()));
        return !interrupted();
    };
    if (!arguments.learn.empty()) return learn_once(arguments, model, problem, options, pool);
    const estimators::AmpResult result =
        estimators::run_amp(problem.data, model.laws(), model.channel(), options, pool);
    Run run{options.measure(result.estimates), result.status, result.record};
    run.error = run.errors.trace();
    if (arguments.test_samples > 0 && run.status != Termination::stopped) {
        const data::TestSet test = data::make_test_set(problem.weights, model.channel(),
                                                       arguments.test_samples, synthetic.seed, pool);
        const estimators::Prediction prediction = estimators::predict(
            *test.tokens, test.keys(), result.estimates, result.predicted_error, model.channel(), pool);
        run.generalization = estimators::mean_squared_distance(prediction.bayes_optimal, test.targets,
                                                               test.tokens->shares(), pool);
        run.plugin_generalization =
            estimators::mean_squared_distance(prediction.plug_in, test.targets, test.tokens->shares(), pool);
    }
    return run;
}

numerics::Mean mean_over(const std::vector<Run>& runs, double Run::*member) {
    std::vector<double> values;
    for (const Run& run : runs) values.push_back(run.*member);
    return numerics::mean_of(values).value();  // finite: a diverged run returns its most consistent iterate
}

/// Mean over seeds and theory; z counts standard errors. The status is the first that is not a success.
Record summarise(const Arguments& arguments, double alpha, const std::vector<Run>& runs,
                 const theory::FixedPoint& theory, const channels::GeneralizationError& generalization) {
    const double count = static_cast<double>(runs.size());
    double iterations = 0, seconds = 0;
    linalg::Overlap errors = 0 * runs.front().errors;
    Termination status = runs.front().status;
    for (const Run& run : runs) {
        const double length = static_cast<double>(run.record.size());
        iterations += length / count;
        for (const auto& now : run.record) seconds += now.seconds / length / count;
        errors += run.errors / count;
        if (succeeded(status)) status = run.status;
    }
    const numerics::Mean error = mean_over(runs, &Run::error);
    const double theory_error = theory.error();
    Record point = {{"alpha", alpha},
                    {"dim", arguments.dim},
                    {"seeds", runs.size()},
                    {"mean_error", error.value},
                    {"standard_error", error.standard_error},
                    {"theory_error", theory_error},
                    {"z_score", error.z_score(theory_error)},
                    {"difference_percent", percent_above(error.value, theory_error)}};
    if (errors.rows() > 1) {
        point["layer_errors"] = linalg::diagonal_value(errors);
        point["theory_layer_errors"] = linalg::diagonal_value(theory.parameters.error);
    }
    if (arguments.test_samples > 0) {
        const numerics::Mean measured = mean_over(runs, &Run::generalization),
                             plug_in = mean_over(runs, &Run::plugin_generalization);
        point["generalization_error"] = measured.value;
        point["generalization_standard_error"] = measured.standard_error;
        point["theory_generalization_error"] = generalization.bayes_optimal;
        point["plugin_generalization_error"] = plug_in.value;
        point["plugin_generalization_standard_error"] = plug_in.standard_error;
        point["theory_plugin_generalization_error"] = generalization.plug_in;
    }
    if (!arguments.learn.empty()) {
        const Learned& learned = arguments.learned;
        if (learned.family == estimators::Family::weights) {
            point["learned_width"] = mean_over(runs, &Run::width).value;
            point["learned_scale"] = mean_over(runs, &Run::scale).value;
        }
        if (learned.label_noise) point["learned_label_noise"] = mean_over(runs, &Run::label_noise).value;
    }
    point["iterations"] = iterations;
    point["seconds_per_iteration"] = seconds;
    point["status"] = to_string(status);
    return point;
}

/// What it would take.
int plan(const Arguments& arguments, const model::Model& model, const std::vector<double>& alphas,
         const data::SyntheticOptions& synthetic, Report report, ThreadPool& pool) {
    constexpr int usual_iterations = 80;
    const auto trial = trial_of(model, synthetic, [&](const data::Synthetic& problem, ThreadPool& alone) {
        return amp_seconds(model, problem, alone);
    });
    for (const double alpha : alphas) {
        const double rows = arguments.dim,
                     columns = static_cast<double>(model.laws().front()->columns(arguments.dim));
        const auto size = problem_size(model, rows, std::round(alpha * rows * columns), synthetic.storage,
                                       synthetic.precision);
        Record point = {{"alpha", alpha}, {"dim", arguments.dim}, {"seeds", arguments.seeds}};
        point.update(amp_forecast(size, std::min(usual_iterations, arguments.amp.options.max_iterations),
                                  arguments.seeds, trial, pool));
        report.points.push_back(std::move(point));
    }
    return arguments.publish(report);
}

int run(Arguments arguments) {
    data::SyntheticOptions synthetic = arguments.tokens.synthetic(arguments.dim);
    check_one_of("--initial", arguments.initial, {"mean", "prior", "informed"});
    arguments.amp.check();
    arguments.checkpoint.check();
    arguments.learned = parse_learn(arguments);
    if (!arguments.learn.empty() && arguments.test_samples > 0) throw_conflict("--test-samples", "--learn");
    if (!arguments.learn.empty() && arguments.model.command.given("--initial"))
        throw_conflict("--initial", "--learn");
    if (!arguments.learn.empty() && !arguments.checkpoint.file.empty())
        throw_conflict("--checkpoint", "--learn");
    const experiments::Grid grid("--alpha", arguments.alpha);
    arguments.check_writable();
    check_writable(arguments.record);
    check_writable(arguments.checkpoint.file);
    const model::Model model = arguments.model.make();
    ThreadPool pool(arguments.thread_count(), ranks());
    catch_interrupts();

    Report report{"amp", model::describe(model)}, iterations{"amp"};
    report.configuration.update({{"alpha", arguments.alpha},
                                 {"dim", arguments.dim},
                                 {"seed", arguments.seed},
                                 {"seeds", arguments.seeds},
                                 {"token_storage", arguments.tokens.storage},
                                 {"precision", arguments.tokens.precision},
                                 {"initial", arguments.initial},
                                 {"test_samples", arguments.test_samples}});
    arguments.amp.describe(report.configuration);
    if (!arguments.learn.empty()) report.configuration["learn"] = arguments.learn;

    const auto made = theory::make_curve(model.laws(), model.channel().geometry());
    const theory::EstimationCurve& curve = *made;
    theory::StateEvolutionOptions theory_options;
    theory_options.integration.pool = &pool;
    const std::vector<double> alphas = grid.values(strong_recovery(curve, model.channel()));
    if (arguments.dry_run) return plan(arguments, model, alphas, synthetic, report, pool);
    RunFile<Run> store(arguments.checkpoint, report);
    Progress progress(arguments.quiet, alphas.size() * static_cast<std::size_t>(arguments.seeds));
    std::size_t done = 0;  // runs of the checkpoint that were used
    for (const double alpha : alphas) {
        std::vector<Run> runs;
        for (int i = 0; i < arguments.seeds && !any_rank_interrupted(); ++i) {
            synthetic.alpha = alpha;
            synthetic.seed = arguments.seed + static_cast<std::uint64_t>(i);
            if (done == store.finished().size()) {
                Run now = run_once(arguments, model, synthetic, store, progress, pool);
                if (now.status == Termination::stopped) break;  // a stopped run has no result
                store.finish(std::move(now));
                progress.finish_item();
            } else {
                progress.skip_item();
            }
            Run run = store.finished()[done++];
            for (const estimators::AmpIteration& iteration : run.record) {
                iterations.points.push_back(row_of(synthetic, iteration));
            }
            runs.push_back(std::move(run));
        }
        if (runs.empty()) break;
        const theory::FixedPoint theory =
            solve_state_evolution(curve, model.channel(), alpha, theory::Start::uninformed, theory_options);
        report.points.push_back(
            summarise(arguments, alpha, runs, theory,
                      arguments.test_samples > 0
                          ? generalization_error(theory, model.channel(), theory_options.integration)
                          : channels::GeneralizationError{}));
    }
    progress.clear();
    write_csv(arguments.record, iterations);
    if (!arguments.quiet) explain_differences(report, "AMP");
    return arguments.publish(report, is_success, arguments.checkpoint.remark());
}

}  // namespace

void add_amp(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "amp", "Approximate message passing on synthetic data, compared with the Bayes-optimal error", run,
        Program::Runs::divided);
    command.text("--alpha", arguments.alpha, "samples per d^2, as in `theory`", "GRID").required();
    arguments.model.add_channel_to(command);
    arguments.model.add_prior_to(command);
    command.count("--dim", arguments.dim, 2, "dimension d");
    command.count("--seeds", arguments.seeds, 1, "number of independent problems");
    command.count("--test-samples", arguments.test_samples, 0,
                  "new samples on which predictions are measured; adds generalisation errors to the result");
    arguments.amp.add_to(command);
    command
        .text("--learn", arguments.learn,
              "what AMP is not told, and learns: width (and scale), or spectrum, of S; label-noise; or "
              "two of them, as "
              "`fit` does\n(one layer)",
              "LIST")
        .values({"width", "spectrum", "label-noise"});
    command
        .text("--initial", arguments.initial,
              "start: mean (kappa1 I), prior (a draw, as in the paper) or informed (the truth)")
        .values({"mean", "prior", "informed"});
    arguments.tokens.add_to(command);
    arguments.checkpoint.add_to(command, "iterations");
    command.flag("--dry-run", arguments.dry_run,
                 "only estimate memory of a rank, operations and seconds, from trials of a few samples");
    command.text("--record", arguments.record, "CSV file of every iteration of every run", "FILE");
    arguments.add_to(command);
    command.footer(
        "Examples:\n  bayesaim amp --width 0.5 --alpha 0.05,0.12 --dim 200 --seeds 4\n"
        "  bayesaim amp --channel deep-softmax --layers 2 --width 0.5 --alpha 0.3 --test-samples 2000");
}

}  // namespace bayesaim::program
