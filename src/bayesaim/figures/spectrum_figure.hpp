// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace bayesaim::figures {

/// The spectrum of S + sqrt(D) Xi. Above: its density and the histogram of one sampled matrix. Below: the
/// Bayes-optimal shrinkage of its eigenvalues.
struct SpectrumFigure {
    std::string title;
    std::vector<double> x, density, denoised;  ///< theory on a grid
    std::vector<double> eigenvalues;           ///< of one sampled noisy matrix
};

void draw(const SpectrumFigure& figure, const std::filesystem::path& output);

}  // namespace bayesaim::figures
