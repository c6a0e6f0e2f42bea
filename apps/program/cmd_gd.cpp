// SPDX-License-Identifier: MIT
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "program/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "program/gd_runs.hpp"
#include "program/interrupt.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    PriorArguments prior;  // only its width: the student is W W', so is the teacher
    ChannelArguments channel;
    OutputArguments output;
    RunArguments run;
    std::string alpha, optimizer = "adam", precision = "float", record, starts_record, checkpoint;
    double student_width = 0;
    bool student_given = false;  // the teacher's unless given
    int dim = 100, seeds = 1, starts = 1, batch_size = 0, checkpoint_every = 100;
    bool no_amp = false, resume = false;
    estimators::GradientDescentOptions descent;
};

// ---- settings -----------------------------------------------------------------------------------------

void check(const Arguments& arguments) {
    const auto& descent = arguments.descent;
    const std::string& channel = arguments.channel.channel;
    if (channel.starts_with("hardmax"))
        throw_invalid("--channel", "softmax or linear (hardmax has no gradient)", channel);
    check_one_of("--channel", channel, {"softmax", "linear"});
    check_one_of("--optimizer", arguments.optimizer, {"adam", "gd"});
    check_positive("--width", arguments.prior.width);
    check_positive("--learning-rate", descent.learning_rate);
    for (const auto& [name, value] : {std::pair{"--beta1", descent.beta1}, {"--beta2", descent.beta2}}) {
        check_non_negative(name, value);
        if (value >= 1) throw_invalid(name, "below 1", value);
    }
    check_positive("--epsilon", descent.epsilon);
    check_non_negative("--gradient-tolerance", descent.gradient_tolerance);
    check_non_negative("--loss-tolerance", descent.loss_tolerance);
    if (arguments.resume && arguments.checkpoint.empty())
        throw_invalid("--resume", "used with --checkpoint FILE", "no file");
    if (!arguments.resume && !arguments.checkpoint.empty() && std::filesystem::exists(arguments.checkpoint))
        throw_invalid("--checkpoint", "a new file, or used with --resume", arguments.checkpoint);
}

/// Columns of the student.
Eigen::Index student_columns(const Arguments& arguments) {
    const bool given = arguments.student_given;
    const double width = given ? arguments.student_width : arguments.prior.width;
    const double columns = std::round(width * arguments.dim);
    if (!(columns >= 1) || columns > 1e6) {
        throw_invalid(given ? "--student-width" : "--width", "such that W has 1 to 1000000 columns", width);
    }
    return static_cast<Eigen::Index>(columns);
}

Json describe_run(const Arguments& arguments, const priors::Prior& prior, const channels::Channel& channel) {
    const auto& descent = arguments.descent;
    Json settings = describe(arguments.prior, prior);
    describe(channel, settings);
    settings["student_width"] = static_cast<double>(descent.width) / arguments.dim;
    settings["alpha"] = arguments.alpha;
    settings["dim"] = arguments.dim;
    settings["seed"] = arguments.run.seed;
    settings["seeds"] = arguments.seeds;
    settings["starts"] = arguments.starts;
    settings["steps"] = descent.max_steps;
    settings["optimizer"] = arguments.optimizer;
    settings["learning_rate"] = descent.learning_rate;
    if (arguments.optimizer == "adam") {
        settings["beta1"] = descent.beta1;
        settings["beta2"] = descent.beta2;
        settings["epsilon"] = descent.epsilon;
    }
    settings["batch_size"] = arguments.batch_size;
    settings["gradient_tolerance"] = descent.gradient_tolerance;
    settings["loss_tolerance"] = descent.loss_tolerance;
    settings["precision"] = arguments.precision;
    settings["record_every"] = descent.record_stride;
    settings["amp"] = !arguments.no_amp;
    return settings;
}

// ---- one run ------------------------------------------------------------------------------------------

