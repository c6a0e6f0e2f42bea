// SPDX-License-Identifier: MIT
#include "bayesaim/core/parallel.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace bayesaim {
namespace {

constexpr std::size_t thread_counts[] = {1, 2, 3, 7};

TEST(ThreadPool, EveryItemIsDoneOnce) {
    for (const std::size_t threads : thread_counts) {
        ThreadPool pool(threads);
        EXPECT_EQ(pool.threads(), threads);
        for (const std::size_t count : {1, 2, 5, 1000}) {
            std::vector<std::atomic<int>> done(count);
            pool.for_each(count, [&](std::size_t i) { ++done[i]; });
            for (std::size_t i = 0; i < count; ++i)
                ASSERT_EQ(done[i], 1) << i << " of " << count << ", " << threads << " threads";
        }
    }
}

TEST(ThreadPool, ZeroThreadsMeansOnePerCore) {
    EXPECT_EQ(ThreadPool(0).threads(), std::max(1U, std::thread::hardware_concurrency()));
}

TEST(ThreadPool, AnEmptyRangeCallsNothing) {
    ThreadPool pool(3);
    pool.for_each(0, [](std::size_t) { FAIL(); });
    parallel_for(pool, 0, 16, [](Range) { FAIL(); });
}

TEST(ThreadPool, AllThreadsWork) {
    // Two items that wait for each other end only when two threads work at the same time.
    ThreadPool pool(2);
    std::atomic<int> arrived = 0;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    pool.for_each(2, [&](std::size_t) {
        ++arrived;
        while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
        EXPECT_EQ(arrived, 2);
    });
}

TEST(ThreadPool, TheExceptionOfTheLowestItemIsRethrown) {
    for (const std::size_t threads : thread_counts) {
        ThreadPool pool(threads);
        for (int repeat = 0; repeat < 20; ++repeat) {
            try {
                pool.for_each(100, [](std::size_t i) {
                    // The lower item fails later.
                    if (i == 10) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    if (i >= 10) throw std::runtime_error(std::to_string(i));
                });
                FAIL() << "nothing was thrown";
            } catch (const std::runtime_error& error) {
                ASSERT_STREQ(error.what(), "10") << threads << " threads";
            }
        }
    }
}

TEST(ThreadPool, ItemsBeforeAFailureAreDoneAndNoneRunsAfterTheLoopEnds) {
    ThreadPool pool(3);
    std::vector<std::atomic<int>> done(50);
    EXPECT_THROW(pool.for_each(done.size(),
                               [&](std::size_t i) {
                                   if (i == 20) throw std::runtime_error("stop");
                                   ++done[i];
                               }),
                 std::runtime_error);
    for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(done[i], 1) << i;
    EXPECT_EQ(done[20], 0);
}

TEST(ThreadPool, CanBeUsedAgainAfterAnException) {
    ThreadPool pool(3);
    EXPECT_THROW(pool.for_each(10, [](std::size_t) { throw std::logic_error("x"); }), std::logic_error);
    std::atomic<int> calls = 0;
    EXPECT_NO_THROW(pool.for_each(1000, [&](std::size_t) { ++calls; }));
    EXPECT_EQ(calls, 1000);
}

TEST(Blocks, CoverTheItemsInOrderWithoutGaps) {
    for (const std::size_t count : {0, 1, 15, 16, 17, 100}) {
        std::size_t next = 0;
        for (std::size_t block = 0; block < block_count(count, 16); ++block) {
            const Range range = block_range(count, 16, block);
            EXPECT_EQ(range.begin, next);
            EXPECT_GT(range.size(), 0U);
            EXPECT_LE(range.size(), 16U);
            next = range.end;
        }
        EXPECT_EQ(next, count);
    }
}

TEST(ParallelFor, SumsInTheOrderOfTheBlocksHaveTheSameBitsForAnyNumberOfThreads) {
    // Terms of very different size: adding in another order changes the last bits.
    const auto work = [](Range range) {
        double sum = 0;
        for (std::size_t i = range.begin; i < range.end; ++i)
            sum += std::sin(static_cast<double>(i)) * std::exp(static_cast<double>(i % 40));
        return sum;
    };
    constexpr std::size_t count = 20'003;
    double reversed = 0, in_order = 0;
    for (std::size_t block = 0; block < block_count(count, 64); ++block) {
        in_order += work(block_range(count, 64, block));
        reversed += work(block_range(count, 64, block_count(count, 64) - 1 - block));
    }
    ASSERT_NE(reversed, in_order) << "the terms do not see the order";
    for (const std::size_t threads : thread_counts) {
        ThreadPool pool(threads);
        for (int repeat = 0; repeat < 5; ++repeat) {
            std::vector<double> partial(block_count(count, 64));
            parallel_for(pool, count, 64, [&](Range range) { partial[range.begin / 64] = work(range); });
            EXPECT_EQ(std::accumulate(partial.begin(), partial.end(), 0.0), in_order)
                << threads << " threads";
        }
    }
}

}  // namespace
}  // namespace bayesaim
