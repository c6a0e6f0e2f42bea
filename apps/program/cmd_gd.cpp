// SPDX-License-Identifier: MIT
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/dry_run.hpp"
#include "program/interrupt.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"
#include "program/ranks.hpp"
#include "program/run_file.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    ModelArguments model;  // the prior is wishart: teacher and student are W W'
    double width = 1;
    std::string alpha, optimizer = "adam", precision = "float", record, starts_record;
    CheckpointArguments checkpoint{.file = {}, .every = 100};
    double student_width = 0;  // default: the teacher's
    int dim = 100, seeds = 1, starts = 1, batch_size = 0;
    std::string divide = "automatic";
    bool no_amp = false, dry_run = false;
    estimators::GradientDescentOptions descent;
};

/// A finished run: one seed at one alpha.
struct GdRun {
    std::vector<double> errors,
        averaged;  ///< of each start, and of the mean of the first ones; NaN: diverged
    std::vector<std::vector<estimators::DescentStep>> records{};
    std::vector<int> steps{};
    std::vector<Termination> ends{};
    double seconds_per_step = 0;
    std::optional<double> amp_error{};
    std::optional<double> training_objective{};  ///< mean over starts; with weight decay only
    Termination status = Termination::stopped;
};

template <class Archive>
void visit(Archive& archive, GdRun& run) {
    archive("errors", run.errors);
    archive("averaged", run.averaged);
    archive("records", run.records);
    archive("steps", run.steps);
    archive("ends", run.ends);
    archive("seconds_per_step", run.seconds_per_step);
    archive("amp_error", run.amp_error);
    archive("training_objective", run.training_objective);
    archive("status", run.status);
}

// ---- settings -----------------------------------------------------------------------------------------

void check(const Arguments& arguments) {
    const auto& descent = arguments.descent;
    check_one_of("--optimizer", arguments.optimizer, {"adam", "gd"});
    check_one_of("--divide", arguments.divide, {"automatic", "samples", "starts"});
    for (const char* option : {"--beta1", "--beta2", "--epsilon"}) {
        if (arguments.optimizer != "adam" && arguments.model.command.given(option))
            throw_inapplicable(option, "--optimizer adam",
                               fmt::format("optimizer is {}", arguments.optimizer));
    }
    check_positive("--width", arguments.width);
    if (arguments.model.command.given("--student-width"))
        check_positive("--student-width", arguments.student_width);
    check_positive("--learning-rate", descent.learning_rate);
    for (const auto& [name, value] : {std::pair{"--beta1", descent.beta1}, {"--beta2", descent.beta2}}) {
        check_non_negative(name, value);
        if (value >= 1) throw_invalid(name, "below 1", value);
    }
    check_positive("--epsilon", descent.epsilon);
    check_non_negative("--weight-decay", descent.weight_decay);
    check_non_negative("--gradient-tolerance", descent.gradient_tolerance);
    check_non_negative("--loss-tolerance", descent.loss_tolerance);
    if (arguments.batch_size > 0 && arguments.divide == "samples")
        throw_conflict("--batch-size", "--divide samples");
    arguments.checkpoint.check();
}

Record describe_run(const Arguments& arguments, const model::Model& model) {
    const auto& descent = arguments.descent;
    Record settings = model::describe(model);
    settings.update({{"student_width", static_cast<double>(descent.width) / arguments.dim},
                     {"alpha", arguments.alpha},
                     {"dim", arguments.dim},
                     {"seed", arguments.seed},
                     {"seeds", arguments.seeds},
                     {"starts", arguments.starts},
                     {"steps", descent.max_steps},
                     {"optimizer", arguments.optimizer},
                     {"learning_rate", descent.learning_rate}});
    if (arguments.optimizer == "adam")
        settings.update({{"beta1", descent.beta1}, {"beta2", descent.beta2}, {"epsilon", descent.epsilon}});
    if (descent.weight_decay > 0) {
        const int factors = model.channel().geometry().symmetric() ? 1 : 2;
        settings.update(
            {{"weight_decay", descent.weight_decay},
             {"regularization", estimators::equivalent_regularization(descent.weight_decay, descent.width,
                                                                      arguments.dim, factors)}});
    }
    settings.update({{"batch_size", arguments.batch_size},
                     {"gradient_tolerance", descent.gradient_tolerance},
                     {"loss_tolerance", descent.loss_tolerance},
                     {"precision", arguments.precision},
                     {"record_every", descent.record_stride},
                     {"amp", !arguments.no_amp}});
    return settings;
}

/// Among several ranks: starts need no exchange, but each rank all samples. Mini-batches take samples from anywhere.
bool divides_starts(const Arguments& arguments) {
    if (arguments.divide != "automatic") return arguments.divide == "starts";
    return arguments.starts >= ranks().size() || arguments.batch_size > 0;
}

