// SPDX-License-Identifier: MIT
#include "bayesaim/theory/points.hpp"

#include <atomic>
#include <mutex>
#include <vector>

namespace bayesaim::theory {

std::size_t solve_points(std::size_t count, bool in_turn, ThreadPool& pool,
                         const std::function<bool(double)>& progress,
                         const std::function<void(std::size_t)>& solve) {
    std::vector<char> done(count, 0);
    std::atomic<bool> stop = false;
    std::mutex mutex;
    std::size_t finished = 0;
    const auto solve_one = [&](std::size_t i) {
        if (stop) return;
        solve(i);
        const std::lock_guard lock(mutex);
        done[i] = 1;
        ++finished;
        if (progress && !progress(static_cast<double>(finished) / static_cast<double>(count))) stop = true;
    };
    try {
        if (in_turn) {
            for (std::size_t i = 0; i < count; ++i) solve_one(i);
        } else {
            pool.for_each(count, solve_one);
        }
    } catch (const Stopped&) {
        // The finished points count.
    }
    std::size_t whole = 0;
    while (whole < count && done[whole]) ++whole;
    return whole;
}

}  // namespace bayesaim::theory
