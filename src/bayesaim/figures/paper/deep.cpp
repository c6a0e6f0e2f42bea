// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/figures/paper_figure.hpp"

namespace bayesaim::figures::paper {
namespace {

std::string study(Size size) {
    const bool full = size == Size::full;
    return fmt::format(R"(
channel = "deep-softmax"
layers = 2
width = 0.5
[[run]]
estimator = "theory"
alpha = "0.03x:1.11x:{}"
integration_points = {}
[[run]]
estimator = "amp"
alpha = "{}"
dim = {}
seeds = {}
max_iterations = 80
tolerance = 1e-5
)",
                       full ? 55 : 19, full ? 4096 : 256, full ? "0.2x:1.1x:10" : "0.25x:0.9x:4",
                       full ? 200 : 60, full ? 8 : 3);
}

Composition compose(const Points& points, Size size) {
    const Choice all = [](const experiments::Task&) { return true; };
    Composition result;
    LineFigure& figure = result.figure;
    figure.title = "Softmax attention of two layers, T = 2, ρ = 0.5";
    figure.x_label = "α = n/d^2";
    figure.y_label = "estimation error of the layer";
    figure.caption = "vertical line: strong recovery, 2(ρ - ρ^2/2)/(T(T+1)/2 - 1);  dots: AMP, " +
                     describe_runs(points, "amp", size);
    const std::tuple<const char*, const char*, const char*, Series::Style, Series::Style> layers[] = {
        {"1", "first layer", colour::blue, Series::Style::line, Series::Style::dots},
        {"2", "second layer", colour::vermilion, Series::Style::dashed_line, Series::Style::open_dots}};
    for (const auto& [number, label, shade, line_style, dot_style] : layers) {
        const std::string value = fmt::format("error_{}", number);
        Series theory = line(label, collect(points, "theory", all, value), shade, line_style);
        theory.name = fmt::format("theory, layer {}", number);
        figure.series.push_back(std::move(theory));
        Series amp = dots("", collect(points, "amp", all, value), shade, dot_style);
        amp.name = fmt::format("AMP, layer {}", number);
        figure.series.push_back(std::move(amp));
    }
    figure.markers = {{0.375, "", colour::grey}};
    add_headline(result, "two layers, sum of errors at alpha = {:.3f}, width 0.5 (AMP)", points, "amp", all);
    return result;
}

}  // namespace

PaperFigure deep() {
    return {"deep", "two layers of softmax attention: which one is learned first, with AMP", study, compose};
}

}  // namespace bayesaim::figures::paper
