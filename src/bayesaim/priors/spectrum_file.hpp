// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/bump_law.hpp"

namespace bayesaim::priors {

/// Reads one eigenvalue (or singular value) per line, or on every line a value and its weight, or these and
/// the variance of a semicircle around the value, separated by blanks or a comma. Empty lines, and text
/// after a '#', are skipped. Without weights all values have the same. Errors name the file and the line.
std::vector<spectral::Bump> read_spectrum_text(const std::filesystem::path& file);

/// The prior of a spectrum file. This is a text, or an estimate that `fit` wrote (HDF5, told by its first
/// bytes):
///   /law (1, k, 3)  centre, weight and variance of the bumps of a learned law, which is that of singular
///                   values with both signs for untied attention;
/// without it the law of the attributes prior, width, scale and so on. Whether S is symmetric is in
/// the file: the attribute attention is missing or "tied". If `symmetric` is given it must agree; a text
/// becomes the one or the other, by default eigenvalues.
std::unique_ptr<Prior> read_spectrum(const std::filesystem::path& file, std::optional<bool> symmetric = {});

}  // namespace bayesaim::priors
