// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/figures/paper_figure.hpp"

namespace bayesaim::figures::paper {
namespace {

std::string study(Size size) {
    const bool full = size == Size::full;
    return fmt::format(R"(
width = 0.5
[[run]]
estimator = "theory"
alpha = "0.02x:1.2x:{0}"
[[run]]
estimator = "amp"
tokens = [2, 3]
alpha = "{1}"
max_iterations = 500
dim = {2}
seeds = {3}
[[run]]
estimator = "gd"
alpha = "{4}"
dim = {2}
seeds = {5}
starts = {6}
steps = {7}
precision = "float"
)",
                       full ? 119 : 60, full ? "0.1x:1.2x:12" : "0.2x:1.2x:6", 100, full ? 16 : 4,
                       full ? "0.1x:1.2x:12" : "0.2x:1.2x:6", full ? 8 : 2, full ? 32 : 6, full ? 3000 : 800);
}

Composition compose(const Points& points, Size size) {
    const auto of_tokens = [](int count) -> Choice {
        return [=](const experiments::Task& task) { return task.tokens == count; };
    };
    const auto factor = [](int count) { return static_cast<double>(count * count + count - 2); };
    Composition result;
    LineFigure& figure = result.figure;
    figure.title = "Softmax attention, ρ = 0.5: theory and algorithms";
    figure.x_label = "α (T^2 + T - 2)";
    figure.y_label = "estimation error";
    figure.caption = "vertical line: strong recovery;  " + describe_runs(points, "amp", size) +
                     fmt::format(";  averages over {} starts", size == Size::full ? 32 : 6);
    figure.series = {
        line("Bayes-optimal", collect(points, "theory", of_tokens(2), "error", factor(2)), colour::black),
        dots("AMP, T = 2", collect(points, "amp", of_tokens(2), "error", factor(2)), colour::blue),
        dots("AMP, T = 3", collect(points, "amp", of_tokens(3), "error", factor(3)), colour::green,
             Series::Style::open_dots),
        dots("gradient descent", collect(points, "gd", of_tokens(2), "error", factor(2)), colour::vermilion,
             Series::Style::crosses),
        dots("averaged gradient descent", collect(points, "gd", of_tokens(2), "averaged_error", factor(2)),
             colour::purple, Series::Style::triangles)};
    const char* names[] = {"theory", "AMP, 2 tokens", "AMP, 3 tokens", "GD", "AGD"};
    for (std::size_t i = 0; i < figure.series.size(); ++i) figure.series[i].name = names[i];
    experiments::Task task;
    task.width = 0.5;
    figure.markers = {{*strong_recovery(task) * factor(2), "", colour::grey}};
    const auto add = [&](const std::string& name, const char* estimator, const char* value) {
        add_headline(result, "softmax error at alpha = {:.4f}, width 0.5 (" + name + ")", points, estimator,
                     of_tokens(2), value);
    };
    add("AMP", "amp", "error");
    add("gradient descent", "gd", "error");
    add("averaged gradient descent", "gd", "averaged_error");
    return result;
}

}  // namespace

PaperFigure softmax() {
    return {"softmax", "softmax error: theory, AMP, gradient descent and its average", study, compose};
}

}  // namespace bayesaim::figures::paper
