// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace bayesaim::figures {

/// The spectrum of S + sqrt(D) Xi: density with the histogram of one sampled matrix above, the Bayes-optimal
/// shrinkage of its eigenvalues below.
struct SpectrumFigure {
    std::string title;
    std::vector<double> x, density, denoised;  ///< theory on a grid
    std::vector<double> eigenvalues;           ///< of one sampled noisy matrix
};

void draw(const SpectrumFigure& figure, const std::filesystem::path& output);

}  // namespace bayesaim::figures
