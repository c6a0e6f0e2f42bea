// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace bayesaim::figures {

/// A density of eigenvalues and the histogram of one matrix; below, if it is given, the Bayes-optimal shrinkage of the
/// eigenvalues.
struct SpectrumFigure {
    std::string title;
    std::vector<double> x, density, denoised;  ///< theory on a grid; no shrinkage if `denoised` is empty
    std::vector<double> eigenvalues;           ///< of one matrix, those that are shown
    std::size_t matrix_size = 0;               ///< all of its eigenvalues; 0: as many as are shown
    std::string x_label = "eigenvalue of the noisy matrix";
};

void draw(const SpectrumFigure& figure, const std::filesystem::path& output);

}  // namespace bayesaim::figures
