// SPDX-License-Identifier: MIT
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "bayesaim/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/deep.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/interrupt.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "bayesaim/options.hpp"
#include "bayesaim/progress.hpp"
#include "bayesaim/theory/thresholds.hpp"

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
    const CLI::App* command = nullptr;
};

/// One run: a seed at one alpha.
struct Run {
    double error = 0, generalization = 0, plugin_generalization = 0, seconds = 0;
    int iterations = 0;
    Termination status = Termination::stopped;
    std::vector<estimators::AmpIteration> record;
};

Run run_once(const Arguments& arguments, const priors::Prior& prior, const channels::Channel& channel,
             double alpha, std::uint64_t seed, Progress& progress, ThreadPool& pool) {
    data::SyntheticOptions synthetic;
    synthetic.dim = arguments.dim;
    synthetic.alpha = alpha;
    synthetic.seed = seed;
    synthetic.storage =
        arguments.storage == "memory" ? data::TokenStorage::memory : data::TokenStorage::regenerate;
    synthetic.precision = arguments.precision == "double" ? data::Precision::double_precision
                                                          : data::Precision::float_precision;
    const data::Synthetic problem = data::make_synthetic(prior, channel, synthetic, pool);

    estimators::AmpOptions options = arguments.amp.options;
    if (arguments.initial == "prior") {  // as the paper starts
        options.initial_estimate = prior.sample(arguments.dim, seed, 1, pool);
        options.initial_error = 2 * prior.law().variance();
    } else if (arguments.initial == "informed") {
        options.initial_estimate = problem.weights;
        options.initial_error = theory::informed_error * prior.law().variance();
    }
    options.measure = [&](const linalg::Matrix& estimate) {
        return data::estimation_error(estimate, problem.weights);
    };
    options.progress = [&](const estimators::AmpIteration& now) {
        progress.update(static_cast<double>(now.iteration) / options.max_iterations,
                        fmt::format("alpha {:g}, seed {}, iteration {}, error {:.6f}", alpha, seed,
                                    now.iteration, *now.true_error));
        return !interrupted();
    };
    const estimators::AmpResult result = run_amp(problem.data, prior.law(), channel, options, pool);

    Run run;
    run.error = data::estimation_error(result.estimate, problem.weights);
    run.iterations = static_cast<int>(result.record.size());
    for (const auto& iteration : result.record) run.seconds += iteration.seconds;
    run.status = result.status;
    run.record = result.record;
    if (arguments.test_samples > 0 && run.status != Termination::stopped) {
        const data::TestSet test =
            data::make_test_set(problem.weights, channel, arguments.test_samples, seed, pool);
        const estimators::Prediction prediction =
            estimators::predict(*test.tokens, result.estimate, result.predicted_error, channel, pool);
        run.generalization = estimators::mean_squared_distance(prediction.bayes_optimal, test.targets);
        run.plugin_generalization = estimators::mean_squared_distance(prediction.plug_in, test.targets);
    }
    return run;
}

numerics::Mean mean_over(const std::vector<Run>& runs, double Run::*member) {
    std::vector<double> values;
    for (const Run& run : runs) values.push_back(run.*member);
    return numerics::mean_of(values).value();  // a diverged run returns its best, finite iterate
}

