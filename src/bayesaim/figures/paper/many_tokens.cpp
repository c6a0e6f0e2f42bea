// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/figures/paper_figure.hpp"

namespace bayesaim::figures::paper {
namespace {

std::string study(Size size) {
    const bool full = size == Size::full;
    return fmt::format(R"(
tokens = [4, 5]
width = 0.5
[[run]]
estimator = "theory"
alpha = "0.02x:1.1x:{}"
[[run]]
estimator = "amp"
alpha = "{}"
dim = {}
seeds = {}
)",
                       full ? 109 : 55, full ? "0.1x:0.9x:9" : "0.3x:0.9x:4", full ? 120 : 100,
                       full ? 16 : 4);
}

Composition compose(const Points& points, Size size) {
    Composition result;
    LineFigure& figure = result.figure;
    figure.title = "Softmax attention with more tokens, ρ = 0.5";
    figure.x_label = "α = n/d^2";
    figure.y_label = "estimation error";
    figure.caption = "vertical lines: strong recovery;  dots: AMP, " + describe_runs(points, "amp", size);
    const std::pair<int, const char*> tokens[] = {{4, colour::blue}, {5, colour::vermilion}};
    for (const auto& [count, shade] : tokens) {
        const Choice here = [t = count](const experiments::Task& task) { return task.tokens == t; };
        Series theory = line(fmt::format("T = {}", count), collect(points, "theory", here), shade,
                             count == 4 ? Series::Style::line : Series::Style::dashed_line);
        theory.name = fmt::format("theory, {} tokens", count);
        experiments::Task task;
        task.width = 0.5;
        task.tokens = count;
        const double threshold = *strong_recovery(task);
        theory.label_x = 0.5 * threshold;
        theory.label_below = true;
        figure.series.push_back(std::move(theory));
        Series amp = dots("", collect(points, "amp", here), shade,
                          count == 4 ? Series::Style::dots : Series::Style::open_dots);
        amp.name = fmt::format("AMP, {} tokens", count);
        add_headline(result, fmt::format("softmax T = {} error at alpha = {{:.4f}}, width 0.5 (AMP)", count),
                     points, "amp", here);
        figure.series.push_back(std::move(amp));
        figure.markers.push_back({threshold, "", shade});
    }
    return result;
}

}  // namespace

PaperFigure many_tokens() {
    return {"many-tokens", "softmax error with four and five tokens, with AMP", study, compose};
}

}  // namespace bayesaim::figures::paper
