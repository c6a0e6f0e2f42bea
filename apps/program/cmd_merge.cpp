// SPDX-License-Identifier: MIT
#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/study.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    std::vector<std::string> directories;
    std::string output;
    StudyArguments study;
};

int run(const Arguments& arguments) {
    ignore_file_size_signal();
    const std::vector<std::filesystem::path> directories(arguments.directories.begin(),
                                                         arguments.directories.end());
    const StudyCounts counts = count_points(experiments::merge_sweeps(directories, arguments.output));
    Report report{"merge"};
    report.summary = describe(arguments.output, counts);
    publish(report, arguments.study.format, "");
    return finish(counts, false);
}

}  // namespace

Action add_merge(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command =
        app.add_subcommand("merge", "Run directories of one study (its shards) gathered in one");
    command->add_option("DIRECTORY", arguments->directories, "run directories")->required();
    command->add_option("--output", arguments->output, "run directory to write")->required();
    arguments->study.add_to(*command);
    command->footer("Example:\n  bayesaim merge results/study-shard-* --output results/study");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
