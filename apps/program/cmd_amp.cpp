// SPDX-License-Identifier: MIT
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "program/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/deep_attention.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "program/interrupt.hpp"
#include "program/model.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    PriorArguments prior;
    ChannelArguments channel;
    OutputArguments output;
    RunArguments run;
    std::string alpha, storage = "memory", precision = "double", initial = "mean", record;
    int dim = 100, seeds = 1, test_samples = 0;
    AmpArguments amp;
};

/// One run: a seed at one alpha.
struct Run {
    Learned learned;
    linalg::Overlap errors;  ///< between layers
    double error = 0, generalization = 0, plugin_generalization = 0;
};

Run run_once(const Arguments& arguments, const Model& model, const data::SyntheticOptions& synthetic,
             Progress& progress, ThreadPool& pool) {
    const double alpha = synthetic.alpha;
    const std::uint64_t seed = synthetic.seed;
    const data::DeepSynthetic problem =
        data::make_deep_synthetic(model.priors, *model.channel, synthetic, pool);

    AmpArguments amp = arguments.amp;
    if (arguments.initial == "prior") {  // as the paper starts
        amp.options.initial_estimate = model.priors[0]->sample(arguments.dim, seed, 1, pool);
        amp.options.initial_error = 2 * model.laws[0]->variance();
    } else if (arguments.initial == "informed") {
        amp.options.initial_estimate = problem.weights[0];
        amp.options.initial_error = theory::informed_error * model.laws[0]->variance();
    }
    const auto measure = [&](std::span<const linalg::Matrix> estimates) {
        return data::estimation_errors(estimates, problem.weights);
    };
    const auto show = [&](int iteration, int most, double error) {
        progress.update(
            static_cast<double>(iteration) / most,
            fmt::format("alpha {:g}, seed {}, iteration {}, error {:.6f}", alpha, seed, iteration, error));
        return !interrupted();
    };
    Run run{learn(problem.data, model, amp, {measure, show}, pool), {}};
    run.errors = measure(run.learned.estimates);
    run.error = run.errors.trace();
    if (arguments.test_samples > 0 && run.learned.status != Termination::stopped) {
        const data::TestSet test =
            data::make_deep_test_set(problem.weights, *model.channel, arguments.test_samples, seed, pool);
        const estimators::Prediction prediction = estimators::predict(
            *test.tokens, run.learned.estimates, run.learned.predicted_error, *model.channel, pool);
        run.generalization = estimators::mean_squared_distance(prediction.bayes_optimal, test.targets);
        run.plugin_generalization = estimators::mean_squared_distance(prediction.plug_in, test.targets);
    }
    run.learned.estimates.clear();  // many seeds would fill the memory
    return run;
}

numerics::Mean mean_over(const std::vector<Run>& runs, double Run::*member) {
    std::vector<double> values;
    for (const Run& run : runs) values.push_back(run.*member);
    return numerics::mean_of(values).value();  // a diverged run returns its best, finite iterate
}

/// Mean over seeds beside theory; z counts standard errors. The first status that is not a success stands for
/// all.
Json summarise(const Arguments& arguments, const Model& model, double alpha, const std::vector<Run>& runs,
               const theory::FixedPoint& theory, const channels::GeneralizationError& generalization) {
    const double count = static_cast<double>(runs.size());
    double iterations = 0, seconds = 0;
    linalg::Overlap errors = 0 * runs.front().errors;
    Termination status = runs.front().learned.status;
    for (const Run& run : runs) {
        const double length = static_cast<double>(run.learned.record.size());
        iterations += length / count;
        seconds += run.learned.seconds / std::max(1.0, length) / count;
        errors += run.errors / count;
        if (succeeded(status)) status = run.learned.status;
    }
    const numerics::Mean error = mean_over(runs, &Run::error);
    const double theory_error = theory.error();
    Json point = {{"alpha", alpha},
                  {"dim", arguments.dim},
                  {"seeds", runs.size()},
                  {"mean_error", error.value},
                  {"standard_error", or_null(error.standard_error)},
                  {"theory_error", theory_error},
                  {"z_score", or_null(error.z_score(theory_error))}};
    if (model.deep) {
        point["layer_errors"] = diagonal(errors);
        point["theory_layer_errors"] = diagonal(theory.parameters.error);
    }
    if (arguments.test_samples > 0) {
        const numerics::Mean measured = mean_over(runs, &Run::generalization),
                             plug_in = mean_over(runs, &Run::plugin_generalization);
        point["generalization_error"] = measured.value;
        point["generalization_standard_error"] = or_null(measured.standard_error);
        point["theory_generalization_error"] = generalization.bayes_optimal;
        point["plugin_generalization_error"] = plug_in.value;
        point["plugin_generalization_standard_error"] = or_null(plug_in.standard_error);
        point["theory_plugin_generalization_error"] = generalization.plug_in;
    }
    point["iterations"] = iterations;
    point["seconds_per_iteration"] = seconds;
    point["status"] = to_string(status);
    return point;
}

