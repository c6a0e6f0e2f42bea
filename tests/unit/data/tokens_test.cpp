// SPDX-License-Identifier: MIT
#include "bayesaim/data/tokens.hpp"

#include <gtest/gtest.h>

namespace bayesaim::data {
namespace {

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

}  // namespace
}  // namespace bayesaim::data
