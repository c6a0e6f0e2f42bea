// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/figures/paper_figure.hpp"

namespace bayesaim::figures::paper {
namespace {

std::string study(Size size) {
    const bool full = size == Size::full;
    return fmt::format(R"(
channel = "hardmax"
[[run]]
estimator = "theory"
width = [0.1, 0.5, 2]
alpha = "log:0.05:20:{}"
[[run]]
estimator = "theory"
channel = "hardmax-as-printed"
width = 0.5
alpha = "log:0.05:20:{}"
[[run]]
estimator = "amp"
width = {}
alpha = {}
damping = 0.2
max_iterations = 250
dim = {}
seeds = {}
)",
                       full ? 60 : 24, full ? 60 : 24, full ? "[0.1, 0.5, 2]" : "0.5",
                       full ? "[0.1, 0.2, 0.5, 1, 2, 5, 10]" : "[0.2, 0.5, 1, 2]", 100, full ? 16 : 3);
}

Choice of_width(double width, const char* channel = "hardmax") {
    return [=](const experiments::Task& task) { return task.width == width && task.channel == channel; };
}

Composition compose(const Points& points, Size size) {
    Composition result;
    LineFigure& figure = result.figure;
    figure.title = "Hardmax attention, T = 2: the published curve and the correct one";
    figure.x_label = "α = n/d^2";
    figure.y_label = "estimation error";
    figure.log_x = figure.log_y = true;
    figure.key = "bottom left";
    figure.caption = "dots: AMP, " + describe_runs(points, "amp", size) + ", one standard error";
    const std::pair<double, const char*> widths[] = {
        {0.1, colour::green}, {0.5, colour::blue}, {2, colour::black}};
    for (const auto& [width, shade] : widths) {
        Series theory =
            line(fmt::format("ρ = {:g}", width), collect(points, "theory", of_width(width)), shade);
        theory.name = fmt::format("theory, width {:g}", width);
        theory.label_x = 4;
        theory.label_below = width < 1;
        figure.series.push_back(std::move(theory));
        Series amp = dots("", collect(points, "amp", of_width(width)), shade);
        amp.name = fmt::format("AMP, width {:g}", width);
        if (!amp.x.empty()) figure.series.push_back(std::move(amp));
    }
    Series printed =
        line("ρ = 0.5 as published", collect(points, "theory", of_width(0.5, "hardmax-as-printed")),
             colour::vermilion, Series::Style::dashed_line);
    printed.label_x = 4;
    figure.series.push_back(std::move(printed));
    add_headline(result, "hardmax error at alpha = {:g}, width 0.5 (AMP; published: 0.3156)", points, "amp",
                 [&](const experiments::Task& task) { return task.alpha == 1 && of_width(0.5)(task); });
    return result;
}

}  // namespace

PaperFigure hardmax() {
    return {"hardmax", "hardmax error against alpha, corrected and as published, with AMP", study, compose};
}

}  // namespace bayesaim::figures::paper
