// SPDX-License-Identifier: MIT
#include "bayesaim/core/tree_sum.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "support/thread_ranks.hpp"

namespace bayesaim {
namespace {

/// Numbers of very different size: every other order of the sum gives other bits.
double term(std::size_t i) {
    return std::sin(static_cast<double>(i)) * std::pow(10, static_cast<double>(i % 13));
}

double plain_sum(Range range) {
    double sum = 0;
    for (std::size_t i = range.begin; i < range.end; ++i) sum += term(i);
    return sum;
}

/// The definition of the tree, by recursion.
double tree_of(const Shares& shares, std::size_t first, std::size_t end) {
    if (end - first == 1) return plain_sum(shares.share(first));
    const std::size_t middle = (first + end) / 2;
    return tree_of(shares, first, middle) + tree_of(shares, middle, end);
}

double sum_with(ThreadPool& pool, std::size_t samples) {
    return sum_over_samples(pool, Shares(samples), plain_sum);
}

TEST(Shares, CoverAllSamplesInTheirOrder) {
    for (const std::size_t samples : {1U, 31U, 64U, 127U, 128U, 600U, 1000U, 8191U, 8192U, 100000U}) {
        const Shares shares(samples);
        EXPECT_EQ(shares.samples(), samples);
        EXPECT_EQ(shares.count() & (shares.count() - 1), 0U) << "not a power of two";
        std::size_t next = 0;
        for (std::size_t i = 0; i < shares.count(); ++i) {
            EXPECT_EQ(shares.share(i).begin, next);
            EXPECT_GT(shares.share(i).size(), 0U) << samples;
            next = shares.share(i).end;
        }
        EXPECT_EQ(next, samples);
    }
    EXPECT_EQ(Shares(1000).count(), 8U);
    EXPECT_EQ(Shares(200'000).count(), 128U);
}

TEST(Shares, EachBelongsToOneRank) {
    for (const int size : {1, 2, 3, 4, 7, 20}) {
        const Shares shares(1000);
        const auto owned = test::on_ranks(size, [&](Communicator& ranks) {
            for (std::size_t i = 0; i < shares.count(); ++i) {
                const Range own = shares.owned(ranks);
                EXPECT_EQ(shares.owner(i, ranks) == ranks.rank(), i >= own.begin && i < own.end);
            }
            return shares.own_samples(ranks);
        });
        EXPECT_EQ(owned.front().begin, 0U);
        for (std::size_t r = 1; r < owned.size(); ++r) EXPECT_EQ(owned[r].begin, owned[r - 1].end);
        EXPECT_EQ(owned.back().end, 1000U);
    }
}

TEST(Shares, ASubsetStaysWithItsRank) {
    const Shares shares(1000);
    std::vector<std::size_t> some;
    for (std::size_t i = 0; i < 1000; i += 1 + i % 5) some.push_back(i);
    const Shares subset = shares.subset(some);
    ASSERT_EQ(subset.count(), shares.count());
    EXPECT_EQ(subset.samples(), some.size());
    for (std::size_t s = 0; s < subset.count(); ++s) {
        for (std::size_t k = subset.share(s).begin; k < subset.share(s).end; ++k) {
            EXPECT_GE(some[k], shares.share(s).begin);
            EXPECT_LT(some[k], shares.share(s).end);
        }
    }
}

TEST(TreeSum, AddsInTheTree) {
    for (const std::size_t samples : {1U, 100U, 1000U, 20000U}) {
        ThreadPool pool(1);
        const Shares shares(samples);
        EXPECT_EQ(sum_with(pool, samples), tree_of(shares, 0, shares.count()));
        const double rough = plain_sum({0, samples});
        EXPECT_NEAR(sum_with(pool, samples), rough, 1e-9 * std::abs(rough) + 1e-3);
    }
    ThreadPool pool(1);
    EXPECT_NE(sum_with(pool, 20000), plain_sum({0, 20000})) << "the terms do not tell orders apart";
}

TEST(TreeSum, HasTheSameBitsForAnyNumberOfRanksAndThreads) {
    ThreadPool alone(1);
    const double expected = sum_with(alone, 5000);
    for (const int size : {1, 2, 3, 4, 7, 12}) {
        for (const std::size_t threads : {1U, 3U}) {
            const auto sums = test::on_ranks(size, [&](Communicator& ranks) {
                ThreadPool pool(threads, ranks);
                return sum_with(pool, 5000);
            });
            for (const double sum : sums)
                EXPECT_EQ(sum, expected) << size << " ranks, " << threads << " threads";
        }
    }
}

TEST(TreeSum, PartsOfSharesAreAddedInATreeToo) {
    struct One {
        double value = 0;
        void add(const One& other) { value += other.value; }
        void for_parts(const std::function<void(std::span<std::byte>)>& use) { use(bytes_of(value)); }
    };
    const auto sum = [](ThreadPool& pool) {
        std::vector<One> spare;
        return TreeSum<One>(&pool, Shares(3000), spare,
                            4)([](Range samples, One& one) { one.value = plain_sum(samples); })
            .value;
    };
    ThreadPool alone(1);
    const double expected = sum(alone);
    EXPECT_NE(expected, sum_with(alone, 3000)) << "shares were not cut";
    for (const double value : test::on_ranks(3, [&](Communicator& ranks) {
             ThreadPool pool(2, ranks);
             return sum(pool);
         }))
        EXPECT_EQ(value, expected);
}

TEST(TreeSum, KeepsAFewSumsOnly) {
    // 128 shares, so 7 levels: a sum each would be 128 of them. A thread has its sum and the one it adds to it; before
    // the leaf of a thread that is held up, and behind the last leaf, at most one sum of each level waits.
    struct Counted {
        std::vector<double> value = std::vector<double>(1);
        void add(const Counted& other) { value[0] += other.value[0]; }
        void for_parts(const std::function<void(std::span<std::byte>)>& use) { use(bytes_of(value[0])); }
    };
    for (const std::size_t threads : {1U, 2U}) {
        std::vector<Counted> spare;
        ThreadPool pool(threads);
        TreeSum<Counted>(&pool, Shares(200'000), spare)(
            [](Range samples, Counted& sum) { sum.value.assign(1, static_cast<double>(samples.size())); });
        EXPECT_LE(spare.size(), threads * (7U + 2U)) << threads << " threads";
    }
}

TEST(Communicator, AllRanksAgree) {
    for (const bool wanted : {false, true}) {
        const auto ask = [&](Communicator& ranks) -> int {
            return any_rank(ranks, wanted && ranks.rank() == 2);
        };
        for (const int answer : test::on_ranks(4, ask)) EXPECT_EQ(answer, wanted ? 1 : 0);
    }
}

TEST(Communicator, TellsWhichRankIsDifferent) {
    const auto check = [](const std::string& other) {
        test::on_ranks(3, [&](Communicator& ranks) {
            check_same_on_all_ranks(ranks, "kernels", ranks.rank() == 2 ? other : "Haswell");
            return 0;
        });
    };
    EXPECT_NO_THROW(check("Haswell"));
    try {
        check("Zen");
        FAIL();
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(),
                     "kernels must be the same on all ranks, got 'Haswell' on rank 0 and 'Zen' on rank 2");
    }
}

}  // namespace
}  // namespace bayesaim
