// SPDX-License-Identifier: MIT
#include "bayesaim/core/parallel.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>

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

TEST(ThreadPool, ZeroThreadsMeansOnePerProcessorOfTheAffinity) {
    EXPECT_EQ(ThreadPool(0).threads(), default_threads());
    EXPECT_LE(default_threads(), std::max(1U, std::thread::hardware_concurrency()));
    std::thread([] {  // the affinity belongs to a thread
        cpu_set_t allowed, one;
        ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
        std::size_t first = 0;
        while (!CPU_ISSET(first, &allowed)) ++first;
        CPU_ZERO(&one);
        CPU_SET(first, &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        EXPECT_EQ(ThreadPool(0).threads(), 1U);
    })
        .join();
}

/// The CPU limit of a control group whose files these are.
std::optional<double> limit_of(const std::string& membership,
                               const std::map<std::string, std::string>& files) {
    return control_group_limit(membership, [&](const std::string& file) -> std::optional<std::string> {
        const auto found = files.find(file);
        return found == files.end() ? std::nullopt : std::optional(found->second);
    });
}

TEST(ControlGroupLimit, OfVersionTwoIsTheLeastOfTheGroupAndThoseAbove) {
    const std::string job = "0::/slurm/job\n";
    EXPECT_EQ(limit_of(job, {{"/slurm/job/cpu.max", "150000 100000\n"}}), 1.5);
    EXPECT_EQ(limit_of(job, {{"/slurm/job/cpu.max", "max 100000\n"}}), std::nullopt);
    EXPECT_EQ(limit_of(job, {{"/slurm/job/cpu.max", "max 100000\n"}, {"/slurm/cpu.max", "200000 100000\n"}}),
              2.0);
    EXPECT_EQ(limit_of("0::/\n", {{"/cpu.max", "400000 100000\n"}}), 4.0);
    // A container sees its own group as the root, whatever its path outside.
    EXPECT_EQ(limit_of(job, {{"/cpu.max", "50000 100000\n"}}), 0.5);
}

TEST(ControlGroupLimit, OfVersionOneIsQuotaPerPeriod) {
    const std::string job = "5:memory:/a\n4:cpu,cpuacct:/docker/1f\n0::/\n";
    const auto quota = [&](const std::string& mount, const std::string& quota_text) {
        return limit_of(job, {{mount + "/docker/1f/cpu.cfs_quota_us", quota_text},
                              {mount + "/docker/1f/cpu.cfs_period_us", "100000\n"}});
    };
    EXPECT_EQ(quota("/cpu,cpuacct", "300000\n"), 3.0);
    EXPECT_EQ(quota("/cpu", "300000\n"), 3.0);
    EXPECT_EQ(quota("/cpu", "-1\n"), std::nullopt);
}

TEST(ControlGroupLimit, WithoutFilesOrWithOtherTextsThereIsNone) {
    EXPECT_EQ(limit_of("", {}), std::nullopt);
    EXPECT_EQ(limit_of("0::/a\n", {}), std::nullopt);
    EXPECT_EQ(limit_of("nonsense\n::\n", {{"/cpu.max", "nonsense"}}), std::nullopt);
    EXPECT_EQ(limit_of("0::/\n", {{"/cpu.max", "0 0"}}), std::nullopt);
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

TEST(ThreadPool, StopsBeforeTheNextItemWhenAsked) {
    for (const std::size_t threads : thread_counts) {
        ThreadPool pool(threads);
        std::atomic<std::size_t> done = 0;
        pool.stop_when([&] { return done >= 10; });
        EXPECT_THROW(pool.for_each(1000, [&](std::size_t) { ++done; }), Stopped);
        EXPECT_GE(done, 10U);
        EXPECT_LT(done, 10 + threads);
        pool.stop_when({});
        done = 0;
        EXPECT_NO_THROW(pool.for_each(1000, [&](std::size_t) { ++done; }));
        EXPECT_EQ(done, 1000U);
    }
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
