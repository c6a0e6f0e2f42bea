// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/lower_product.hpp"

#include <gtest/gtest.h>

#include "bayesaim/linalg/random_matrix.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::linalg {
namespace {

template <class Scalar>
struct LowerFactorOf : testing::Test {
    using Columns = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

    static Columns normal(Eigen::Index rows, Eigen::Index cols, std::uint64_t index) {
        ThreadPool pool(1);
        return gaussian_matrix(rows, cols, RandomStream(1, Purpose::initial, index), pool).cast<Scalar>();
    }
    static Columns triangle(Eigen::Index size) {
        return normal(size, size, 1).template triangularView<Eigen::Lower>();
    }
};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(LowerFactorOf, Scalars);

/// Sizes around whole vectors and groups of rows, and around the change to BLAS; the columns are not a
/// multiple of six. Factors and product are parts of larger matrices, whose other entries must stay.
TYPED_TEST(LowerFactorOf, MultipliesByTheTriangle) {
    using M = typename TestFixture::Columns;
    for (const Eigen::Index size :
         {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 100, 101, 200, 201, 399, 400, 401}) {
        const M lower = this->triangle(size), x = this->normal(size + 3, 21, 2);
        const LowerFactor<TypeParam> factor(lower);
        for (const Eigen::Index columns : {0, 1, 5, 6, 7, 20}) {
            M product = M::Constant(size + 2, columns + 1, 7), expected = product;
            factor.multiply(x.block(1, 1, size, columns), product.block(1, 0, size, columns));
            expected.block(1, 0, size, columns) = lower.lazyProduct(x.block(1, 1, size, columns));
            const auto roundoff = 32 * std::numeric_limits<TypeParam>::epsilon() * TypeParam(size + 1);
            EXPECT_TRUE(((product - expected).array().abs() <= roundoff).all()) << size << " " << columns;
            EXPECT_EQ(product.row(0), expected.row(0));
            EXPECT_EQ(product.row(size + 1), expected.row(size + 1));
            EXPECT_EQ(product.col(columns), expected.col(columns));
        }
    }
}

TYPED_TEST(LowerFactorOf, GivesAColumnTheSameBitsInAnyBlock) {
    using M = typename TestFixture::Columns;
    for (const Eigen::Index size : {1, 5, 31, 100, 101, 400}) {
        const LowerFactor<TypeParam> factor(this->triangle(size));
        if (!factor.uses_own_kernel()) GTEST_SKIP() << "OpenBLAS multiplies here";
        const M x = this->normal(size, 30, 2);
        M whole(size, 30);
        factor.multiply(x, whole);
        for (const Eigen::Index width : {1, 2, 5, 6, 7, 10}) {
            for (Eigen::Index first = 0; first + width <= 30; first += width) {
                M part(size, width);
                factor.multiply(x.middleCols(first, width), part);
                EXPECT_EQ(part, whole.middleCols(first, width)) << size << " " << width;
            }
        }
    }
}

TEST(LowerFactor, RefusesFactorsThatDoNotFit) {
    test::expect_invalid([] { LowerFactor<double>(Matrix::Zero(3, 2)); },
                         "columns of a triangle must be of size 3, got 2");
    const LowerFactor<double> factor(Matrix::Identity(3, 3));
    Matrix product(3, 4);
    test::expect_invalid([&] { factor.multiply(Matrix::Zero(2, 4), product); },
                         "rows of the second factor must be of size 3, got 2");
    test::expect_invalid([&] { factor.multiply(Matrix::Zero(3, 5), product); },
                         "columns of the product must be of size 5, got 4");
}

}  // namespace
}  // namespace bayesaim::linalg
