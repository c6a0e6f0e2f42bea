// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/decompositions.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/linalg/overlap.hpp"
#include "bayesaim/linalg/random_matrix.hpp"

#include "support/tolerance.hpp"

namespace bayesaim::linalg {
namespace {

// Round-off of decompositions whose condition number stays below about 100.
constexpr double roundoff = 1e-12;

Matrix normal_matrix(Eigen::Index rows, Eigen::Index cols, std::uint64_t index) {
    ThreadPool pool(1);
    return gaussian_matrix(rows, cols, RandomStream(5, Purpose::initial, index), pool);
}

/// Eigenvalues of 1 and more.
Matrix positive_matrix(Eigen::Index dim, std::uint64_t index) {
    return gram(1 / static_cast<double>(dim), normal_matrix(dim, 2 * dim, index)) +
           Matrix::Identity(dim, dim);
}

double distance(const Matrix& a, const Matrix& b) {
    return (a - b).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

TEST(Cholesky, GivesTheMatrixBack) {
    for (const Eigen::Index dim : {1, 2, 3, 8, 40}) {
        const Matrix a = positive_matrix(dim, 1);
        const auto lower = cholesky(a);
        ASSERT_TRUE(lower.has_value());
        EXPECT_LT(distance(gram(1, *lower), a), roundoff) << dim;
        if (dim > 1) {
            EXPECT_EQ((*lower)(0, dim - 1), 0);
        }

        Matrix x = normal_matrix(dim, 3, 2);
        const Matrix b = x;
        solve_lower(*lower, Transpose::no, x);
        EXPECT_LT(distance(product(*lower, x), b), roundoff) << dim;
        solve_lower(*lower, Transpose::yes, x);
        EXPECT_LT(distance(product(a, x), b), roundoff) << dim;
    }
}

TEST(Cholesky, HasNoneForAnIndefiniteMatrix) {
    Matrix a = Matrix::Identity(3, 3);
    a(2, 1) = a(1, 2) = 2;
    EXPECT_FALSE(cholesky(a).has_value());
    EXPECT_TRUE(std::isnan(solve_positive(a, Matrix::Ones(3, 1))(0, 0)));
}

TEST(Solve, HasNoResidual) {
    for (const Eigen::Index dim : {1, 2, 5, 30}) {
        const Matrix a = positive_matrix(dim, 3), b = normal_matrix(dim, 2, 4);
        EXPECT_LT(distance(product(a, solve_positive(a, b)), b), roundoff) << dim;
        const Matrix general = a + 0.3 * normal_matrix(dim, dim, 5) / std::sqrt(static_cast<double>(dim));
        EXPECT_LT(distance(product(general, solve_general(general, b)), b), roundoff) << dim;
    }
    EXPECT_TRUE(std::isnan(solve_general(Matrix::Zero(2, 2), Matrix::Ones(2, 1))(0, 0)));
}

TEST(SmallEigen, DiagonalizesOneMatrixAfterTheOther) {
    for (const Eigen::Index dim : {1, 2, 3, 6}) {
        SmallEigen eigen(dim);
        for (const std::uint64_t index : {6U, 7U}) {
            const Matrix normal = normal_matrix(dim, dim, index), a = normal + normal.transpose();
            eigen.compute(a);
            const Matrix back =
                product(eigen.vectors() * eigen.values().asDiagonal(), Matrix(eigen.vectors().transpose()));
            EXPECT_LT(distance(back, a), roundoff) << dim;
            EXPECT_LT(
                distance(transposed_product(eigen.vectors(), eigen.vectors()), Matrix::Identity(dim, dim)),
                roundoff);
        }
    }
}

TEST(DivideBothSides, UndoesAProduct) {
    for (Eigen::Index dim = 1; dim <= max_small; ++dim) {
        // Rows in reverse: the elimination has to look for pivots.
        const Matrix b = positive_matrix(dim, 8).colwise().reverse();
        const Matrix symmetric = positive_matrix(dim, 9);
        const double scale = std::sqrt(static_cast<double>(dim));
        SmallMatrix divided = product(product(b, symmetric), Matrix(b.transpose()));
        const double determinant = divide_both_sides(b, divided);
        EXPECT_LT(distance(divided, symmetric), scale * roundoff) << dim;
        const double expected = cholesky(positive_matrix(dim, 8))->diagonal().prod();
        const double sign = dim % 4 < 2 ? 1 : -1;  // of the permutation that reverses
        EXPECT_LT(test::relative_error(determinant, sign * expected * expected), roundoff) << dim;
    }
}

TEST(Overlap, InverseRootAndEigenvaluesBelongTogether) {
    for (Eigen::Index layers = 1; layers <= max_layers; ++layers) {
        const Overlap a = positive_matrix(layers, 10);
        EXPECT_LT(distance(product(a, inverse(a)), Matrix::Identity(layers, layers)), roundoff);
        EXPECT_LT(distance(gram(1, lower_root(a)), a), roundoff);
        EXPECT_TRUE(positive_definite(a));
        const double smallest = smallest_eigenvalue(a);
        EXPECT_FALSE(positive_definite(a - (smallest + 1e-9) * Overlap::Identity(layers, layers)));
        EXPECT_TRUE(positive_definite(a - (smallest - 1e-9) * Overlap::Identity(layers, layers)));
        EXPECT_NEAR(smallest_eigenvalue(with_eigenvalues_above(a, smallest + 0.5)), smallest + 0.5, roundoff);
        EXPECT_EQ(with_eigenvalues_above(a, smallest - 0.5), a);
        const Vector b = normal_matrix(layers, 1, 11);
        EXPECT_LT(distance(product(a, solve_positive(a, b)), b), roundoff);
        const double root = lower_root(a).diagonal().prod();
        EXPECT_LT(test::relative_error(determinant(a), root * root), roundoff);
    }
}

TEST(Overlap, NotANumberIsNotPositive) {
    Overlap a = Overlap::Identity(2, 2);
    a(1, 0) = a(0, 1) = test::not_a_number;
    EXPECT_FALSE(positive_definite(a));
    EXPECT_TRUE(std::isnan(smallest_eigenvalue(a)));
    EXPECT_TRUE(std::isnan(with_eigenvalues_above(a, 0.1)(0, 1)));
}

}  // namespace
}  // namespace bayesaim::linalg