// ---- one run ------------------------------------------------------------------------------------------

/// Returns a run of status `stopped` if it was interrupted.
GdRun run_once(const Arguments& arguments, const model::Model& model, double alpha, std::uint64_t seed,
               RunFile<GdRun>& store, Progress& progress, ThreadPool& pool) {
    const data::Synthetic problem = data::make_synthetic(
        model.priors(), model.channel(), {.dim = arguments.dim, .alpha = alpha, .seed = seed}, pool);
    const auto measure = [&](const linalg::Matrix& estimate) {
        return data::estimation_error(estimate, problem.weights[0]);
    };
    estimators::AveragedGradientDescentOptions options;
    options.descent = arguments.descent;
    options.descent.seed = seed;
    options.descent.measure = measure;
    options.starts = arguments.starts;
    options.starts_over = divides_starts(arguments) ? &ranks() : nullptr;
    if (const auto state = store.take_next()) load(*state, "descents", options.resume);
    int saved = options.resume.empty() ? 0 : options.resume.front().step;
    options.progress_stride = std::min(10, arguments.checkpoint.every);
    options.progress = [&](const std::vector<estimators::Descent>& descents) {
        int furthest = 0;
        for (const auto& descent : descents) furthest = std::max(furthest, descent.step);
        const auto& record = descents.front().record;
        progress.update(static_cast<double>(furthest) / options.descent.max_steps,
                        fmt::format("alpha {:g}, seed {}, step {}, loss {:.4g}", alpha, seed, furthest,
                                    record.empty() ? 0 : record.back().loss));
        if (interrupted() || furthest >= saved + arguments.checkpoint.every) {
            saved = furthest;
            data::SavedState state;
            save(state, "descents", descents);
            store.save(std::move(state));
        }
        return !interrupted();
    };
    const auto result = run_averaged_gradient_descent(problem.data, model.channel(), options, pool);

    GdRun run;
    run.status = result.status;
    if (any_rank_interrupted()) run.status = Termination::stopped;
    if (run.status == Termination::stopped) return run;
    const estimators::StartErrors errors = measure_starts(result.descents, measure);
    run.errors = errors.each;
    run.averaged = errors.averaged;
    if (arguments.descent.weight_decay > 0) run.training_objective = training_objective(result.descents);
    for (const auto& descent : result.descents) {
        run.records.push_back(descent.record);
        run.steps.push_back(descent.step);
        run.ends.push_back(*descent.status);
        run.seconds_per_step += descent.seconds / (descent.step + 1) / arguments.starts;
    }
    if (!arguments.no_amp) {
        const auto amp = estimators::run_amp(problem.data, model.laws(), model.channel(), {}, pool);
        if (amp.status != Termination::diverged) run.amp_error = measure(amp.estimates[0]);
    }
    return run;
}

// ---- what is printed ----------------------------------------------------------------------------------

Record summarise(const Arguments& arguments, double alpha, std::span<const GdRun> runs, double theory_error) {
    const numerics::Mean lost{std::nan("")};
    std::vector<double> errors, averaged, amp, objectives;  // NaN for diverged runs
    double steps = 0, seconds = 0;
    Termination status = runs.front().status;
    for (const GdRun& run : runs) {
        errors.push_back(numerics::mean_of(run.errors).value_or(lost).value);
        averaged.push_back(run.averaged.back());
        amp.push_back(run.amp_error.value_or(std::nan("")));
        objectives.push_back(run.training_objective.value_or(std::nan("")));
        for (const int count : run.steps) steps += count / static_cast<double>(run.steps.size());
        seconds += run.seconds_per_step;
        if (succeeded(status) || run.status == Termination::diverged) status = run.status;
    }
    const double count = static_cast<double>(runs.size());
    const numerics::Mean error = numerics::mean_of(errors).value_or(lost),
                         average = numerics::mean_of(averaged).value_or(lost);
    Record point = {{"alpha", alpha},
                    {"dim", arguments.dim},
                    {"seeds", runs.size()},
                    {"starts", arguments.starts},
                    {"mean_error", error.value},
                    {"standard_error", error.standard_error},
                    {"averaged_error", average.value},
                    {"averaged_standard_error", average.standard_error},
                    {"theory_error", theory_error},
                    {"z_score", error.z_score(theory_error)},
                    {"difference_percent", percent_above(error.value, theory_error)},
                    {"amp_error", numerics::mean_of(amp).value_or(lost).value}};
    if (arguments.descent.weight_decay > 0)
        point["training_objective"] = numerics::mean_of(objectives).value_or(lost).value;
    point.update({{"iterations", steps / count},
                  {"seconds_per_step", seconds / count},
                  {"status", to_string(status)}});
    return point;
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
                                      {"true_error", *row.true_error}});
        }
        starts.points.push_back({{"alpha", alpha},
                                 {"seed", seed},
                                 {"start", m},
                                 {"error", run.errors[m]},
                                 {"averaged_error", run.averaged[m]},
                                 {"steps", run.steps[m]},
                                 {"status", to_string(run.ends[m])}});
    }
}