int run(const Arguments& arguments) {
    data::SyntheticOptions synthetic;
    synthetic.dim = arguments.dim;
    synthetic.storage = data::parse_token_storage("--token-storage", arguments.storage);
    synthetic.precision = data::parse_precision("--precision", arguments.precision);
    if (arguments.channel.deep()) check_one_of("--initial with several layers", arguments.initial, {"mean"});
    check_one_of("--initial", arguments.initial, {"mean", "prior", "informed"});
    const experiments::Grid grid("--alpha", arguments.alpha);
    arguments.output.check_writable();
    if (!arguments.record.empty()) check_writable(arguments.record);
    const Model model(arguments.prior, arguments.channel);
    ThreadPool pool(arguments.run.thread_count());
    catch_interrupts();

    Report report{"amp", model.configuration}, iterations{"amp"};
    report.configuration["alpha"] = arguments.alpha;
    report.configuration["dim"] = arguments.dim;
    report.configuration["seed"] = arguments.run.seed;
    report.configuration["seeds"] = arguments.seeds;
    report.configuration["token_storage"] = arguments.storage;
    report.configuration["precision"] = arguments.precision;
    report.configuration["initial"] = arguments.initial;
    report.configuration["test_samples"] = arguments.test_samples;
    arguments.amp.describe(model.deep, report.configuration);

    theory::StateEvolutionOptions theory_options;
    theory_options.integration.pool = &pool;
    const std::vector<double> alphas = grid.values(model.strong_recovery());
    Progress progress(arguments.output.quiet, alphas.size() * static_cast<std::size_t>(arguments.seeds));
    bool good = true;
    for (const double alpha : alphas) {
        std::vector<Run> runs;
        for (int i = 0; i < arguments.seeds && !interrupted(); ++i) {
            synthetic.alpha = alpha;
            synthetic.seed = arguments.run.seed + static_cast<std::uint64_t>(i);
            Run run = run_once(arguments, model, synthetic, progress, pool);
            progress.finish_item();
            if (run.learned.status == Termination::stopped) break;  // half a run is not a result
            for (const Json& iteration : run.learned.record) {
                Json row = {{"alpha", alpha}, {"seed", synthetic.seed}};
                row.update(iteration);
                iterations.points.push_back(std::move(row));
            }
            good &= succeeded(run.learned.status);
            runs.push_back(std::move(run));
        }
        if (runs.empty()) break;
        const theory::FixedPoint theory = model.solve(alpha, theory_options);
        report.points.push_back(
            summarise(arguments, model, alpha, runs, theory,
                      arguments.test_samples > 0
                          ? generalization_error(theory, *model.channel, theory_options.integration)
                          : channels::GeneralizationError{}));
    }
    progress.clear();
    if (!arguments.record.empty() && !iterations.points.empty())
        write_whole(arguments.record, format_csv(iterations));
    arguments.output.publish(report);
    if (interrupted()) {
        fmt::print(stderr, "bayesaim: interrupted; what was finished is above\n");
        return interrupted_exit_code;
    }
    return good ? 0 : 2;
}

}  // namespace

Action add_amp(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand(
        "amp",
        "Approximate message passing on synthetic data, beside the Bayes-optimal error it should reach");
    command->add_option("--alpha", arguments->alpha, "samples per d^2, as in `theory`")
        ->required()
        ->type_name("GRID");
    arguments->channel.add_to(*command);
    arguments->prior.add_to(*command);
    add_count(*command, "--dim", arguments->dim, 2, "dimension d");
    add_count(*command, "--seeds", arguments->seeds, 1, "how many independent problems");
    add_count(*command, "--test-samples", arguments->test_samples, 0,
              "new samples on which predictions are measured; adds generalisation errors to the result");
    arguments->amp.add_to(*command);
    command
        ->add_option("--initial", arguments->initial,
                     "mean (kappa1 I), prior (a draw, as the paper), informed (the truth)")
        ->capture_default_str();
    command->add_option("--token-storage", arguments->storage, "memory, or regenerate block by block")
        ->capture_default_str();
    command
        ->add_option("--precision", arguments->precision,
                     "of the tokens, and of one layer's products with them: double or float")
        ->capture_default_str();
    command->add_option("--record", arguments->record, "CSV file of every iteration of every run");
    arguments->run.add_to(*command);
    arguments->output.add_to(*command);
    command->footer(
        "Examples:\n  bayesaim amp --width 0.5 --alpha 0.05,0.12 --dim 200 --seeds 4\n"
        "  bayesaim amp --channel deep-softmax --layers 2 --width 0.5 --alpha 0.3 --test-samples 2000");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
