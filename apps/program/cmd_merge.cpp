// SPDX-License-Identifier: MIT
#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/study.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    std::vector<std::string> directories;
    std::string directory;
};

int run(const Arguments& arguments) {
    ignore_file_size_signal();
    const std::vector<std::filesystem::path> directories(arguments.directories.begin(),
                                                         arguments.directories.end());
    StudyCounts counts;
    counts.add(experiments::merge_sweeps(directories, arguments.directory));
    publish({"merge", {}, describe(arguments.directory, counts)}, arguments.format, "");
    return finish(counts, false, arguments);
}

}  // namespace

void add_merge(Program& program) {
    auto [command, arguments] =
        program.add_command<Arguments>("merge", "Join the run directories of one study (its shards)", run);
    command.texts("DIRECTORY", arguments.directories, "run directories").type_name("").required();
    command.text("--output", arguments.directory, "run directory to write", "DIR").required();
    arguments.add_without_seed_to(command);
    command.footer("Example:\n  bayesaim merge results/study-shard-* --output results/study");
}

}  // namespace bayesaim::program
