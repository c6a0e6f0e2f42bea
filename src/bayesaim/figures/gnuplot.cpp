// SPDX-License-Identifier: MIT
#include "bayesaim/figures/gnuplot.hpp"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/core/text.hpp"

namespace bayesaim::figures {
namespace {

std::string terminal(const std::string& ending, const Canvas& canvas) {
    const double points_per_inch = 72, pixels_per_point = 2;
    if (ending == ".pdf") {
        return fmt::format("pdfcairo enhanced font 'DejaVu Sans,10' size {}in,{}in",
                           canvas.width / points_per_inch, canvas.height / points_per_inch);
    }
    if (ending == ".svg") {
        return fmt::format("svg enhanced font 'DejaVu Sans,10' size {},{} background '#ffffff'",
                           canvas.width * 1.5, canvas.height * 1.5);
    }
    return fmt::format("pngcairo enhanced font 'DejaVu Sans,10' fontscale {} size {},{}", pixels_per_point,
                       canvas.width * pixels_per_point * 1.25, canvas.height * pixels_per_point * 1.25);
}

/// A file in memory, which a child process can read and write: no disk can be full, and nothing is left of it.
class MemoryFile {
  public:
    explicit MemoryFile(const std::string& text = "") : descriptor_(memfd_create("gnuplot", MFD_CLOEXEC)) {
        if (descriptor_ < 0) throw_failed();
        std::ofstream out(name(), std::ios::binary);
        out << text;
        out.close();
        if (!out) throw_failed();
    }
    ~MemoryFile() { close(descriptor_); }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    int descriptor() const { return descriptor_; }
    std::string text() const { return read_whole("output of gnuplot", name()); }

  private:
    std::string name() const { return fmt::format("/proc/self/fd/{}", descriptor_); }
    [[noreturn]] static void throw_failed() {
        throw std::runtime_error(
            fmt::format("could not start gnuplot: {}", std::generic_category().message(errno)));
    }

    int descriptor_;
};

/// The first line that says something.
std::string first_line(const std::string& text) {
    for (const std::string_view line : split(text, '\n')) {
        if (line.find_first_not_of(" \t^") != std::string_view::npos) return std::string(line);
    }
    return "";
}

/// Runs gnuplot on a script, without a shell, and returns the picture. What it says is used for error messages only,
/// because it also warns of empty ranges, which are no errors.
std::string run_gnuplot(const std::string& script) {
    const MemoryFile commands(script), picture, said;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, commands.descriptor(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, picture.descriptor(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, said.descriptor(), STDERR_FILENO);
    std::string program = "gnuplot", argument = "-";
    char* const arguments[] = {program.data(), argument.data(), nullptr};
    pid_t child = 0;
    const int error = posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("gnuplot could not be started (Debian package gnuplot-nox)");
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) throw std::runtime_error(fmt::format("gnuplot failed: {}", first_line(said.text())));
    return picture.text();
}

}  // namespace

void check_picture_name(const std::filesystem::path& output, std::string_view name) {
    const std::string ending = output.extension().string();
    if (ending != ".png" && ending != ".svg" && ending != ".pdf") {
        throw_invalid(name, "named *.png, *.svg or *.pdf", fmt::format("'{}'", output.string()));
    }
}

void render(const std::string& script, const std::filesystem::path& output, const Canvas& canvas) {
    check_picture_name(output);
    write_whole(output, run_gnuplot(fmt::format("set encoding utf8\nset terminal {}\n{}\n",
                                                terminal(output.extension().string(), canvas), script)));
}

std::string data_block(const std::string& name, const std::vector<std::vector<double>>& columns) {
    std::string block = fmt::format("${} << EOD\n", name);
    const std::size_t rows = columns.empty() ? 0 : columns.front().size();
    for (std::size_t i = 0; i < rows; ++i) {
        for (const auto& column : columns) {
            block += std::isfinite(column[i]) ? fmt::format("{:.10g} ", column[i]) : std::string("NaN ");
        }
        block += '\n';
    }
    return block + "EOD\n";
}

}  // namespace bayesaim::figures
