// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "bayesaim/core/shares.hpp"

namespace bayesaim {

/// What tree_sum adds: numbers in parts whose sizes are the same for all samples.
///   a.add(b)        a += b
///   a.for_parts(f)  calls f(bytes) for each part, as std::span<std::byte>
template <class Sum>
concept Summable = requires(Sum sum, const Sum other, void (*f)(std::span<std::byte>)) {
    sum.add(other);
    sum.for_parts(f);
};

/// The sum over all samples of all ranks, in a fixed binary tree:
///   leaves    equal parts of the shares, `parts_of_share` (a power of two) of each
///   node      left sum + right sum
/// Neither the tree nor the bits depend on threads and ranks. A rank adds the leaves that it owns with its
/// threads; where a node has leaves of several ranks, the owner of its right half sends its sum to the owner of the left.
/// All ranks get the result. A rank keeps about one sum per thread and one per level of the tree,
/// and at most two per thread and one per thread and level.
template <Summable Sum>
class TreeSum {
  public:
    /// Sets `sum` to the sum over these samples, of which there may be none. The sum may hold anything before.
    using Leaf = std::function<void(Range samples, Sum& sum)>;

    /// Without a pool the calling thread and this process work alone. `spare` gives memory, and gets it back.
    TreeSum(ThreadPool* pool, const Shares& shares, std::vector<Sum>& spare, std::size_t parts_of_share = 1)
        : pool_(pool),
          ranks_(pool != nullptr ? pool->ranks() : one_process()),
          shares_(shares),
          spare_(spare),
          parts_(parts_of_share),
          leaves_(shares.count() * parts_of_share) {}

    Sum operator()(const Leaf& leaf) {
        const Range own = shares_.owned(ranks_);
        const auto work = [&](std::size_t i) { add_leaf(own.begin * parts_ + i, leaf); };
        const std::size_t count = own.size() * parts_;
        if (pool_ != nullptr) {
            pool_->for_each(count, work);
        } else {
            for (std::size_t i = 0; i < count; ++i) work(i);
        }
        Sum result = take_spare();
        if (auto sum = combine(1, 0, leaves_)) {
            std::swap(result, *sum);
            spare_.push_back(std::move(*sum));
        } else {
            leaf({0, 0}, result);  // gives the parts their sizes
        }
        if (ranks_.size() > 1) result.for_parts([&](std::span<std::byte> bytes) { ranks_.broadcast(bytes); });
        return result;
    }

  private:
    // Nodes have the numbers of a heap: the root is 1, leaf i is leaves_ + i, the children of k are 2k and 2k + 1.
    int owner(std::size_t leaf) const { return shares_.owner(leaf / parts_, ranks_); }
    bool mine(std::size_t leaf) const { return owner(leaf) == ranks_.rank(); }

    Range samples_of(std::size_t leaf) const {
        const Range share = shares_.share(leaf / parts_);
        const std::size_t part = leaf % parts_;
        return {share.begin + share.size() * part / parts_, share.begin + share.size() * (part + 1) / parts_};
    }

    Sum take_spare() {
        const std::lock_guard lock(mutex_);
        if (spare_.empty()) return Sum();
        Sum sum = std::move(spare_.back());
        spare_.pop_back();
        return sum;
    }

    /// Adds the leaf to its neighbour if that is there already, the sum to its neighbour, and so on.
    void add_leaf(std::size_t leaf_index, const Leaf& leaf) {
        Sum sum = take_spare();
        leaf(samples_of(leaf_index), sum);
        std::size_t node = leaves_ + leaf_index;
        for (std::size_t size = 2; node > 1; node /= 2, size *= 2) {
            const std::size_t first = leaf_index / size * size;  // of the parent
            const bool whole = mine(first) && mine(first + size - 1);
            std::unique_lock lock(mutex_);
            const auto neighbour = whole ? waiting_.find(node ^ 1) : waiting_.end();
            if (neighbour == waiting_.end()) {
                waiting_.emplace(node, std::move(sum));
                return;
            }
            Sum other = std::move(neighbour->second);
            waiting_.erase(neighbour);
            lock.unlock();
            if (node % 2 == 1) std::swap(sum, other);
            sum.add(other);
            lock.lock();
            spare_.push_back(std::move(other));
        }
        const std::lock_guard lock(mutex_);
        waiting_.emplace(node, std::move(sum));
    }

    /// The sum of a node on the rank that owns its first leaf; elsewhere none.
    std::optional<Sum> combine(std::size_t node, std::size_t first, std::size_t end) {
        if (const auto own = waiting_.find(node); own != waiting_.end()) {
            Sum sum = std::move(own->second);
            waiting_.erase(own);
            return sum;
        }
        // Ranks are in the order of their leaves.
        if (owner(first) > ranks_.rank() || owner(end - 1) < ranks_.rank() || end - first == 1)
            return std::nullopt;
        const std::size_t middle = first + (end - first) / 2;
        std::optional<Sum> left = combine(2 * node, first, middle),
                           right = combine(2 * node + 1, middle, end);
        const int from = owner(middle), to = owner(first);
        if (right && from != to) {
            right->for_parts([&](std::span<std::byte> bytes) { ranks_.send(bytes, to); });
            spare_.push_back(std::move(*right));
            return std::nullopt;
        }
        if (!left) return std::nullopt;
        if (!right) {
            right = *left;  // for its sizes
            right->for_parts([&](std::span<std::byte> bytes) { ranks_.receive(bytes, from); });
        }
        left->add(*right);
        spare_.push_back(std::move(*right));
        return left;
    }

    ThreadPool* pool_;
    Communicator& ranks_;
    const Shares& shares_;
    std::vector<Sum>& spare_;
    std::size_t parts_, leaves_;
    std::mutex mutex_;                    // of waiting_ and spare_
    std::map<std::size_t, Sum> waiting_;  // sums of nodes whose neighbour is not there yet
};

/// The sum of numbers over the samples of all ranks. `leaf` adds those of some samples to zeros, `size` of them.
std::vector<double> sum_over_samples(ThreadPool& pool, const Shares& shares, std::size_t size,
                                     const std::function<void(Range samples, std::span<double> sums)>& leaf);
/// One number.
double sum_over_samples(ThreadPool& pool, const Shares& shares,
                        const std::function<double(Range samples)>& leaf);

}  // namespace bayesaim
