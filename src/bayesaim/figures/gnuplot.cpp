// SPDX-License-Identifier: MIT
#include "bayesaim/figures/gnuplot.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"

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

/// gnuplot's single-quoted string.
std::string quoted(const std::string& text) {
    std::string out = "'";
    for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
    return out + "'";
}

/// Runs gnuplot on a script file, without a shell. Its output is used for error messages only, because it
/// also warns of empty ranges, which are no errors.
void run_gnuplot(const std::filesystem::path& script) {
    const std::string log = script.string() + ".log";
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    std::string program = "gnuplot", argument = script.string();
    char* const arguments[] = {program.data(), argument.data(), nullptr};
    pid_t child = 0;
    const int error = posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    int status = 0;
    if (error == 0) waitpid(child, &status, 0);
    std::string complaint;
    std::ifstream said(log);
    for (std::string line; complaint.empty() && std::getline(said, line);) {
        if (line.find_first_not_of(" \t^") != std::string::npos) complaint = line;
    }
    std::error_code ignored;
    std::filesystem::remove(log, ignored);
    if (error != 0) throw std::runtime_error("gnuplot could not be started (Debian package gnuplot-nox)");
    if (status != 0) throw std::runtime_error(fmt::format("gnuplot failed: {}", complaint));
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
    std::filesystem::path partial = output, script_file = output;
    partial += fmt::format(".{}.part", getpid());
    script_file += fmt::format(".{}.gnuplot", getpid());
    std::error_code ignored, error;
    const auto clean_up = [&] {
        std::filesystem::remove(partial, ignored);
        std::filesystem::remove(script_file, ignored);
    };
    try {
        std::ofstream out(script_file);
        out << fmt::format("set encoding utf8\nset terminal {}\nset output {}\n{}\nunset output\n",
                           terminal(output.extension().string(), canvas), quoted(partial.string()), script);
        out.close();
        if (!out) throw std::runtime_error(fmt::format("could not write picture '{}'", output.string()));
        run_gnuplot(script_file);
        std::filesystem::rename(partial, output, error);
        if (error)
            throw std::runtime_error(
                fmt::format("could not write picture '{}': {}", output.string(), error.message()));
    } catch (...) {
        clean_up();
        throw;
    }
    clean_up();
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
