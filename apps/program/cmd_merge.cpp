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

Action add_merge(Program& program) {
    auto arguments = std::make_shared<Arguments>();
    Command command = program.add_command("merge", "Join the run directories of one study (its shards)");
    command.texts("DIRECTORY", arguments->directories, "run directories").type_name("").required();
    command.text("--output", arguments->output, "run directory to write").type_name("DIR").required();
    arguments->study.add_to(command);
    command.footer("Example:\n  bayesaim merge results/study-shard-* --output results/study");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
