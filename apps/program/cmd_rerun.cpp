// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/version.hpp"

#include "program/commands.hpp"
#include "program/study.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    std::string file, output;
    StudyArguments study;
};

int run(const Arguments& arguments) {
    namespace fs = std::filesystem;
    const experiments::Provenance before = experiments::read_provenance(arguments.file);
    const fs::path home = fs::canonical(arguments.file).parent_path();
    fs::path directory = arguments.output;
    if (directory.empty()) {
        // A file that is not called provenance.json belongs to a figure and has its name.
        const fs::path file = fs::canonical(arguments.file);
        const bool of_directory = file.filename() == experiments::provenance_name;
        directory = (of_directory ? home : home / file.stem()).string() + "-rerun";
    }
    if (fs::weakly_canonical(directory) == home) {
        throw_invalid("--output", "another directory than that of the result",
                      fmt::format("'{}'", directory.string()));
    }
    if (!arguments.study.quiet && before.commit != git_commit()) {
        fmt::print(stderr,
                   "bayesaim: the result is of version {}, commit {}; this is version {}, commit {}\n",
                   before.version, before.commit, version(), git_commit());
    }
    experiments::SweepOptions options = arguments.study.options();
    options.shard = before.shard;
    if (experiments::plan_sweep(before.experiment, directory, options).missing == 0) {
        throw_invalid("--output", "a directory in which something is left to do",
                      fmt::format("'{}', where all of it is done", directory.string()));
    }
    const experiments::SweepResult result =
        sweep_with_progress(arguments.study, before.experiment, directory, options);

    Report report{"rerun"};
    const auto [compared, same] = experiments::compare(before.points, result.points);
    std::vector<experiments::Point> again;
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        if (options.shard.has(i)) again.push_back(result.points[i]);
    }
    const StudyCounts counts = count_points(again);
    report.summary = describe(directory, counts);
    report.summary["compared"] = compared;
    report.summary["same_bits"] = same;
    report.summary["different"] = compared - same;
    publish(report, arguments.study.format, "");
    const int code = finish(counts, result.stopped);
    return code == 0 && same < compared ? 2 : code;
}

}  // namespace

Action add_rerun(Program& program) {
    auto arguments = std::make_shared<Arguments>();
    Command command = program.add_command(
        "rerun", "Repeat a study from its provenance.json, and compare the bits of the results");
    command.text("RESULT", arguments->file, "provenance.json of a run directory")
        .type_name("FILE")
        .required();
    command
        .text("--output", arguments->output,
              "run directory of the new results (default: the old name with -rerun)")
        .type_name("DIR");
    arguments->study.add_to(command);
    command.footer("Example:\n  bayesaim rerun results/study/provenance.json");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
