// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/figures/paper_figure.hpp"

namespace bayesaim::figures::paper {
namespace {

// Weak recovery, 1/(4F) at q = 0 (docs/theory.md): with the exact score, and with the score of the paper.
constexpr double weak_recovery = 0.403410629038, as_printed = 0.5632675;

std::string study(Size size) {
    return fmt::format(R"(
estimator = "small-width"
alpha = "0.1:3:{}"
channel = ["hardmax", "hardmax-as-printed"]
)",
                       size == Size::full ? 117 : 59) +
           "[[run]]\n";
}

Composition compose(const Points& points, Size) {
    const auto of_channel = [](const char* name) {
        return [=](const experiments::Task& task) { return task.channel == name; };
    };
    Composition result;
    LineFigure& figure = result.figure;
    figure.title = "Hardmax attention of small width, T = 2";
    figure.x_label = "α/ρ";
    figure.y_label = "estimation error";
    figure.x_lowest = 0;
    figure.caption = "theory, ρ → 0 with α/ρ fixed";
    figure.series = {line("corrected", collect(points, "small-width", of_channel("hardmax")), colour::blue),
                     line("as published", collect(points, "small-width", of_channel("hardmax-as-printed")),
                          colour::vermilion, Series::Style::dashed_line)};
    figure.markers = {{weak_recovery, "weak recovery 0.4034", colour::blue},
                      {as_printed, "as published 0.5633", colour::vermilion}};
    return result;
}

}  // namespace

PaperFigure hardmax_small_width() {
    return {"hardmax-small-width", "hardmax error at small width against alpha/rho, with weak recovery",
            study, compose};
}

}  // namespace bayesaim::figures::paper
