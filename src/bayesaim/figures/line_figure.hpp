// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bayesaim/figures/gnuplot.hpp"

namespace bayesaim::figures {

/// A line shows theory; points show measurements, with error bars if `error` is given. A line of one point is
/// drawn as a point.
struct Series {
    enum class Style { line, dashed_line, dotted_line, dots, open_dots, crosses, triangles };
    std::string label;  ///< shown in the key, or at the line itself; empty for no label
    std::vector<double> x, y;
    std::vector<double> error{};  ///< one standard error; empty for none
    Style style = Style::line;
    std::string colour = colour::blue;
    std::string name{};               ///< used in tables of the numbers; the label if empty
    bool label_below = false;         ///< put the label left and below the line, not right and above
    std::optional<double> label_x{};  ///< put the label at the line at this x, not into the key
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
    std::string caption{};          ///< small text below the picture: sizes and seeds
    std::string key = "top right";  ///< place of the key; "outside .." beside the axes
    std::optional<double> x_lowest{};
};

/// The gnuplot script of a figure, without terminal and output.
std::string script_of(const LineFigure& figure);

void draw(const LineFigure& figure, const std::filesystem::path& output);

}  // namespace bayesaim::figures
