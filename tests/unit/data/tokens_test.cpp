// SPDX-License-Identifier: MIT
#include "bayesaim/data/tokens.hpp"

#include <gtest/gtest.h>

#include "support/expect_invalid.hpp"

namespace bayesaim::data {
namespace {

TEST(TokenNames, AreThoseOfOptionsAndFiles) {
    EXPECT_EQ(parse_token_storage("s", "memory"), TokenStorage::memory);
    EXPECT_EQ(parse_token_storage("s", "regenerate"), TokenStorage::regenerate);
    EXPECT_EQ(parse_precision("p", "double"), Precision::double_precision);
    EXPECT_EQ(parse_precision("p", "float"), Precision::float_precision);
    test::expect_invalid([] { parse_token_storage("--token-storage", "disk"); },
                         "--token-storage must be one of memory, regenerate, got 'disk'");
    test::expect_invalid([] { parse_precision("--precision", "half"); },
                         "--precision must be one of double, float, got 'half'");
}

TEST(BorrowedTokens, AreAViewOfTheOwnersMemory) {
    const auto owner = std::make_shared<linalg::Matrix>(linalg::Matrix::Random(3, 8));
    const auto source = borrowed_tokens(owner->data(), 4, 2, 3, owner);
    linalg::Matrix scratch;
    const auto block = source->block({1, 3}, scratch);
    EXPECT_EQ(block.data(), owner->data() + 6);
    EXPECT_EQ(block, owner->middleCols(2, 4));
    EXPECT_EQ(scratch.size(), 0);
}

TEST(BorrowedTokens, KeepTheOwnerAlive) {
    auto owner = std::make_shared<linalg::Matrix>(linalg::Matrix::Ones(3, 8));
    const std::weak_ptr<linalg::Matrix> watch = owner;
    {
        const auto source = borrowed_tokens(owner->data(), 4, 2, 3, owner);
        owner.reset();
        EXPECT_FALSE(watch.expired());
    }
    EXPECT_TRUE(watch.expired());
}

TEST(BorrowedTokens, OfSinglePrecisionAreConvertedBlockByBlock) {
    const auto owner = std::make_shared<Eigen::MatrixXf>(Eigen::MatrixXf::Random(3, 8));
    const auto source = borrowed_tokens(owner->data(), 4, 2, 3, owner);
    linalg::Matrix scratch;
    EXPECT_EQ(source->block({0, 1}, scratch), owner->leftCols(2).cast<double>());
    EXPECT_EQ(scratch.cols(), 2);
}

/// Threads have work at small d too; the blocks of large problems stay as large as the cache allows.
TEST(SamplesPerBlock, FillsTheCacheAndNoMore) {
    const auto size = [](Eigen::Index tokens, Eigen::Index dim) {
        const auto owner = std::make_shared<double>();  // no block is read
        return samples_per_block(*borrowed_tokens(owner.get(), 5000, tokens, dim, owner));
    };
    EXPECT_EQ(size(2, 100), 327U);  // 2^16 numbers
    EXPECT_EQ(size(2, 400), 128U);  // 256 columns
    EXPECT_EQ(size(64, 400), 16U);
    EXPECT_EQ(size(1, 2), 4096U);
}

}  // namespace
}  // namespace bayesaim::data
