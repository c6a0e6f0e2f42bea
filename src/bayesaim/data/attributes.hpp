// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

namespace bayesaim::data {

/// Attributes of a data file by name.
using Attribute = std::variant<std::string, double, std::uint64_t>;
using Attributes = std::map<std::string, Attribute>;

/// The attribute as text or as a number. Returns std::nullopt if the attribute is missing. Throws
/// InvalidArgument if it has another type.
std::optional<std::string> text_attribute(const Attributes& attributes, const std::string& name);
std::optional<double> number_attribute(const Attributes& attributes, const std::string& name);

}  // namespace bayesaim::data
