// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/grid.hpp"

#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/text.hpp"

namespace bayesaim::experiments {

Grid::Grid(std::string_view name, std::string_view text, Zero zero) : name_(name) {
    constexpr const char* grammar = "a number, a list 0.1,0.2, start:stop:count or log:start:stop:count";
    const auto reject = [&](std::string_view requirement) {
        throw_invalid(name, requirement, fmt::format("'{}'", text));
    };
    int relative_numbers = 0, numbers = 0;
    const auto number = [&](std::string_view word) {
        ++numbers;
        if (word.ends_with('x')) {
            word.remove_suffix(1);
            ++relative_numbers;
        }
        const auto value = parse_number<double>(word);
        if (!value) reject(grammar);
        if (zero == Zero::allowed && *value == 0 && !text.starts_with("log:")) return 0.0;
        if (!(std::isfinite(*value) && *value > 0)) reject("made of positive finite numbers");
        return *value;
    };

    std::vector<std::string_view> parts = split(text, ':');
    logarithmic_ = parts.front() == "log";
    if (logarithmic_) parts.erase(parts.begin());
    if (parts.size() == 1 && !logarithmic_) {
        for (const std::string_view word : split(parts.front(), ',')) values_.push_back(number(word));
    } else if (parts.size() == 3) {
        const double start = number(parts[0]), stop = number(parts[1]);
        const auto count = parse_number<int>(parts[2]);
        if (!count) reject(grammar);
        if (*count < 1 || *count > 1'000'000) reject("of 1 to 1000000 points");
        if (*count == 1 && start != stop) reject("of at least 2 points between different ends");
        for (int i = 0; i < *count; ++i) {
            const double fraction = *count > 1 ? static_cast<double>(i) / (*count - 1) : 0;
            // The end points are exact.
            values_.push_back(i == 0            ? start
                              : i == *count - 1 ? stop
                              : logarithmic_    ? start * std::pow(stop / start, fraction)
                                                : start + fraction * (stop - start));
        }
    } else {
        reject(grammar);
    }
    for (std::size_t i = 1; i < values_.size(); ++i) {
        if (!(values_[i] > values_[i - 1])) reject("increasing");
    }
    if (relative_numbers != 0 && relative_numbers != numbers) reject("either all with x or all without");
    relative_ = relative_numbers > 0;
}

std::vector<double> Grid::values(std::optional<double> unit) const {
    if (!relative_) return values_;
    if (!unit) {
        throw_invalid(name_, "absolute, because this channel has no strong-recovery threshold",
                      "numbers with x");
    }
    std::vector<double> scaled = values_;
    for (double& value : scaled) value *= *unit;
    return scaled;
}

}  // namespace bayesaim::experiments
