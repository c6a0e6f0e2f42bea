// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "program/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/experiments/sweep.hpp"
#include "program/study.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    std::string file, shard = "1/1", directory;
    bool dry_run = false, retry_failed = false;
    StudyArguments study;
};

int plan(const Arguments& arguments, const experiments::Experiment& experiment,
         const std::filesystem::path& directory, const experiments::SweepOptions& options) {
    const experiments::SweepPlan plan = plan_sweep(experiment, directory, options);
    Report report{"sweep"};
    report.summary = {{"directory", directory.string()},
                      {"total", plan.tasks},
                      {"done", plan.done},
                      {"failed", plan.failed},
                      {"missing", plan.missing},
                      {"estimated_seconds", plan.seconds},
                      {"estimate_from", plan.missing == 0 ? "nothing to do"
                                        : plan.measured   ? "finished points"
                                                          : "operation counts"}};
    publish(report, arguments.study.format, "");
    return 0;
}

int run(const Arguments& arguments) {
    const experiments::Experiment experiment = experiments::read_experiment(arguments.file);
    experiments::SweepOptions options = arguments.study.options();
    options.shard = experiments::parse_shard("--shard", arguments.shard);
    options.retry_failed = arguments.retry_failed;
    std::filesystem::path directory = arguments.directory;
    if (directory.empty()) {
        directory = std::filesystem::path("results") / experiment.name;
        if (options.shard.count > 1) {
            directory += fmt::format("-shard-{}-of-{}", options.shard.index, options.shard.count);
        }
    }
    if (arguments.dry_run) return plan(arguments, experiment, directory, options);

    const experiments::SweepResult result =
        sweep_with_progress(arguments.study, experiment, directory, options);
    std::vector<experiments::Point> points;
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        if (options.shard.has(i)) points.push_back(result.points[i]);
    }
    const StudyCounts counts = count_points(points);
    Report report{"sweep"};
    report.summary = describe(directory, counts);
    report.summary["computed_now"] = result.computed;
    publish(report, arguments.study.format, "");
    return finish(counts, result.stopped);
}

}  // namespace

Action add_sweep(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand(
        "sweep", "A study from a TOML file: theory and algorithms over grids; can be killed and resumed");
    std::string known;
    for (const experiments::EstimatorEntry& entry : experiments::estimator_table())
        known += fmt::format("\n  {}: {}", entry.name, entry.summary);
    command
        ->add_option("FILE", arguments->file, "the study, see docs/guide.md; its estimator is one of" + known)
        ->required();
    command->add_option("--output", arguments->directory,
                        "run directory, made or resumed (results/NAME, NAME of the study)");
    command->add_option("--shard", arguments->shard, "i/N: only every N-th point, from the i-th on")
        ->capture_default_str();
    command->add_flag("--dry-run", arguments->dry_run, "count points and estimate the time, do nothing");
    command->add_flag("--retry-failed", arguments->retry_failed, "try points again that failed before");
    arguments->study.add_to(*command);
    command->footer("Example:\n  bayesaim sweep examples/study.toml --dry-run");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
