// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/version.hpp"

#include "program/commands.hpp"
#include "program/messages.hpp"
#include "program/study.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    std::string file, directory;
};

int run(const Arguments& arguments) {
    namespace fs = std::filesystem;
    const experiments::Provenance before = experiments::read_provenance(arguments.file);
    const fs::path file = fs::canonical(arguments.file), home = file.parent_path();
    fs::path directory = arguments.directory;
    if (directory.empty()) {
        // A file that is not called provenance.json belongs to a figure and has its name.
        const bool of_directory = file.filename() == experiments::provenance_name;
        directory = (of_directory ? home : home / file.stem()).string() + "-rerun";
    }
    if (fs::weakly_canonical(directory) == home) {
        throw_invalid("--output", "a directory other than that of the result",
                      fmt::format("'{}'", directory.string()));
    }
    if (!arguments.quiet && before.commit != git_commit()) {
        tell("bayesaim: the result is of version {}, commit {}; this is version {}, commit {}\n",
             before.version, before.commit, version(), git_commit());
    }
    const experiments::SweepOptions options{.shard = before.shard, .threads = arguments.thread_count()};
    if (experiments::plan_sweep(before.experiment, directory, options).missing == 0) {
        throw InvalidArgument(fmt::format(
            "'{}' holds a finished rerun of this study; remove it or choose another directory with --output",
            directory.string()));
    }
    const experiments::SweepResult result =
        sweep_with_progress(before.experiment, directory, options, arguments.quiet);

    const auto [compared, same] = experiments::compare(before.points, result.points);
    StudyCounts counts;
    counts.add(result.points, options.shard);
    Report report{"rerun", {}, describe(directory, counts)};
    report.summary.update({{"compared", compared}, {"same_bits", same}, {"different", compared - same}});
    publish(report, arguments.format, "");
    const int code = finish(counts, result.stopped, arguments);
    constexpr int different_bits = 3;
    return same < compared && !result.stopped ? different_bits : code;
}

}  // namespace

void add_rerun(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "rerun", "Repeat a study from its provenance.json, and compare the bits of the results", run);
    command.text("RESULT", arguments.file, "provenance.json of a run directory", "FILE").required();
    command.text("--output", arguments.directory,
                 "run directory of the new results (default: the old name with -rerun)", "DIR");
    arguments.add_without_seed_to(command, Arguments::Points::never_fail);
    command.footer(
        "Exit codes: 0 the same bits, 2 points failed, 3 other bits, 130 interrupted.\n"
        "Example:\n  bayesaim rerun results/study/provenance.json");
}

}  // namespace bayesaim::program