/// Returns a run of status `stopped` when it was interrupted.
GdRun run_once(const Arguments& arguments, const priors::Prior& prior, const channels::Channel& channel,
               double alpha, std::uint64_t seed, GdRuns& store, Progress& progress, ThreadPool& pool) {
    data::SyntheticOptions synthetic;
    synthetic.dim = arguments.dim;
    synthetic.alpha = alpha;
    synthetic.seed = seed;
    const data::Synthetic problem = data::make_synthetic(prior, channel, synthetic, pool);
    const auto measure = [&](const linalg::Matrix& estimate) {
        return data::estimation_error(estimate, problem.weights);
    };
    estimators::AveragedGradientDescentOptions options;
    options.descent = arguments.descent;
    options.descent.seed = seed;
    options.descent.measure = measure;
    options.starts = arguments.starts;
    options.resume = store.take_descents();
    int saved = options.resume.empty() ? 0 : options.resume.front().step;
    options.progress_stride = std::min(10, arguments.checkpoint_every);
    options.progress = [&](const std::vector<estimators::Descent>& descents) {
        int furthest = 0;
        for (const auto& descent : descents) furthest = std::max(furthest, descent.step);
        const auto& record = descents.front().record;
        progress.update(static_cast<double>(furthest) / options.descent.max_steps,
                        fmt::format("alpha {:g}, seed {}, step {}, loss {:.4g}", alpha, seed, furthest,
                                    record.empty() ? 0 : record.back().loss));
        if (interrupted() || furthest >= saved + arguments.checkpoint_every) {
            saved = furthest;
            store.save(descents);
        }
        return !interrupted();
    };
    const auto result = run_averaged_gradient_descent(problem.data, channel, options, pool);

    GdRun run;
    run.status = result.status;
    if (interrupted()) run.status = Termination::stopped;
    if (run.status == Termination::stopped) return run;
    const estimators::StartErrors errors = measure_starts(result.descents, measure);
    run.errors = errors.each;
    run.averaged = errors.averaged;
    for (const auto& descent : result.descents) {
        run.records.push_back(descent.record);
        run.steps.push_back(descent.step);
        run.ends.push_back(*descent.status);
        run.seconds_per_step += descent.seconds / (descent.step + 1) / arguments.starts;
    }
    if (!arguments.no_amp) {
        const auto amp = estimators::run_amp(problem.data, prior.law(), channel, {}, pool);
        if (amp.status != Termination::diverged) run.amp_error = measure(amp.estimate);
    }
    return run;
}

// ---- what is printed ----------------------------------------------------------------------------------

Json summarise(const Arguments& arguments, double alpha, std::span<const GdRun> runs, double theory_error) {
    const numerics::Mean lost{std::nan("")};
    std::vector<double> errors, averaged, amp;  // NaN where a run was lost
    double steps = 0, seconds = 0;
    Termination status = runs.front().status;
    for (const GdRun& run : runs) {
        errors.push_back(numerics::mean_of(run.errors).value_or(lost).value);
        averaged.push_back(run.averaged.back());
        amp.push_back(run.amp_error.value_or(std::nan("")));
        for (const int count : run.steps) steps += count / static_cast<double>(run.steps.size());
        seconds += run.seconds_per_step;
        if (succeeded(status) || run.status == Termination::diverged) status = run.status;
    }
    const double count = static_cast<double>(runs.size());
    const numerics::Mean error = numerics::mean_of(errors).value_or(lost),
                         average = numerics::mean_of(averaged).value_or(lost);
    return {{"alpha", alpha},
            {"dim", arguments.dim},
            {"seeds", runs.size()},
            {"starts", arguments.starts},
            {"mean_error", finite_or_null(error.value)},
            {"standard_error", or_null(error.standard_error)},
            {"averaged_error", finite_or_null(average.value)},
            {"averaged_standard_error", or_null(average.standard_error)},
            {"theory_error", theory_error},
            {"z_score", or_null(error.z_score(theory_error))},
            {"amp_error", finite_or_null(numerics::mean_of(amp).value_or(lost).value)},
            {"iterations", steps / count},
            {"seconds_per_step", seconds / count},
            {"status", to_string(status)}};
}

void add_rows(double alpha, std::uint64_t seed, const GdRun& run, Report& history, Report& starts) {
    for (std::size_t m = 0; m < run.errors.size(); ++m) {
        for (const auto& row : run.records[m]) {
            history.points.push_back({{"alpha", alpha},
                                      {"seed", seed},
                                      {"start", m},
                                      {"step", row.step},
                                      {"loss", row.loss},
                                      {"gradient_norm", row.gradient_norm},
                                      {"true_error", finite_or_null(*row.true_error)}});
        }
        starts.points.push_back({{"alpha", alpha},
                                 {"seed", seed},
                                 {"start", m},
                                 {"error", finite_or_null(run.errors[m])},
                                 {"averaged_error", finite_or_null(run.averaged[m])},
                                 {"steps", run.steps[m]},
                                 {"status", to_string(run.ends[m])}});
    }
}

/// All steps done is what was asked for, unless a tolerance was asked for.
bool as_asked(const Arguments& arguments, Termination status) {
    const bool by_steps = arguments.descent.gradient_tolerance == 0 && arguments.descent.loss_tolerance == 0;
    return succeeded(status) || (by_steps && status == Termination::iteration_limit);
}

