// SPDX-License-Identifier: MIT
#include "bayesaim/core/random.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <Random123/philox.h>

namespace bayesaim {
namespace {

using Block = std::array<double, 4>;

/// The middle of one of 2^52 equal cells of (0, 1): never 0 or 1, and exact in double precision.
double to_open_unit(std::uint64_t word) { return (static_cast<double>(word >> 12) + 0.5) * 0x1p-52; }

Block uniform_block(const std::array<std::uint64_t, 4>& word) {
    return {to_open_unit(word[0]), to_open_unit(word[1]), to_open_unit(word[2]), to_open_unit(word[3])};
}

Block normal_block(const std::array<std::uint64_t, 4>& word) {
    const Block u = uniform_block(word);
    Block out;
    for (std::size_t pair = 0; pair < 4; pair += 2) {
        const double radius = std::sqrt(-2 * std::log(u[pair]));
        const double angle = 2 * std::numbers::pi * u[pair + 1];
        out[pair] = radius * std::cos(angle);
        out[pair + 1] = radius * std::sin(angle);
    }
    return out;
}

template <class MakeBlock>
void fill(const RandomStream& stream, std::span<double> out, std::uint64_t first, MakeBlock make_block) {
    std::size_t done = 0;
    while (done < out.size()) {
        const std::uint64_t position = first + done;
        const Block block = make_block(stream.words(position / 4));
        const std::size_t offset = position % 4;
        const std::size_t count = std::min(4 - offset, out.size() - done);
        std::copy_n(block.begin() + offset, count, out.begin() + static_cast<std::ptrdiff_t>(done));
        done += count;
    }
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t index)
    : seed_(seed), purpose_(static_cast<std::uint64_t>(purpose)), index_(index) {}

std::array<std::uint64_t, 4> RandomStream::words(std::uint64_t block) const {
    const r123::Philox4x64::ctr_type counter = {{block, index_, 0, 0}};
    const r123::Philox4x64::key_type key = {{seed_, purpose_}};
    const auto result = r123::Philox4x64()(counter, key);
    return {result[0], result[1], result[2], result[3]};
}

void RandomStream::fill_normal(std::span<double> out, std::uint64_t first) const {
    fill(*this, out, first, normal_block);
}

void RandomStream::fill_uniform(std::span<double> out, std::uint64_t first) const {
    fill(*this, out, first, uniform_block);
}

}  // namespace bayesaim
