// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <optional>
#include <span>

namespace bayesaim::numerics {

/// A number known up to a statistical error of one standard deviation; 0 for a deterministic method.
struct Estimate {
    double value = 0;
    double standard_error = 0;
};

/// Mean of two or more independent estimates of one number, and the standard error their scatter gives it.
Estimate combine(std::span<const double> independent_estimates);

/// Mean over repetitions, of which there may be one only.
struct Mean {
    double value = 0;
    std::optional<double> standard_error{};  ///< of two or more
    std::size_t count = 1;

    /// Standard errors between the mean and the expected value. Returns std::nullopt for fewer than four
    /// repetitions: their standard error is too uncertain to divide by.
    std::optional<double> z_score(double expected) const;
};

/// Mean of the values that are finite; std::nullopt if none is.
std::optional<Mean> mean_of(std::span<const double> values);

}  // namespace bayesaim::numerics