int run(Arguments arguments) {
    check(arguments);
    arguments.descent.width = student_columns(arguments);
    arguments.descent.optimizer =
        arguments.optimizer == "adam" ? estimators::Optimizer::adam : estimators::Optimizer::gradient_descent;
    arguments.descent.precision = data::parse_precision("--precision", arguments.precision);
    arguments.descent.batch_size = arguments.batch_size;
    const experiments::Grid grid("--alpha", arguments.alpha);
    const auto prior = arguments.prior.make();
    const auto channel = arguments.channel.make();
    Report report{"gd"}, history{"gd"}, starts{"gd"};
    report.configuration = describe_run(arguments, *prior, *channel);
    GdRuns store(arguments.checkpoint, arguments.resume, report.configuration);
    arguments.output.check_writable();
    for (const std::string& file : {arguments.record, arguments.starts_record, arguments.checkpoint}) {
        if (!file.empty()) check_writable(file);
    }
    const theory::SpectralCurve curve(prior->law());
    ThreadPool pool(arguments.run.thread_count());
    catch_interrupts();

    theory::StateEvolutionOptions theory_options;
    theory_options.integration.pool = &pool;
    const std::vector<double> alphas = grid.values(strong_recovery(curve, *channel));
    const auto seeds = static_cast<std::size_t>(arguments.seeds);
    Progress progress(arguments.output.quiet, alphas.size() * seeds);
    bool good = true;
    for (std::size_t point = 0; point < alphas.size() && !interrupted(); ++point) {
        const double alpha = alphas[point];
        for (std::size_t i = 0; i < seeds && !interrupted(); ++i) {
            const std::uint64_t seed = arguments.run.seed + i;
            if (store.finished().size() <= point * seeds + i) {
                GdRun run = run_once(arguments, *prior, *channel, alpha, seed, store, progress, pool);
                if (run.status == Termination::stopped) break;  // half a run is not a result
                store.finish(std::move(run));
            }
            progress.finish_item();
            const GdRun& run = store.finished()[point * seeds + i];
            add_rows(alpha, seed, run, history, starts);
            good &= as_asked(arguments, run.status);
        }
        const auto runs = std::span(store.finished()).subspan(point * seeds);
        if (runs.empty()) break;
        const auto theory =
            solve_state_evolution(curve, *channel, alpha, theory::Start::uninformed, theory_options);
        report.points.push_back(
            summarise(arguments, alpha, runs.first(std::min(seeds, runs.size())), theory.error()));
    }
    progress.clear();
    if (!arguments.record.empty() && !history.points.empty())
        write_whole(arguments.record, format_csv(history));
    if (!arguments.starts_record.empty() && !starts.points.empty())
        write_whole(arguments.starts_record, format_csv(starts));
    arguments.output.publish(report);
    if (interrupted()) {
        fmt::print(stderr, "bayesaim: interrupted; what was finished is above{}\n",
                   arguments.checkpoint.empty() ? "" : "; --resume goes on with the rest");
        return interrupted_exit_code;
    }
    return good ? 0 : 2;
}

}  // namespace

Action add_gd(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("gd",
                                           "Gradient descent and its average over starts on synthetic data, "
                                           "beside AMP and the Bayes-optimal error");
    command->add_option("--alpha", arguments->alpha, "samples per d^2, as in `theory`")
        ->required()
        ->type_name("GRID");
    arguments->channel.add_to(*command);
    add_number(*command, "--width", arguments->prior.width, "width ratio rho = r/d of the teacher");
    const CLI::Option* student =
        add_number(*command, "--student-width", arguments->student_width, "of the student")
            ->default_str("the teacher's");
    add_count(*command, "--dim", arguments->dim, 2, "dimension d");
    add_count(*command, "--seeds", arguments->seeds, 1, "how many independent problems");
    add_count(*command, "--starts", arguments->starts, 1, "starts M on each problem, whose S are averaged");
    auto& descent = arguments->descent;
    add_count(*command, "--steps", descent.max_steps, 1, "most steps");
    command->add_option("--optimizer", arguments->optimizer, "adam, or gd (plain)")->capture_default_str();
    add_number(*command, "--learning-rate", descent.learning_rate, "of either");
    add_number(*command, "--beta1", descent.beta1, "decay of Adam's mean gradient");
    add_number(*command, "--beta2", descent.beta2, "decay of Adam's mean squared gradient");
    add_number(*command, "--epsilon", descent.epsilon, "of Adam");
    add_count(*command, "--batch-size", arguments->batch_size, 0, "samples per step (0: all)");
    add_number(*command, "--gradient-tolerance", descent.gradient_tolerance,
               "stop at this gradient norm (0: never)");
    add_number(*command, "--loss-tolerance", descent.loss_tolerance, "stop at this loss (0: never)");
    command->add_option("--precision", arguments->precision, "of the descent: float or double")
        ->capture_default_str();
    command->add_option("--record", arguments->record, "CSV file of loss and error along every descent");
    add_count(*command, "--record-every", descent.record_stride, 1, "steps from one row of it to the next");
    command->add_option("--starts-record", arguments->starts_record,
                        "CSV file: the error of every start, and of the average as starts are added");
    command->add_option("--checkpoint", arguments->checkpoint,
                        "HDF5 file that keeps the state, for --resume after a crash");
    add_count(*command, "--checkpoint-every", arguments->checkpoint_every, 1, "steps between checkpoints");
    command->add_flag("--resume", arguments->resume, "go on from the checkpoint, to the same bits");
    command->add_flag("--no-amp", arguments->no_amp, "do not run AMP beside it");
    arguments->run.add_to(*command);
    arguments->output.add_to(*command);
    command->footer("Example:\n  bayesaim gd --width 0.5 --alpha 0.06,0.12,0.25 --dim 100 --starts 32");
    return [arguments, student] {
        arguments->student_given = student->count() > 0;
        return run(*arguments);
    };
}

}  // namespace bayesaim::program
