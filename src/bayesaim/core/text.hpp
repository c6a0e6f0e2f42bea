// SPDX-License-Identifier: MIT
#pragma once
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace bayesaim {

/// The parts of a text between the separators.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

/// The number that the whole text spells, without a plus sign; std::nullopt if it spells none.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
    return value;
}

}  // namespace bayesaim
