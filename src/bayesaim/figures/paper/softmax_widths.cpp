// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/figures/paper_figure.hpp"

namespace bayesaim::figures::paper {
namespace {

const std::pair<double, const char*> widths[] = {{0.1, colour::green},
                                                 {0.3, colour::vermilion},
                                                 {0.5, colour::blue},
                                                 {1, colour::purple},
                                                 {2, colour::black}};

std::string study(Size size) {
    return fmt::format(R"(
estimator = "theory"
width = [0.1, 0.3, 0.5, 1, 2]
alpha = "0.01x:1.1x:{}"
[[run]]
)",
                       size == Size::full ? 219 : 110);
}

Composition compose(const Points& points, Size) {
    Composition result;
    LineFigure& figure = result.figure;
    figure.title = "Softmax attention, T = 2: Bayes-optimal error";
    figure.x_label = "α = n/d^2";
    figure.y_label = "estimation error";
    figure.caption = "vertical lines: strong recovery";
    for (const auto& [width, shade] : widths) {
        const Choice here = [w = width](const experiments::Task& task) { return task.width == w; };
        Series theory = line(fmt::format("ρ = {:g}", width), collect(points, "theory", here), shade);
        theory.name = fmt::format("theory, width {:g}", width);
        experiments::Task task;
        task.width = width;
        const double threshold = *strong_recovery(task);
        theory.label_x = threshold * (width == 0.5 ? 0.86 : width < 2 ? 0.75 : 0.4);
        theory.label_below = width < 2;
        figure.series.push_back(std::move(theory));
        if (width <= 1) figure.markers.push_back({threshold, "", shade});
    }
    return result;
}

}  // namespace

PaperFigure softmax_widths() {
    return {"softmax-widths", "softmax error for several widths, with strong-recovery thresholds", study,
            compose};
}

}  // namespace bayesaim::figures::paper
