// SPDX-License-Identifier: MIT
#include "bayesaim/core/checks.hpp"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bayesaim/core/input_file.hpp"

namespace bayesaim {

void throw_invalid(std::string_view name, std::string_view requirement, std::string_view value) {
    // The value may be a text of several lines.
    throw InvalidArgument(printable(fmt::format("{} must be {}, got {}", name, requirement, value)));
}

void throw_invalid(std::string_view name, std::string_view requirement, double value) {
    throw_invalid(name, requirement, fmt::format("{}", value));
}

void throw_conflict(std::string_view option, std::string_view other) {
    throw InvalidArgument(fmt::format("{} cannot be combined with {}", option, other));
}

void throw_missing(std::string_view option, std::string_view needed) {
    throw InvalidArgument(fmt::format("{} needs {}", option, needed));
}

void throw_unavailable(std::string_view name, std::string_view circumstance) {
    throw InvalidArgument(fmt::format("{} is not available {}", name, circumstance));
}

void throw_inapplicable(std::string_view option, std::string_view owner, std::string_view actual) {
    throw InvalidArgument(fmt::format("{} applies only to {} ({})", option, owner, actual));
}

void throw_unreadable(std::string_view kind, std::string_view file, int error) {
    throw InvalidArgument(
        fmt::format("cannot read {} '{}': {}", kind, file, std::generic_category().message(error)));
}

void check_finite(std::string_view name, double value) {
    if (!std::isfinite(value)) throw_invalid(name, "a finite number", value);
}

void check_positive(std::string_view name, double value) {
    if (!(std::isfinite(value) && value > 0)) throw_invalid(name, "positive and finite", value);
}

void check_non_negative(std::string_view name, double value) {
    if (!(std::isfinite(value) && value >= 0)) throw_invalid(name, "non-negative and finite", value);
}

void check_between(std::string_view name, double value, double lowest, double highest) {
    if (!(value >= lowest && value <= highest)) {
        throw_invalid(name, fmt::format("between {:g} and {:g}", lowest, highest), value);
    }
}

void check_at_least(std::string_view name, long long value, long long lowest) {
    if (value < lowest) throw_invalid(name, fmt::format("at least {}", lowest), fmt::format("{}", value));
}

void check_size(std::string_view name, long long size, long long expected) {
    if (size != expected) throw_invalid(name, fmt::format("of size {}", expected), fmt::format("{}", size));
}

std::size_t check_one_of(std::string_view name, std::string_view value,
                         const std::vector<std::string>& known) {
    const auto found = std::find(known.begin(), known.end(), value);
    if (found == known.end()) {
        throw_invalid(name, fmt::format("one of {}", fmt::join(known, ", ")), fmt::format("'{}'", value));
    }
    return static_cast<std::size_t>(found - known.begin());
}

}  // namespace bayesaim
