// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace bayesaim::figures {

/// Heat map of the error over alpha (across) and width (up), with the strong-recovery line if there is one.
struct PhaseFigure {
    std::string quantity = "Bayes-optimal error";
    std::string title;
    std::vector<double> alpha, width, error;     ///< one entry per point, alpha running fastest
    std::vector<double> line_alpha, line_width;  ///< the threshold
    std::size_t columns = 0;                     ///< points with the same width
    bool log_alpha = false, log_width = false;   ///< logarithmic axes
};

void draw(const PhaseFigure& figure, const std::filesystem::path& output);

}  // namespace bayesaim::figures
