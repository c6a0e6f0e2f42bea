// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/symmetric_eigen.hpp"

#include <vector>

#include <Eigen/LU>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bayesaim/linalg/random_matrix.hpp"

#include "support/expect_invalid.hpp"
#include "support/generators.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::linalg {
namespace {

Matrix normal_matrix(Eigen::Index rows, Eigen::Index cols, std::uint64_t index) {
    ThreadPool pool(1);
    return gaussian_matrix(rows, cols, RandomStream(2, Purpose::initial, index), pool);
}

Matrix symmetric_matrix(Eigen::Index dim, std::uint64_t index) {
    const Matrix a = normal_matrix(dim, dim, index);
    return a + a.transpose();
}

double distance_from_orthogonal(const Matrix& o) {
    return (o.transpose() * o - Matrix::Identity(o.cols(), o.cols()))
        .cwiseAbs()
        .maxCoeff<Eigen::PropagateNaN>();
}

/// Backward error of LAPACK: a modest multiple of epsilon * dim, of the norm (about sqrt(dim) here).
double roundoff(Eigen::Index dim) { return 10 * test::epsilon * static_cast<double>(dim); }

RC_GTEST_PROP(SymmetricEigen, SolvesTheEigenproblem, ()) {
    const Eigen::Index dim = test::integer(1, 60);
    const Matrix a = symmetric_matrix(dim, static_cast<std::uint64_t>(test::integer(0, 1000)));
    const auto [values, vectors] = symmetric_eigen(a);
    const double scale = values.cwiseAbs().maxCoeff();
    RC_ASSERT((a * vectors - vectors * values.asDiagonal()).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() <=
              roundoff(dim) * scale);
    RC_ASSERT(distance_from_orthogonal(vectors) <= roundoff(dim));
    for (Eigen::Index i = 1; i < dim; ++i) RC_ASSERT(values[i - 1] <= values[i]);
    RC_ASSERT((symmetric_eigenvalues(a) - values).cwiseAbs().maxCoeff<Eigen::PropagateNaN>() <=
              roundoff(dim) * scale);
}

TEST(SymmetricEigen, SolvesALargeProblem) {
    const Matrix a = symmetric_matrix(400, 5);
    const auto [values, vectors] = symmetric_eigen(a);
    const double scale = values.cwiseAbs().maxCoeff();
    EXPECT_LE((a * vectors - vectors * values.asDiagonal()).cwiseAbs().maxCoeff(), roundoff(400) * scale);
    EXPECT_LE(distance_from_orthogonal(vectors), roundoff(400));
}

/// Sizes around LAPACK's blocks; the matrix is rebuilt from its lower triangle alone.
TEST(SymmetricEigen, RebuildsTheMatrix) {
    ThreadPool pool(1);
    for (const Eigen::Index dim : {1, 2, 5, 7, 25, 31, 32, 33, 100, 101}) {
        const Matrix a = symmetric_matrix(dim, 6);
        Matrix lower = a;
        lower.triangularView<Eigen::StrictlyUpper>().setConstant(test::not_a_number);
        const auto [values, vectors] = symmetric_eigen(lower);
        EXPECT_LE((from_eigen(vectors, values, pool) - a).cwiseAbs().maxCoeff<Eigen::PropagateNaN>(),
                  roundoff(dim) * a.norm())
            << dim;
        EXPECT_LE(distance_from_orthogonal(vectors), roundoff(dim)) << dim;
    }
}

/// Squares of such entries overflow or vanish.
TEST(SymmetricEigen, TakesHugeAndTinyEntries) {
    const Matrix a = symmetric_matrix(31, 7);
    const Vector values = symmetric_eigenvalues(a);
    for (const double scale : {1e-290, 1e-200, 1e200, 1e300}) {
        const auto [scaled, vectors] = symmetric_eigen(scale * a);
        EXPECT_LE((scaled / scale - values).cwiseAbs().maxCoeff<Eigen::PropagateNaN>(), 1e-12) << scale;
        EXPECT_LE(
            (symmetric_eigenvalues(scale * a) / scale - values).cwiseAbs().maxCoeff<Eigen::PropagateNaN>(),
            1e-12);
        EXPECT_LE(distance_from_orthogonal(vectors), roundoff(31)) << scale;
    }
    EXPECT_EQ(symmetric_eigenvalues(Matrix::Zero(5, 5)), Vector(Vector::Zero(5)));
}

TEST(SymmetricEigen, ReadsTheLowerTriangle) {
    Matrix a = symmetric_matrix(20, 1);
    const Vector values = symmetric_eigenvalues(a);
    a.triangularView<Eigen::StrictlyUpper>().setConstant(test::not_a_number);
    EXPECT_EQ(symmetric_eigenvalues(a), values);
}

TEST(SymmetricEigen, TakesEmptyMatricesAndRefusesThoseThatAreNotSquare) {
    EXPECT_EQ(symmetric_eigenvalues(Matrix(0, 0)).size(), 0);
    test::expect_invalid([] { symmetric_eigen(Matrix::Zero(3, 2)); },
                         "columns of a symmetric matrix must be of size 3, got 2");
}

TEST(FromEigen, IsExactlySymmetricAndEqualsTheNaiveProduct) {
    for (const Eigen::Index dim : {1, 5, 127, 128, 129, 300}) {
        const Matrix vectors = normal_matrix(dim, dim, 3);
        const Vector values = normal_matrix(dim, 1, 4);
        ThreadPool pool(2);
        const Matrix result = from_eigen(vectors, values, pool);
        EXPECT_EQ(result, result.transpose());
        const Matrix naive = vectors.lazyProduct(Matrix(values.asDiagonal() * vectors.transpose()));
        EXPECT_LE((result - naive).cwiseAbs().maxCoeff<Eigen::PropagateNaN>(), roundoff(dim)) << dim;
    }
}

TEST(FromEigen, HasTheSameBitsForAnyNumberOfThreads) {
    const Matrix vectors = normal_matrix(300, 300, 3);
    const Vector values = normal_matrix(300, 1, 4);
    ThreadPool one(1), three(3);
    EXPECT_EQ(from_eigen(vectors, values, one), from_eigen(vectors, values, three));
}

TEST(FromEigen, UndoesSymmetricEigen) {
    const Matrix a = symmetric_matrix(150, 2);
    const auto [values, vectors] = symmetric_eigen(a);
    ThreadPool pool(1);
    EXPECT_LE((from_eigen(vectors, values, pool) - a).cwiseAbs().maxCoeff<Eigen::PropagateNaN>(),
              roundoff(150) * values.cwiseAbs().maxCoeff());
}

TEST(HaarOrthogonal, IsOrthogonal) {
    for (const Eigen::Index dim : {1, 2, 33, 200}) {
        EXPECT_LE(distance_from_orthogonal(haar_orthogonal(normal_matrix(dim, dim, 6))), roundoff(dim))
            << dim;
    }
}

TEST(HaarOrthogonal, HasTheMomentsOfHaarMeasure) {
    // Without the signs of the triangular factor LAPACK's choice biases the trace.
    constexpr Eigen::Index dim = 6;
    std::vector<double> trace, trace_squared, fourth, determinant;
    for (std::uint64_t draw = 0; draw < 4000; ++draw) {
        const Matrix o = haar_orthogonal(normal_matrix(dim, dim, 100 + draw));
        trace.push_back(o.trace());
        trace_squared.push_back(o.trace() * o.trace());
        fourth.push_back(std::pow(o(0, 0), 4));
        determinant.push_back(o.determinant());
    }
    EXPECT_LE(test::estimate(trace).deviation(0), 4);
    EXPECT_LE(test::estimate(trace_squared).deviation(1), 4);
    EXPECT_LE(test::estimate(fourth).deviation(3.0 / (dim * (dim + 2))), 4);
    EXPECT_LE(test::estimate(determinant).deviation(0), 4);
}

TEST(HaarOrthogonal, RefusesMatricesThatAreNotSquare) {
    test::expect_invalid([] { haar_orthogonal(Matrix::Zero(2, 3)); },
                         "columns of a square matrix must be of size 2, got 3");
}

TEST(CheckSymmetric, NamesWhatIsWrong) {
    using test::expect_invalid;
    expect_invalid([] { check_symmetric("noisy", Matrix::Zero(2, 3)); },
                   "noisy must be a square matrix, got 2 x 3");
    expect_invalid([] { check_symmetric("noisy", Matrix::Zero(0, 0)); },
                   "noisy must be a square matrix, got 0 x 0");
    Matrix a = symmetric_matrix(4, 1);
    a(2, 1) = test::not_a_number;
    expect_invalid([&] { check_symmetric("noisy", a); }, "noisy(2, 1) must be a finite number, got nan");
    a(2, 1) = -test::infinity;
    expect_invalid([&] { check_symmetric("noisy", a); }, "noisy(2, 1) must be a finite number, got -inf");
    a(2, 1) = 3;
    a(1, 2) = 2;
    expect_invalid([&] { check_symmetric("noisy", a); },
                   "noisy must be symmetric, got 3 at (2, 1) and 2 at (1, 2)");
}

TEST(CheckSymmetric, AllowsRoundOff) {
    Matrix a = symmetric_matrix(4, 1);
    const double scale = a.cwiseAbs().maxCoeff();
    EXPECT_NO_THROW(check_symmetric("a", a));
    EXPECT_NO_THROW(check_symmetric("a", Matrix::Zero(3, 3)));
    a(3, 0) += 0.5e-10 * scale;
    EXPECT_NO_THROW(check_symmetric("a", a));
    a(3, 0) += 1e-10 * scale;
    EXPECT_THROW(check_symmetric("a", a), InvalidArgument);
}

}  // namespace
}  // namespace bayesaim::linalg
