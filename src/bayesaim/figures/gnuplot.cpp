// SPDX-License-Identifier: MIT
#include "bayesaim/figures/gnuplot.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
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

/// Text whose arguments never meet a shell: gnuplot reads the script from its standard input.
void run_gnuplot(const std::string& script) {
    FILE* pipe = popen("gnuplot >/dev/null", "w");
    if (pipe == nullptr) throw std::runtime_error("could not start gnuplot");
    const bool written = std::fwrite(script.data(), 1, script.size(), pipe) == script.size();
    const int status = pclose(pipe);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        throw std::runtime_error("gnuplot was not found (Debian package gnuplot-nox)");
    }
    if (!written || status != 0)
        throw std::runtime_error(fmt::format("gnuplot failed with status {}", status));
}

}  // namespace

void check_picture_name(const std::filesystem::path& output) {
    const std::string ending = output.extension().string();
    if (ending != ".png" && ending != ".svg" && ending != ".pdf") {
        throw_invalid("picture file", "named *.png, *.svg or *.pdf", fmt::format("'{}'", output.string()));
    }
}

void render(const std::string& script, const std::filesystem::path& output, const Canvas& canvas) {
    check_picture_name(output);
    std::filesystem::path partial = output;
    partial += fmt::format(".{}.part", getpid());
    std::error_code ignored;
    if (!std::ofstream(partial)) {  // gnuplot would say so in four lines
        throw std::runtime_error(fmt::format("could not write picture '{}'", output.string()));
    }
    try {
        run_gnuplot(fmt::format("set encoding utf8\nset terminal {}\nset output {}\n{}\nunset output\n",
                                terminal(output.extension().string(), canvas), quoted(partial.string()),
                                script));
        std::filesystem::rename(partial, output);
    } catch (const std::filesystem::filesystem_error&) {
        std::filesystem::remove(partial, ignored);
        throw std::runtime_error(fmt::format("could not write picture '{}'", output.string()));
    } catch (...) {
        std::filesystem::remove(partial, ignored);
        throw;
    }
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
