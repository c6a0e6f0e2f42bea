// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/figures/paper_figure.hpp"

namespace bayesaim::figures::paper {
namespace {

const std::pair<double, const char*> widths[] = {
    {0.1, colour::green}, {0.5, colour::blue}, {1, colour::black}};

std::string study(Size size) {
    const bool full = size == Size::full;
    return fmt::format(R"(
channel = "linear"
[[run]]
estimator = "theory"
width = [0.1, 0.5, 1]
alpha = "0.01x:1.1x:{}"
[[run]]
estimator = "amp"
width = [0.5, 1]
alpha = "{}"
dim = {}
seeds = {}
)",
                       full ? 110 : 55, full ? "0.2x:0.9x:8" : "0.2x:0.9x:4", 100, full ? 16 : 4);
}

Composition compose(const Points& points, Size size) {
    Composition result;
    LineFigure& figure = result.figure;
    figure.title = "Linear attention, T = 2: recovery by counting";
    figure.x_label = "α = n/d^2";
    figure.y_label = "estimation error";
    figure.caption = "lines: T(T+1)/2 α = ρ - ρ^2/2, as many equations as unknowns;  dots: AMP, " +
                     describe_runs(points, "amp", size);
    for (const auto& [width, shade] : widths) {
        const Choice here = [w = width](const experiments::Task& task) { return task.width == w; };
        Series theory = line(fmt::format("ρ = {:g}", width), collect(points, "theory", here), shade);
        theory.name = fmt::format("theory, width {:g}", width);
        const double counting = (width - width * width / 2) / 3;
        theory.label_x = (width < 1 ? 0.85 : 0.6) * counting;
        theory.label_below = width < 1;
        figure.series.push_back(std::move(theory));
        Series amp = dots("", collect(points, "amp", here), shade);
        amp.name = fmt::format("AMP, width {:g}", width);
        if (width == 0.5) {
            add_headline(result, "linear error at alpha = {:.3f}, width 0.5 (AMP)", points, "amp", here);
        }
        if (!amp.x.empty()) figure.series.push_back(std::move(amp));
        figure.markers.push_back({counting, "", shade});
    }
    return result;
}

}  // namespace

PaperFigure linear() {
    return {"linear", "linear error with the thresholds of counting, with AMP", study, compose};
}

}  // namespace bayesaim::figures::paper
