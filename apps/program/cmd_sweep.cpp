// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/experiments/sweep.hpp"

#include "program/commands.hpp"
#include "program/ranks.hpp"
#include "program/study.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    std::string file, shard = "1/1", directory;
    bool dry_run = false, retry_failed = false;
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
                                                          : "operation counts"},
                      {"estimated_bytes", static_cast<std::uint64_t>(std::min(plan.bytes, 9e18))}};
    return arguments.publish(report);
}

int run(const Arguments& arguments) {
    const experiments::Experiment experiment = experiments::read_experiment(arguments.file);
    const experiments::SweepOptions options{.shard = experiments::parse_shard("--shard", arguments.shard),
                                            .retry_failed = arguments.retry_failed,
                                            .threads = arguments.thread_count(),
                                            .ranks = &ranks()};
    std::filesystem::path directory = arguments.directory;
    if (directory.empty()) {
        directory = std::filesystem::path("results") / experiment.name;
        if (options.shard.count > 1) {
            directory += fmt::format("-shard-{}-of-{}", options.shard.index, options.shard.count);
        }
    }
    if (arguments.dry_run && !speaks()) return 0;
    if (arguments.dry_run) return plan(arguments, experiment, directory, options);

    const experiments::SweepResult result =
        sweep_with_progress(experiment, directory, options, arguments.quiet);
    StudyCounts counts;
    counts.add(result.points, options.shard);
    Report report{"sweep", {}, describe(directory, counts)};
    report.summary["computed_now"] = result.computed;
    publish(report, arguments.format, "");
    return finish(counts, result.stopped, arguments);
}

}  // namespace

void add_sweep(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "sweep", "Run a study from a TOML file: theory and algorithms over grids; can be killed and resumed",
        run, Program::Runs::on_all_ranks);
    std::string known;
    for (const experiments::EstimatorEntry& entry : experiments::estimator_table())
        known += fmt::format("\n  {}: {}", entry.name, entry.summary);
    command.text("FILE", arguments.file, "the study, see docs/guide.md; its estimator is one of" + known, "")
        .required();
    command.text(
        "--output", arguments.directory,
        "run directory, new or of this study, which is then resumed (default: results/NAME of the study)",
        "DIR");
    command.text("--shard", arguments.shard, "i/N: only every N-th point, from the i-th on", "i/N");
    command.flag("--dry-run", arguments.dry_run, "only count points, estimate time and peak memory");
    command.flag("--retry-failed", arguments.retry_failed, "compute failed points again");
    arguments.add_without_seed_to(command);
    command.footer(
        "Exit codes: 0 done, 1 bad usage or input, 2 points failed, 130 interrupted; points that did not\n"
        "converge are counted on standard error, and with --strict they make it 2.\n"
        "Example:\n  bayesaim sweep examples/study.toml --dry-run");
}

}  // namespace bayesaim::program