/// A run that took all its steps is a success, unless it has a tolerance.
bool as_asked(const Arguments& arguments, std::string_view status) {
    const bool by_steps = arguments.descent.gradient_tolerance == 0 && arguments.descent.loss_tolerance == 0;
    return is_success(status) || (by_steps && status == to_string(Termination::iteration_limit));
}

/// What it would take.
int plan(const Arguments& arguments, const model::Model& model, const std::vector<double>& alphas,
         Report report, ThreadPool& pool) {
    const auto trial = trial_of(model, {}, [&](const data::Synthetic& problem, ThreadPool& alone) {
        estimators::GradientDescentOptions options = arguments.descent;
        options.width = std::max<Eigen::Index>(
            1, options.width * problem.data.tokens->dim() / static_cast<Eigen::Index>(arguments.dim));
        options.batch_size = 0;
        const auto descent = make_gradient_descent(problem.data, model.channel(), options, alone);
        auto start = descent->start(0);
        constexpr int steps = 3;
        // Starts run one per thread, or one after the other with all threads.
        descent->advance(start, steps, &alone);
        return start.seconds / steps;
    });
    const bool by_starts = divides_starts(arguments);
    const int all = ranks().size(),
              own_starts = by_starts ? (arguments.starts + all - 1) / all : arguments.starts;
    const double columns =
        static_cast<double>(arguments.descent.width) * (model.channel().geometry().symmetric() ? 1 : 2);
    const double number = arguments.descent.precision == data::Precision::float_precision ? 4 : 8;
    for (const double alpha : alphas) {
        const double dim = arguments.dim;
        auto size = problem_size(model, dim, std::round(alpha * dim * dim), data::TokenStorage::memory,
                                 data::Precision::double_precision);
        const double batch =
            arguments.batch_size > 0 ? std::min<double>(arguments.batch_size, size.samples) : 0;
        auto of_step = size;
        if (batch > 0) of_step.samples = batch;
        const auto forecast =
            experiments::forecast(of_step, experiments::gd_operations_per_sample(size, columns),
                                  number * dim * columns, trial, pool);
        Record point = {{"alpha", alpha}, {"dim", arguments.dim}, {"seeds", arguments.seeds}};
        point.update(describe(size, forecast,
                              experiments::gd_bytes(size, columns, arguments.starts, number, pool.threads(),
                                                    by_starts ? 1 : static_cast<std::size_t>(all)),
                              static_cast<double>(arguments.descent.max_steps) * own_starts, arguments.seeds,
                              pool));
        point["ranks"] = all;
        if (all > 1) point["divided"] = by_starts ? "starts" : "samples";
        report.points.push_back(std::move(point));
    }
    return arguments.publish(report);
}

int run(Arguments arguments) {
    check(arguments);
    arguments.model.options.widths = {arguments.width};
    arguments.descent.width = estimators::student_columns(
        arguments.model.command.given("--student-width") ? arguments.student_width : arguments.width,
        arguments.dim);
    arguments.descent.optimizer =
        arguments.optimizer == "adam" ? estimators::Optimizer::adam : estimators::Optimizer::gradient_descent;
    arguments.descent.precision = data::parse_precision("--precision", arguments.precision);
    arguments.descent.batch_size = arguments.batch_size;
    const experiments::Grid grid("--alpha", arguments.alpha);
    const model::Model model = arguments.model.make();
    Report report{"gd", describe_run(arguments, model)}, history{"gd"}, starts{"gd"};
    arguments.check_writable();
    for (const std::string& file : {arguments.record, arguments.starts_record, arguments.checkpoint.file})
        check_writable(file);
    const auto made = theory::make_curve(model.laws(), model.channel().geometry());
    const theory::EstimationCurve& curve = *made;
    ThreadPool pool(arguments.thread_count(), divides_starts(arguments) ? one_process() : ranks());
    catch_interrupts();

    theory::StateEvolutionOptions theory_options;
    theory_options.integration.pool = &pool;
    const std::vector<double> alphas = grid.values(strong_recovery(curve, model.channel()));
    const auto seeds = static_cast<std::size_t>(arguments.seeds);
    if (arguments.dry_run) return plan(arguments, model, alphas, std::move(report), pool);
    RunFile<GdRun> store(arguments.checkpoint, report);
    Progress progress(arguments.quiet, alphas.size() * seeds);
    for (std::size_t point = 0; point < alphas.size() && !any_rank_interrupted(); ++point) {
        const double alpha = alphas[point];
        for (std::size_t i = 0; i < seeds && !any_rank_interrupted(); ++i) {
            const std::uint64_t seed = arguments.seed + i;
            if (store.finished().size() <= point * seeds + i) {
                GdRun run = run_once(arguments, model, alpha, seed, store, progress, pool);
                if (run.status == Termination::stopped) break;  // a stopped run has no result
                store.finish(std::move(run));
                progress.finish_item();
            } else {
                progress.skip_item();
            }
            const GdRun& run = store.finished()[point * seeds + i];
            add_rows(alpha, seed, run, history, starts);
        }
        const auto runs = std::span(store.finished()).subspan(point * seeds);
        if (runs.empty()) break;
        const auto theory =
            solve_state_evolution(curve, model.channel(), alpha, theory::Start::uninformed, theory_options);
        report.points.push_back(
            summarise(arguments, alpha, runs.first(std::min(seeds, runs.size())), theory.error()));
    }
    progress.clear();
    write_csv(arguments.record, history);
    write_csv(arguments.starts_record, starts);
    const auto good = [&](std::string_view status) { return as_asked(arguments, status); };
    return arguments.publish(report, good, arguments.checkpoint.remark());
}

}  // namespace

