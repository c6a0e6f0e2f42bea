// SPDX-License-Identifier: MIT
#pragma once
#include <map>
#include <optional>
#include <string>

#include "bayesaim/core/record.hpp"

namespace bayesaim {

/// Attributes of a data file by name: texts, numbers, and lists, which become texts in the file, "0.4,0.8".
using Attributes = std::map<std::string, Value>;

/// The attribute as text or as a number. Returns std::nullopt if the attribute is missing. Throws
/// InvalidArgument if it has another type.
std::optional<std::string> text_attribute(const Attributes& attributes, const std::string& name);
std::optional<double> number_attribute(const Attributes& attributes, const std::string& name);

}  // namespace bayesaim
