// SPDX-License-Identifier: MIT
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bayesaim::experiments {

/// A grid of numbers as a user writes it:
///   0.1   |   0.1,0.2,0.5   |   start:stop:count   |   log:start:stop:count
/// where each number may be followed by x, which counts in units of a threshold known later: 0.1x:0.9x:9.
/// The values are positive, or zero where zero is allowed, and increase.
class Grid {
  public:
    enum class Zero { refused, allowed };
    /// Errors name the argument and its value.
    Grid(std::string_view name, std::string_view text, Zero zero = Zero::refused);

    bool relative() const { return relative_; }
    bool logarithmic() const { return logarithmic_; }
    std::size_t size() const { return values_.size(); }

    /// The numbers of the grid; a relative grid needs the unit.
    std::vector<double> values(std::optional<double> unit = std::nullopt) const;

  private:
    std::string name_;
    std::vector<double> values_;
    bool relative_ = false, logarithmic_ = false;
};

}  // namespace bayesaim::experiments
