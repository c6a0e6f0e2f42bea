// SPDX-License-Identifier: MIT
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "program/commands.hpp"
#include "program/documentation.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    std::string directory;
};

void write(const std::filesystem::path& file, const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out(file);
    out << text << std::flush;
    if (!out) throw std::runtime_error(fmt::format("cannot write '{}'", file.string()));
}

int run(const ProgramDescription& program, const std::filesystem::path& directory) {
    write(directory / "man" / fmt::format("{}.1", program.name), man_page(program));
    for (const CommandDescription& command : program.commands)
        write(directory / "man" / fmt::format("{}-{}.1", program.name, command.name),
              man_page(program, command));
    write(directory / "bash" / program.name, bash_completion(program));
    write(directory / "zsh" / fmt::format("_{}", program.name), zsh_completion(program));
    return 0;
}

}  // namespace

void add_documentation(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "documentation", "Write manual pages and completions",
        [&program](const Arguments& given) { return run(program.describe(), given.directory); });
    command.text("DIR", arguments.directory, "gets man/, bash/ and zsh/", "").required();
    command.hide();
}

}  // namespace bayesaim::program