void add_gd(Program& program) {
    auto [command, arguments] =
        program.add_command<Arguments>("gd",
                                       "Gradient descent and its average over starts on synthetic data, "
                                       "compared with AMP and the Bayes-optimal error",
                                       run, Program::Runs::divided);
    command.text("--alpha", arguments.alpha, "samples per d^2, as in `theory`", "GRID").required();
    arguments.model.add_channel_to(command, ModelArguments::Channels::smooth);
    command.number("--width", arguments.width, "width ratio rho = r/d of the teacher");
    command
        .number("--student-width", arguments.student_width,
                "width ratio of the student (default: the teacher's)")
        .default_text("");
    command.count("--dim", arguments.dim, 2, "dimension d");
    command.count("--seeds", arguments.seeds, 1, "number of independent problems");
    command.count("--starts", arguments.starts, 1, "random starts M per problem; S is averaged over them");
    command
        .text("--divide", arguments.divide,
              "what ranks of mpirun divide: samples, starts (each rank keeps all samples), or automatic:\n"
              "starts if there are as many as ranks")
        .values({"automatic", "samples", "starts"});
    auto& descent = arguments.descent;
    command.count("--steps", descent.max_steps, 1, "maximum number of steps");
    command.text("--optimizer", arguments.optimizer, "adam, or gd (plain)").values({"adam", "gd"});
    command.number("--learning-rate", descent.learning_rate, "learning rate of both optimizers");
    command.number("--beta1", descent.beta1, "decay of Adam's mean gradient");
    command.number("--beta2", descent.beta2, "decay of Adam's mean squared gradient");
    command.number("--epsilon", descent.epsilon, "epsilon of Adam");
    command.number("--weight-decay", descent.weight_decay,
                   "adds this times ||W||_F^2 to the loss; with a student of width 1 or more, this is a\n"
                   "penalty on Tr S (untied attention: on the nuclear norm of S)");
    command.count("--batch-size", arguments.batch_size, 0, "samples per step (0: all)");
    command.number("--gradient-tolerance", descent.gradient_tolerance,
                   "stop at this gradient norm (0: never)");
    command.number("--loss-tolerance", descent.loss_tolerance, "stop at this loss (0: never)");
    command.text("--precision", arguments.precision, "precision of the descent: float or double")
        .values({"double", "float"});
    command.text("--record", arguments.record, "CSV file of loss and error along every descent", "FILE");
    command.count("--record-every", descent.record_stride, 1, "steps between rows of --record");
    command.text("--starts-record", arguments.starts_record,
                 "CSV file: the error of every start, and of the average as starts are added", "FILE");
    arguments.checkpoint.add_to(command, "steps");
    command.flag("--dry-run", arguments.dry_run,
                 "only estimate memory of a rank, operations and seconds, from trials of a few samples");
    command.flag("--no-amp", arguments.no_amp, "do not run AMP on the same data");
    arguments.add_to(command);
    command.footer(
        "Examples:\n  bayesaim gd --width 0.5 --alpha 0.06,0.12,0.25 --dim 100 --starts 32\n"
        "  bayesaim gd --channel linear --label-noise 0.5 --width 0.3 --student-width 1 --weight-decay 0.5 "
        "--alpha 0.2");
}

}  // namespace bayesaim::program
