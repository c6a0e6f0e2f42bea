// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/overlap.hpp"

#include <gtest/gtest.h>

#include "bayesaim/core/record.hpp"

#include "support/layers.hpp"

namespace bayesaim::linalg {
namespace {

using test::overlap;

TEST(WithEigenvaluesAbove, RaisesThoseBelowAndKeepsTheVectors) {
    EXPECT_EQ(with_eigenvalues_above(overlap(2, 1, 2), 0.5), overlap(2, 1, 2));
    EXPECT_LT((with_eigenvalues_above(overlap(2, 3, 2), 1) - overlap(3, 2, 3)).norm(), 1e-14);  // 5 and -1
}

/// Overlaps of no data are singular, kappa1 kappa1'; sampled ones may be a little less than that.
TEST(LowerRoot, OfASingularMatrixHasTheSameDiagonal) {
    const Overlap root = lower_root(overlap(4, 6, 9));
    EXPECT_LT((root * root.transpose() - overlap(4, 6, 9)).norm(), 1e-14);
    const Overlap cut = lower_root(overlap(4, 6.001, 9));
    EXPECT_LT((cut * cut.transpose() - overlap(4, 6, 9)).norm(), 1e-12);
    EXPECT_TRUE(lower_root(zero_overlap(3)).isZero(0));
}

TEST(ToValue, IsANumberForOneLayerAndRowsForSeveral) {
    EXPECT_EQ(to_value(scalar_overlap(0.5)), Value(0.5));
    EXPECT_EQ(to_value(overlap(1, 2, 3)), Value(Value::List{Value::List{1.0, 2.0}, Value::List{2.0, 3.0}}));
    EXPECT_EQ(diagonal_value(overlap(1, 2, 3)), Value(Value::List{1.0, 3.0}));
}

}  // namespace
}  // namespace bayesaim::linalg
