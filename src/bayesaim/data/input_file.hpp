// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "bayesaim/core/input_file.hpp"

namespace bayesaim::data {

/// Opens a file of either kind, told apart by its first bytes. Messages about the file as a whole call it
/// `kind`.
std::unique_ptr<const InputFile> open_input(const std::string& file, std::string_view kind);

}  // namespace bayesaim::data
