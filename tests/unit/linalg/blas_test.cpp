// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/blas.hpp"

#include <thread>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bayesaim/linalg/random_matrix.hpp"

#include "support/expect_invalid.hpp"
#include "support/generators.hpp"
#include "support/tolerance.hpp"

extern "C" {
int openblas_get_num_threads();
void openblas_set_num_threads(int);
}

namespace bayesaim::linalg {
namespace {

Matrix normal_matrix(Eigen::Index rows, Eigen::Index cols, std::uint64_t index) {
    ThreadPool pool(1);
    return gaussian_matrix(rows, cols, RandomStream(1, Purpose::initial, index), pool);
}

/// Largest entry of |a - b|; infinite when NaN enters.
double distance(const Matrix& a, const Matrix& b) {
    if (a.rows() != b.rows() || a.cols() != b.cols()) return test::infinity;
    if (a.size() == 0) return 0;
    const double largest = (a - b).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
    return std::isnan(largest) ? test::infinity : largest;
}

/// Round-off of sums of `inner` products of standard normals, added in another order.
double roundoff(Eigen::Index inner) { return 8 * test::epsilon * static_cast<double>(inner + 1); }

RC_GTEST_PROP(Multiply, EqualsEigensLazyProduct, ()) {
    const Eigen::Index rows = test::integer(0, 40), inner = test::integer(0, 40), cols = test::integer(0, 40);
    const bool at = test::integer(0, 1) == 1, bt = test::integer(0, 1) == 1;
    const double alpha = test::uniform(-2, 2), beta = test::uniform(-2, 2);
    const Matrix a = at ? normal_matrix(inner, rows, 1) : normal_matrix(rows, inner, 1);
    const Matrix b = bt ? normal_matrix(cols, inner, 2) : normal_matrix(inner, cols, 2);
    const Matrix left = at ? a.transpose() : a, right = bt ? b.transpose() : b;
    Matrix c = normal_matrix(rows, cols, 3);
    const Matrix expected = alpha * Matrix(left.lazyProduct(right)) + beta * c;
    multiply(alpha, a, at ? Transpose::yes : Transpose::no, b, bt ? Transpose::yes : Transpose::no, beta, c);
    RC_ASSERT(distance(c, expected) <= 4 * roundoff(inner));
}

TEST(AddGram, LeavesWhatIsAboveTheDiagonal) {
    const Matrix a = normal_matrix(20, 7, 1), before = normal_matrix(20, 20, 2);
    Matrix sum = before;
    add_gram(-2, a, sum);
    Matrix expected = before;
    expected.triangularView<Eigen::Lower>() = before - 2 * Matrix(a.lazyProduct(a.transpose()));
    EXPECT_LE(distance(sum, expected), 4 * roundoff(7));
}

/// Round-off of single precision; the product in double of other factors is off by about 1.
TEST(Multiply, InFloatEqualsTheProductInDouble) {
    const Matrix a = normal_matrix(40, 30, 1), b = normal_matrix(20, 40, 2);
    Eigen::MatrixXf c = Eigen::MatrixXf::Ones(30, 20);
    multiply(2.0F, Eigen::MatrixXf(a.cast<float>()), Transpose::yes, Eigen::MatrixXf(b.cast<float>()),
             Transpose::yes, -1.0F, c);
    const Matrix expected =
        2 * Matrix(a.transpose().lazyProduct(b.transpose())) - Matrix(Matrix::Ones(30, 20));
    EXPECT_LE(distance(c.cast<double>(), expected), 1e-4);
}

TEST(Multiply, WorksOnBlocksOfLargerMatrices) {
    const Matrix a = normal_matrix(30, 30, 1), b = normal_matrix(30, 30, 2);
    Matrix c = Matrix::Zero(30, 30);
    multiply(1, a.block(3, 5, 7, 9), Transpose::no, b.block(1, 2, 9, 11), Transpose::no, 0,
             c.block(4, 6, 7, 11));
    Matrix expected = Matrix::Zero(30, 30);
    expected.block(4, 6, 7, 11) = a.block(3, 5, 7, 9).lazyProduct(b.block(1, 2, 9, 11));
    EXPECT_LE(distance(c, expected), roundoff(9));
}

TEST(Multiply, BetaZeroForgetsWhatWasThere) {
    const Matrix a = normal_matrix(5, 6, 1), b = normal_matrix(6, 4, 2);
    Matrix c = Matrix::Constant(5, 4, test::not_a_number);
    multiply(1, a, Transpose::no, b, Transpose::no, 0, c);
    EXPECT_LE(distance(c, a.lazyProduct(b)), roundoff(6));
}

TEST(Multiply, WrongSizesAreNamed) {
    const Matrix a(2, 3), b(4, 5);
    Matrix c(2, 5);
    test::expect_invalid([&] { multiply(1, a, Transpose::no, b, Transpose::no, 0, c); },
                         "rows of the second factor must be of size 3, got 4");
    const Matrix good(3, 5);
    Matrix flat(1, 5), narrow(2, 4);
    test::expect_invalid([&] { multiply(1, a, Transpose::no, good, Transpose::no, 0, flat); },
                         "rows of the product must be of size 2, got 1");
    test::expect_invalid([&] { multiply(1, a, Transpose::no, good, Transpose::no, 0, narrow); },
                         "columns of the product must be of size 5, got 4");
}

TEST(Product, EqualsEigensLazyProduct) {
    const Matrix a = normal_matrix(70, 130, 1), b = normal_matrix(130, 50, 2);
    EXPECT_LE(distance(product(a, b), a.lazyProduct(b)), roundoff(130));
    EXPECT_EQ(distance(product(Matrix(3, 0), Matrix(0, 2)), Matrix::Zero(3, 2)), 0);
}

TEST(Gram, IsExactlySymmetricAndEqualsTheProduct) {
    const Matrix a = normal_matrix(90, 40, 1);
    const Matrix g = gram(0.25, a);
    EXPECT_EQ(g, g.transpose());
    EXPECT_LE(distance(g, 0.25 * Matrix(a.lazyProduct(a.transpose()))), roundoff(40));
}

TEST(SerialBlas, RestoresTheNumberOfThreads) {
    const int before = openblas_get_num_threads();
    openblas_set_num_threads(2);
    {
        const SerialBlas outer;
        EXPECT_EQ(openblas_get_num_threads(), 1);
        EXPECT_EQ(blas_threads(), 2);
        {
            const SerialBlas inner;
            EXPECT_EQ(openblas_get_num_threads(), 1);
        }
        EXPECT_EQ(openblas_get_num_threads(), 1) << "the outer scope is still open";
        std::thread([] { const SerialBlas elsewhere; }).join();
        EXPECT_EQ(openblas_get_num_threads(), 1);
    }
    EXPECT_EQ(openblas_get_num_threads(), 2);
    product(normal_matrix(10, 10, 1), normal_matrix(10, 10, 2));
    EXPECT_EQ(openblas_get_num_threads(), 2) << "after a product";
    EXPECT_EQ(blas_threads(), 2);
    openblas_set_num_threads(before);
}

TEST(SerialBlas, ProductsHaveTheSameBitsWhateverBlasIsSetTo) {
    const int before = openblas_get_num_threads();
    const Matrix a = normal_matrix(300, 300, 1), b = normal_matrix(300, 300, 2);
    openblas_set_num_threads(1);
    const Matrix one = product(a, b);
    openblas_set_num_threads(2);
    EXPECT_EQ(product(a, b), one);
    openblas_set_num_threads(before);
}

}  // namespace
}  // namespace bayesaim::linalg
