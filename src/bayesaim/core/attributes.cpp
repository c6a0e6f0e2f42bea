// SPDX-License-Identifier: MIT
#include "bayesaim/core/attributes.hpp"

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim {

std::optional<std::string> text_attribute(const Attributes& attributes, const std::string& name) {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return std::nullopt;
    if (const auto* text = found->second.as<std::string>()) return *text;
    throw_invalid(fmt::format("attribute {}", name), "text", "a number");
}

std::optional<double> number_attribute(const Attributes& attributes, const std::string& name) {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return std::nullopt;
    return number_of(fmt::format("attribute {}", name), found->second);
}

}  // namespace bayesaim
