// SPDX-License-Identifier: MIT
#include "bayesaim/figures/line_figure.hpp"

#include <fmt/format.h>

namespace bayesaim::figures {
namespace {

std::string style_of(const Series& series) {
    switch (series.style) {
        case Series::Style::line:
            return fmt::format("with lines lw 2 lc rgb \"{}\"", series.colour);
        case Series::Style::dashed_line:
            return fmt::format("with lines lw 2 dt 2 lc rgb \"{}\"", series.colour);
        case Series::Style::dots:
            return fmt::format("with {} pt 7 ps 0.6 lc rgb \"{}\"",
                               series.error.empty() ? "points" : "yerrorbars", series.colour);
        case Series::Style::crosses:
            return fmt::format("with {} pt 2 ps 0.8 lc rgb \"{}\"",
                               series.error.empty() ? "points" : "yerrorbars", series.colour);
    }
    return "with lines";
}

}  // namespace

void draw(const LineFigure& figure, const std::filesystem::path& output) {
    std::string script, plots;
    for (std::size_t i = 0; i < figure.series.size(); ++i) {
        const Series& series = figure.series[i];
        const std::string block = fmt::format("series{}", i);
        const bool bars = !series.error.empty();
        script += data_block(
            block, bars ? std::vector{series.x, series.y, series.error} : std::vector{series.x, series.y});
        plots += fmt::format("{}${} using {} {} title \"{}\"", i > 0 ? ", \\\n     " : "", block,
                             bars ? "1:2:3" : "1:2", style_of(series), series.label);
    }
    script += fmt::format(
        "set title \"{}\"\nset xlabel \"{}\"\nset ylabel \"{}\"\nset border 3\nset tics nomirror out\n"
        "set key top right Left reverse samplen 2\nset rmargin 4\nset autoscale xfix\n",
        figure.title, figure.x_label, figure.y_label);
    if (figure.log_x) script += "set logscale x\nset format x \"%g\"\n";
    if (figure.log_y) script += "set logscale y\nset format y \"10^{%T}\"\n";
    if (!figure.log_y) script += "set yrange [0:*]\n";
    for (const Marker& marker : figure.markers) {
        script += fmt::format(
            "set arrow from first {0},graph 0 to first {0},graph 1 nohead lw 1.5 dt 3 lc rgb \"{1}\"\n",
            marker.x, marker.colour);
        script +=
            fmt::format("set label \"{}\" at first {},graph 0.35 rotate by 90 offset -1.4,0 tc rgb \"{}\"\n",
                        marker.label, marker.x, marker.colour);
    }
    render(script + "plot " + plots + "\n", output);
}

}  // namespace bayesaim::figures
