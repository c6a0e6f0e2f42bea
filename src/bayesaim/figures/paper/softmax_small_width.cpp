// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/figures/paper_figure.hpp"

namespace bayesaim::figures::paper {
namespace {

std::string study(Size size) {
    return fmt::format(R"(
estimator = "small-width"
tokens = [2, 3, 4]
alpha = "0.005:0.6:{}"
[[run]]
)",
                       size == Size::full ? 239 : 120);
}

Composition compose(const Points& points, Size) {
    Composition result;
    LineFigure& figure = result.figure;
    figure.title = "Softmax attention of small width";
    figure.x_label = "α/ρ";
    figure.y_label = "estimation error";
    figure.caption =
        "theory, ρ → 0 with α/ρ fixed;  weak recovery at 1/(T^2+T-2), strong recovery at twice that";
    const std::tuple<int, const char*, Series::Style> tokens[] = {
        {2, colour::blue, Series::Style::line},
        {3, colour::vermilion, Series::Style::dashed_line},
        {4, colour::black, Series::Style::dotted_line}};
    for (const auto& [count, shade, style] : tokens) {
        const Choice here = [t = count](const experiments::Task& task) { return task.tokens == t; };
        Series theory =
            line(fmt::format("T = {}", count), collect(points, "small-width", here), shade, style);
        const double weak = 1.0 / (count * count + count - 2);
        theory.label_x = 1.45 * weak;
        figure.series.push_back(std::move(theory));
        figure.markers.push_back({weak, "", shade});
    }
    return result;
}

}  // namespace

PaperFigure softmax_small_width() {
    return {"softmax-small-width", "softmax error at small width against alpha/rho", study, compose};
}

}  // namespace bayesaim::figures::paper
