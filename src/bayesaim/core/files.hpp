// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace bayesaim {

/// Writes a text file by way of a temporary neighbour, so that readers see all of it or the old one.
void write_whole(const std::filesystem::path& file, std::string_view text);

/// All of a text file; throws InvalidArgument, which calls it `name`, where it cannot be read.
std::string read_whole(std::string_view name, const std::filesystem::path& file);

/// 16 hexadecimal digits that tell texts apart (FNV-1a, 64 bits); the same on every machine.
std::string fingerprint(std::string_view text);

}  // namespace bayesaim
