// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz.hpp"

/// Files of arrays, described in few bytes: two for how the file is read, then pieces of eight. Each piece is an array, an
/// attribute or a damage of the bytes of the file.
namespace bayesaim::fuzz {

constexpr std::size_t array_head = 2, array_piece = 8;

struct Piece {
    enum class Kind { array, number, text, damage } kind = Kind::array;
    std::string name{};
    std::vector<std::uint64_t> sizes{};  ///< as the file says
    unsigned type = 0, layout = 0;       ///< for the kind of file to interpret
    std::vector<double> values{};        ///< of an array with these sizes, at most some thousand
    std::string text{};
    std::size_t place = 0;  ///< of the damage
    std::uint8_t mask = 0;
};

std::vector<Piece> pieces_of(Description& description);

/// Changes bytes as the pieces say, or cuts the file.
void damage(const std::vector<Piece>& pieces, bool only_cut, std::string& file);

/// Reads the file as data of one of several channels, as the commands do.
void read_as_dataset(const std::string& file, unsigned channel);
/// Makes the model that the attributes describe.
void make_model_of(const std::string& file, bool estimate);

}  // namespace bayesaim::fuzz
