// SPDX-License-Identifier: MIT
#pragma once
#include <array>
#include <cstdint>
#include <span>

/// Counter-based random numbers (Philox4x64-10, Salmon et al. 2011). Every stream is addressed by
/// (seed, purpose, index) and every number in it by its position, so the data do not depend on the order or
/// the thread in which they are drawn.
namespace bayesaim {

/// The purpose of a stream. Streams of different purpose are independent; the numbers are part of the
/// reproducibility contract: add, never renumber.
enum class Purpose : std::uint64_t {
    weights = 1,           ///< the matrices S; index = draw * layers + layer
    noise = 2,             ///< additive GOE noise
    tokens = 3,            ///< token matrices; index = sample
    label_noise = 4,       ///< noise or tie-breaking of outputs; index = sample
    rotation = 5,          ///< Haar rotations of a fixed spectrum
    initial = 6,           ///< starts of an estimator; index = start
    integration = 7,       ///< random shifts of quasi-Monte Carlo points
    test_tokens = 8,       ///< token matrices of a test set; index = sample
    minibatch = 9,         ///< order of the samples in an epoch; index = start * 2^32 + epoch
    probe = 10,            ///< directions in which an estimator is differentiated; index = layer
    key_tokens = 11,       ///< token matrices of the keys of cross-attention; index = sample
    test_key_tokens = 12,  ///< the same of a test set
    held_out = 13,         ///< which samples are held out
    prediction = 14,       ///< outputs that a fitted model draws; index = sample
};

class RandomStream {
  public:
    RandomStream(std::uint64_t seed, Purpose purpose, std::uint64_t index = 0);

    /// Four words of the block with this number: Philox4x64-10 with key (seed, purpose) and counter
    /// (block, index, 0, 0). Pinned by: RandomStream.WordsAreNumpysPhilox.
    std::array<std::uint64_t, 4> words(std::uint64_t block) const;

    /// Standard normal variates with the numbers first, first + 1, ... (Box-Muller: a pair from two words,
    /// four variates per block).
    void fill_normal(std::span<double> out, std::uint64_t first = 0) const;

    /// Uniform variates on (0, 1), never 0 or 1, numbered like the normal variates.
    void fill_uniform(std::span<double> out, std::uint64_t first = 0) const;

  private:
    std::uint64_t seed_, purpose_, index_;
};

}  // namespace bayesaim
