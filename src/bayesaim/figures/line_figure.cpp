// SPDX-License-Identifier: MIT
#include "bayesaim/figures/line_figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace bayesaim::figures {
namespace {

/// A line of one point would not be seen: it is drawn as a point.
bool drawn_as_line(const Series& series) {
    return series.style <= Series::Style::dotted_line && series.x.size() > 1;
}

std::string style_of(const Series& series) {
    const auto style = static_cast<std::size_t>(series.style);
    const auto dots = static_cast<std::size_t>(Series::Style::dots);
    // In the order of Series::Style: dashes of lines, shapes and sizes of points.
    constexpr const char* looks[] = {"lw 2 dt 1",          "lw 2 dt 2",          "lw 2 dt 3",
                                     "pt 7 ps 0.9 lw 1.2", "pt 6 ps 1.1 lw 1.2", "pt 2 ps 1.1 lw 1.2",
                                     "pt 8 ps 1.3 lw 1.2"};
    const bool line = drawn_as_line(series);
    return fmt::format("with {} {} lc rgb \"{}\"",
                       line                   ? "lines"
                       : series.error.empty() ? "points"
                                              : "yerrorbars",
                       looks[style < dots && !line ? style + dots : style], series.colour);
}

/// A point at the edge is drawn whole, and a short logarithmic axis has more numbers than powers of 10.
std::string horizontal_axis(const LineFigure& figure) {
    double low = INFINITY, high = -INFINITY;
    for (const Series& series : figure.series) {
        for (const double x : series.x) {
            low = std::min(low, x);
            high = std::max(high, x);
        }
    }
    std::string script = "set autoscale xfix\n";
    const auto reaches_edge = [&](const Series& series) {
        return !drawn_as_line(series) && !series.x.empty() &&
               (std::ranges::min(series.x) == low || std::ranges::max(series.x) == high);
    };
    if (std::ranges::any_of(figure.series, reaches_edge)) script += "set offsets graph 0.03,graph 0.03,0,0\n";
    const bool wide = figure.log_x && low > 0 && high > 1e4 * low;  // plain numbers would touch
    if (figure.log_x) script += fmt::format("set logscale x\nset format x \"{}\"\n", wide ? "10^{%T}" : "%g");
    if (figure.log_x && low > 0 && high < 50 * low) {
        std::string tics;
        for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10) {
            for (const int digit : {1, 2, 5})
                tics += fmt::format("{}{:g}", tics.empty() ? "" : ",", digit * power);
        }
        script += fmt::format("set xtics ({})\n", tics);
    }
    if (figure.x_lowest) script += fmt::format("set xrange [{:.10g}:*]\n", *figure.x_lowest);
    return script;
}

/// A logarithmic axis cannot show 0, and an error bar must not reach it.
std::vector<std::vector<double>> columns_of(const Series& series, const LineFigure& figure) {
    std::vector<std::vector<double>> columns = {series.x, series.y};
    if (series.error.empty()) return columns;
    std::vector<double> low(series.y.size()), high(series.y.size());
    for (std::size_t i = 0; i < low.size(); ++i) {
        low[i] = series.y[i] - series.error[i];
        high[i] = series.y[i] + series.error[i];
        if (figure.log_y && !(low[i] > 0)) low[i] = std::min(series.y[i], 1e-300);
    }
    columns.push_back(std::move(low));
    columns.push_back(std::move(high));
    return columns;
}

/// The label of a line, placed at its point next to label_x.
std::string label_of(const Series& series) {
    if (!series.label_x || series.label.empty() || series.x.empty()) return {};
    std::size_t nearest = 0;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
        if (std::abs(series.x[i] - *series.label_x) < std::abs(series.x[nearest] - *series.label_x))
            nearest = i;
    }
    return fmt::format("set label \"{}\" at first {:.10g},first {:.10g} {} tc rgb \"{}\" front\n",
                       series.label, series.x[nearest], series.y[nearest],
                       series.label_below ? "right offset -0.8,-0.3" : "left offset 0.6,0.5", series.colour);
}

}  // namespace

std::string script_of(const LineFigure& figure) {
    std::string script, plots;
    for (std::size_t i = 0; i < figure.series.size(); ++i) {
        const Series& series = figure.series[i];
        const std::string block = fmt::format("series{}", i);
        script += data_block(block, columns_of(series, figure));
        const bool in_key = !series.label.empty() && !series.label_x;
        plots += fmt::format("{}${} using {} {} {}", i > 0 ? ", \\\n     " : "", block,
                             series.error.empty() ? "1:2" : "1:2:3:4", style_of(series),
                             in_key ? fmt::format("title \"{}\"", series.label) : "notitle");
        script += label_of(series);
    }
    // The title stands over the picture, not over its axes: beside a key outside these are narrow.
    if (figure.key.starts_with("outside")) {
        script += fmt::format(
            "set tmargin at screen 0.88\nset label \"{}\" at screen 0.5,screen 0.94 center\n", figure.title);
    } else {
        script += fmt::format("set title \"{}\"\nset rmargin 4\n", figure.title);
    }
    script += fmt::format(
        "set xlabel \"{}\"\nset ylabel \"{}\"\nset border 3\nset tics nomirror out\nset bars 0.4\n"
        "set key {} Left reverse samplen 2\n",
        figure.x_label, figure.y_label, figure.key);
    script += horizontal_axis(figure);
    if (figure.log_y) script += "set logscale y\nset format y \"10^{%T}\"\n";
    const bool negative = std::ranges::any_of(figure.series, [](const Series& series) {
        return std::ranges::any_of(series.y, [](double y) { return y < 0; });
    });
    if (!figure.log_y && !negative) script += "set yrange [0:*]\n";
    for (const Marker& marker : figure.markers) {
        script += fmt::format(
            "set arrow from first {0},graph 0 to first {0},graph 1 nohead lw 1.5 dt 3 lc rgb \"{1}\"\n",
            marker.x, marker.colour);
        script +=
            fmt::format("set label \"{}\" at first {},graph 0.35 rotate by 90 offset -1.4,0 tc rgb \"{}\"\n",
                        marker.label, marker.x, marker.colour);
    }
    if (!figure.caption.empty()) {
        script += fmt::format(
            "set bmargin 5\nset label \"{}\" at screen 0.5,screen 0.03 center font \",8\" tc rgb "
            "\"#555555\"\n",
            figure.caption);
    }
    return script + "plot " + plots + "\n";
}

void draw(const LineFigure& figure, const std::filesystem::path& output) {
    render(script_of(figure), output);
}

}  // namespace bayesaim::figures
