// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// Deterministic parallel loops: the work is cut into blocks that do not depend on the number of threads.
/// Callers combine partial results in block order, so results are bit-identical for any thread count.
namespace bayesaim {

/// Half-open range of items.
struct Range {
    std::size_t begin = 0, end = 0;
    std::size_t size() const { return end - begin; }
};

/// Thrown by a loop that was asked to stop; see ThreadPool::stop_when.
struct Stopped : std::exception {
    const char* what() const noexcept override { return "stopped"; }
};

class Communicator;

/// The threads of this process, and the processes (ranks) that it computes with. Loops are those of this process; who
/// adds over samples takes the ranks too (core/tree_sum.hpp).
class ThreadPool {
  public:
    /// Starts `threads - 1` threads, because the calling thread works too. 0 means
    /// default_threads().
    explicit ThreadPool(std::size_t threads = 1);
    /// The same among several ranks, which must outlive the pool.
    ThreadPool(std::size_t threads, Communicator& ranks);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    std::size_t threads() const;
    Communicator& ranks() const;

    /// Calls work(i) once for each i = 0 .. count-1, in any order. If calls throw, the exception of the
    /// lowest i is rethrown here after all started calls have ended. Not reentrant: call it from one thread.
    void for_each(std::size_t count, const std::function<void(std::size_t)>& work);

    /// From now on for_each asks before each item. Once the answer is true it starts no item, and throws
    /// Stopped after all started calls have ended. Several threads ask at once.
    void stop_when(std::function<bool()> condition);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// One thread per processor that this process may use: those of its CPU affinity (taskset, Slurm), at most
/// the CPU limit of its control group (containers), and its part of the processors if a launcher started several
/// processes on this machine. At least 1.
std::size_t default_threads();

/// The CPU limit of a control group in processors; std::nullopt if there is none. `membership` is the text of
/// /proc/self/cgroup. `read` returns the text of a file below /sys/fs/cgroup, std::nullopt if there is none.
/// The least limit of the group and those above it counts: cpu.max in version 2, cpu.cfs_quota_us and
/// cpu.cfs_period_us in version 1.
std::optional<double> control_group_limit(
    std::string_view membership, const std::function<std::optional<std::string>(const std::string&)>& read);

/// Block number `block` of `count` items cut into blocks of `block_size`.
Range block_range(std::size_t count, std::size_t block_size, std::size_t block);
std::size_t block_count(std::size_t count, std::size_t block_size);
/// The same for the items of a range.
Range block_within(Range items, std::size_t block_size, std::size_t block);

/// Calls work(range) for each block of the items.
void parallel_for(ThreadPool& pool, std::size_t count, std::size_t block_size,
                  const std::function<void(Range)>& work);

}  // namespace bayesaim
