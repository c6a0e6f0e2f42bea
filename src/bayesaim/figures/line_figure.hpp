// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "bayesaim/figures/gnuplot.hpp"

namespace bayesaim::figures {

/// Lines are theory; points are measurements, with error bars where given.
struct Series {
    enum class Style { line, dashed_line, dots, crosses };
    std::string label;
    std::vector<double> x, y;
    std::vector<double> error{};  ///< one standard error; empty for none
    Style style = Style::line;
    std::string colour = colour::blue;
};

/// A vertical line with a label, such as a threshold.
struct Marker {
    double x = 0;
    std::string label;
    std::string colour = colour::grey;
};

struct LineFigure {
    std::string title, x_label, y_label;
    bool log_x = false, log_y = false;
    std::vector<Series> series{};
    std::vector<Marker> markers{};
};

void draw(const LineFigure& figure, const std::filesystem::path& output);

}  // namespace bayesaim::figures
