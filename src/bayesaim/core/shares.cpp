// SPDX-License-Identifier: MIT
#include "bayesaim/core/shares.hpp"

#include <algorithm>
#include <bit>

namespace bayesaim {
namespace {

/// Adding a share to the others costs as much as the products of about 40 samples once a d x d matrix leaves the cache.
/// So shares have at least this many samples, unless there are so few that several threads would have no work.
constexpr std::size_t usual_samples = 1024, fewest_samples = 64, few_shares = 8, most_shares = 65536;
/// Shares begin at multiples of this, as gradient descent fills up vectors of so many samples.
constexpr std::size_t vector_size = 32;

}  // namespace

Range own_part(std::size_t count, const Communicator& ranks) {
    const auto first_of = [&](int rank) {
        const auto r = static_cast<std::size_t>(rank), all = static_cast<std::size_t>(ranks.size());
        return (count * r + all - 1) / all;
    };
    return {first_of(ranks.rank()), first_of(ranks.rank() + 1)};
}

int owner_of(std::size_t item, std::size_t count, const Communicator& ranks) {
    return static_cast<int>(item * static_cast<std::size_t>(ranks.size()) / count);
}

Shares::Shares(std::size_t samples) {
    const std::size_t wanted = std::clamp(samples / usual_samples, few_shares, most_shares),
                      possible = std::max<std::size_t>(samples / fewest_samples, 1),
                      count = std::bit_floor(std::min(wanted, possible));
    for (std::size_t i = 0; i < count; ++i)
        bounds_.push_back(samples * i / count / vector_size * vector_size);
    bounds_.push_back(samples);
}

Shares Shares::subset(std::span<const std::size_t> samples) const {
    Shares result = *this;
    for (std::size_t& bound : result.bounds_)
        bound = static_cast<std::size_t>(std::lower_bound(samples.begin(), samples.end(), bound) -
                                         samples.begin());
    return result;
}

Range Shares::owned(const Communicator& ranks) const { return own_part(count(), ranks); }

Range Shares::own_samples(const Communicator& ranks) const {
    const Range own = owned(ranks);
    return {bounds_[own.begin], bounds_[own.end]};
}

int Shares::owner(std::size_t share, const Communicator& ranks) const {
    return owner_of(share, count(), ranks);
}

void for_own_blocks(ThreadPool& pool, const Shares& shares, std::size_t block_size,
                    const std::function<void(Range)>& work) {
    const Range own = shares.owned(pool.ranks());
    std::vector<Range> blocks;
    for (std::size_t i = own.begin; i < own.end; ++i) {
        const Range share = shares.share(i);
        for (std::size_t b = 0; b < block_count(share.size(), block_size); ++b)
            blocks.push_back(block_within(share, block_size, b));
    }
    pool.for_each(blocks.size(), [&](std::size_t b) { work(blocks[b]); });
}

}  // namespace bayesaim