/// Mean over seeds beside theory; z counts standard errors. The first status that is not a success stands for
/// all.
Json summarise(const Arguments& arguments, double alpha, const std::vector<Run>& runs,
               const theory::FixedPoint& theory, const channels::GeneralizationError& generalization) {
    const double count = static_cast<double>(runs.size());
    double iterations = 0, seconds = 0;
    Termination status = runs.front().status;
    for (const Run& run : runs) {
        iterations += run.iterations / count;
        seconds += run.seconds / std::max(1, run.iterations) / count;
        if (succeeded(status) && !succeeded(run.status)) status = run.status;
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

/// Several layers have an AMP of their own, with other defaults.
int run_deep(const Arguments& arguments) {
    for (const char* option : {"--record", "--token-storage", "--precision", "--initial",
                               "--adaptive-damping", "--test-samples"}) {
        if (arguments.command->count(option) > 0) throw_invalid(option, "left out with deep-softmax", "it");
    }
    const auto given = [&](const char* option) { return arguments.command->count(option) > 0; };
    return run_deep_amp(
        {arguments.channel, arguments.prior, arguments.run, arguments.output, arguments.alpha},
        {arguments.dim, arguments.seeds, arguments.amp, given("--damping"), given("--tolerance")});
}

int run(const Arguments& arguments) {
    if (is_deep(arguments.channel)) return run_deep(arguments);
    check_one_of("--token-storage", arguments.storage, {"memory", "regenerate"});
    check_one_of("--precision", arguments.precision, {"double", "float"});
    check_one_of("--initial", arguments.initial, {"mean", "prior", "informed"});
    const experiments::Grid grid("--alpha", arguments.alpha);
    arguments.output.check_writable();
    if (!arguments.record.empty()) check_writable(arguments.record);
    const auto prior = make_prior(arguments.prior, arguments.channel);
    const auto channel = arguments.channel.make();
    const theory::SpectralCurve curve(prior->law());
    ThreadPool pool(arguments.run.thread_count());
    catch_interrupts();

    Report report{"amp"}, iterations{"amp"};
    report.configuration = describe(arguments.prior, *prior);
    describe(*channel, report.configuration);
    report.configuration["alpha"] = arguments.alpha;
    report.configuration["dim"] = arguments.dim;
    report.configuration["seed"] = arguments.run.seed;
    report.configuration["seeds"] = arguments.seeds;
    report.configuration["token_storage"] = arguments.storage;
    report.configuration["precision"] = arguments.precision;
    report.configuration["initial"] = arguments.initial;
    report.configuration["test_samples"] = arguments.test_samples;
    arguments.amp.describe(report.configuration);

    theory::StateEvolutionOptions theory_options;
    theory_options.integration.pool = &pool;
    const std::vector<double> alphas = grid.values(strong_recovery(curve, *channel));
    Progress progress(arguments.output.quiet, alphas.size() * static_cast<std::size_t>(arguments.seeds));
    bool good = true;
    for (const double alpha : alphas) {
        std::vector<Run> runs;
        for (int i = 0; i < arguments.seeds && !interrupted(); ++i) {
            const std::uint64_t seed = arguments.run.seed + static_cast<std::uint64_t>(i);
            Run run = run_once(arguments, *prior, *channel, alpha, seed, progress, pool);
            progress.finish_item();
            if (run.status == Termination::stopped) break;  // half a run is not a result
            for (const auto& now : run.record) {
                iterations.points.push_back({{"alpha", alpha},
                                             {"seed", seed},
                                             {"iteration", now.iteration},
                                             {"true_error", *now.true_error},
                                             {"predicted_error", now.predicted_error},
                                             {"self_overlap", now.self_overlap},
                                             {"conjugate_overlap", now.conjugate},
                                             {"change", now.change},
                                             {"seconds", now.seconds}});
            }
            good &= succeeded(run.status);
            runs.push_back(std::move(run));
        }
        if (runs.empty()) break;
        const auto theory =
            solve_state_evolution(curve, *channel, alpha, theory::Start::uninformed, theory_options);
        report.points.push_back(summarise(arguments, alpha, runs, theory,
                                          arguments.test_samples > 0 ? generalization_error(theory, *channel)
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
    arguments->command = command;
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
    command->add_option("--precision", arguments->precision, "of the tokens: double or float")
        ->capture_default_str();
    command->add_option("--record", arguments->record, "CSV file of every iteration of every run");
    arguments->run.add_to(*command);
    arguments->output.add_to(*command);
    command->footer("Example:\n  bayesaim amp --width 0.5 --alpha 0.05,0.12 --dim 200 --seeds 4");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
