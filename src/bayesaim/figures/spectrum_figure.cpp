// SPDX-License-Identifier: MIT
#include "bayesaim/figures/spectrum_figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/figures/gnuplot.hpp"

namespace bayesaim::figures {
namespace {

struct Histogram {
    std::vector<double> centre, density;
    double width = 0;
};

/// Bins of equal width, a few times the square root of the number of values per bin.
Histogram histogram(const std::vector<double>& values, double total, double low, double high) {
    const auto count =
        static_cast<std::size_t>(std::clamp(2 * std::sqrt(static_cast<double>(values.size())), 10.0, 80.0));
    Histogram result{std::vector<double>(count), std::vector<double>(count),
                     (high - low) / static_cast<double>(count)};
    for (std::size_t i = 0; i < count; ++i) {
        result.centre[i] = low + (static_cast<double>(i) + 0.5) * result.width;
    }
    for (const double value : values) {
        const double bin = std::floor((value - low) / result.width);
        if (bin < 0 || bin >= static_cast<double>(count)) continue;
        result.density[static_cast<std::size_t>(bin)] += 1 / (total * result.width);
    }
    return result;
}

}  // namespace

void draw(const SpectrumFigure& figure, const std::filesystem::path& output) {
    const double low = figure.x.front(), high = figure.x.back();
    const std::size_t size = figure.matrix_size > 0 ? figure.matrix_size : figure.eigenvalues.size();
    const Histogram bars = histogram(figure.eigenvalues, static_cast<double>(size), low, high);
    const bool shrinkage = !figure.denoised.empty();
    std::string script =
        data_block("theory", shrinkage ? std::vector{figure.x, figure.density, figure.denoised}
                                       : std::vector{figure.x, figure.density}) +
        data_block("sample", {bars.centre, bars.density});
    script += fmt::format("set {} \"{}\"\n", shrinkage ? "multiplot layout 2,1 title" : "title", figure.title);
    script += fmt::format(
        R"(set xrange [{low}:{high}]
set border 3
set tics nomirror out
set lmargin 9
set rmargin 3
set style fill solid 0.35 noborder
set boxwidth {width} absolute
set key top right Left reverse samplen 2
set yrange [0:*]
set ylabel "density"
{label}plot $sample using 1:2 with boxes lc rgb "{grey}" title "eigenvalues of one matrix, d = {dim}", \
     $theory using 1:2 with lines lw 2 lc rgb "{blue}" title "theory"
)",
        fmt::arg("low", low), fmt::arg("high", high), fmt::arg("width", bars.width), fmt::arg("dim", size),
        fmt::arg("label", shrinkage ? "" : fmt::format("set xlabel \"{}\"\n", figure.x_label)),
        fmt::arg("grey", colour::grey), fmt::arg("blue", colour::blue));
    if (shrinkage) {
        script += fmt::format(
            R"(set yrange [*:*]
set xlabel "{x_label}"
set ylabel "denoised eigenvalue"
set key top left Left reverse samplen 2
plot x with lines lw 1 dt 2 lc rgb "{grey}" title "no shrinkage", \
     $theory using 1:3 with lines lw 2 lc rgb "{vermilion}" title "Bayes-optimal"
unset multiplot
)",
            fmt::arg("x_label", figure.x_label), fmt::arg("grey", colour::grey),
            fmt::arg("vermilion", colour::vermilion));
    }
    render(script, output, shrinkage ? Canvas{480, 440} : Canvas{480, 300});
}

}  // namespace bayesaim::figures
