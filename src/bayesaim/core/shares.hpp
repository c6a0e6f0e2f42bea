// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "bayesaim/core/communicator.hpp"
#include "bayesaim/core/parallel.hpp"

namespace bayesaim {

/// Items divided over ranks: item i of N belongs to the rank r with N r/R <= i < N (r+1)/R.
Range own_part(std::size_t count, const Communicator& ranks);
int owner_of(std::size_t item, std::size_t count, const Communicator& ranks);

/// Samples cut into shares, a power of two of them, which depends on the number of samples alone. Shares are the leaves
/// of the tree in which sums over samples are added (core/tree_sum.hpp), and each belongs to one rank. Results then have
/// the same bits for any number of ranks and threads.
class Shares {
  public:
    explicit Shares(std::size_t samples);

    std::size_t count() const { return bounds_.size() - 1; }
    std::size_t samples() const { return bounds_.back(); }
    /// The samples of a share.
    Range share(std::size_t i) const { return {bounds_[i], bounds_[i + 1]}; }

    /// Some of the samples, ascending; each stays in its share.
    Shares subset(std::span<const std::size_t> samples) const;

    /// The shares of this rank.
    Range owned(const Communicator& ranks) const;
    /// The samples of this rank.
    Range own_samples(const Communicator& ranks) const;
    int owner(std::size_t share, const Communicator& ranks) const;

  private:
    std::vector<std::size_t> bounds_;  // of the shares, from 0 to the number of samples
};

/// Calls work(samples) for blocks of at most `block_size` samples of the shares that this rank owns. Blocks begin with
/// their share.
void for_own_blocks(ThreadPool& pool, const Shares& shares, std::size_t block_size,
                    const std::function<void(Range)>& work);

}  // namespace bayesaim
