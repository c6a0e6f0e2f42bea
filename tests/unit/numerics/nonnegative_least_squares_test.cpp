// SPDX-License-Identifier: MIT
#include "bayesaim/numerics/nonnegative_least_squares.hpp"

#include <cmath>
#include <complex>
#include <limits>

#include <gtest/gtest.h>

#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::numerics {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd gaussian(Index rows, Index cols, std::uint64_t seed) {
    ThreadPool pool(1);
    return linalg::gaussian_matrix(rows, cols, RandomStream(seed, Purpose::noise), pool);
}

/// x >= 0, and the gradient A'(b - A x) is 0 where x > 0 and not positive elsewhere.
void expect_optimal(const MatrixXd& matrix, const VectorXd& target, double roundoff) {
    const VectorXd x = nonnegative_least_squares(matrix, target);
    ASSERT_EQ(x.size(), matrix.cols());
    const VectorXd gradient = matrix.transpose() * (target - matrix * x);
    for (Index j = 0; j < x.size(); ++j) {
        const double tolerance = roundoff * matrix.col(j).norm() * target.norm();
        EXPECT_GE(x[j], 0) << j;
        EXPECT_LE(gradient[j], tolerance) << j;
        if (x[j] > 0) {
            EXPECT_GE(gradient[j], -tolerance) << j;
        }
    }
}

/// Semicircles at 60 places seen at 80 complex points, and their first three moments: overlapping bumps.
MatrixXd bumps(double spread) {
    MatrixXd matrix(163, 61);
    for (Index j = 0; j < 61; ++j) {
        const double centre = -2 + 4 * static_cast<double>(j) / 60;
        for (Index k = 0; k < 80; ++k) {
            const std::complex<double> w(-3 + 6 * static_cast<double>(k) / 79 - centre, 0.3);
            const auto g = 2.0 / (w + std::sqrt(w - 2 * spread) * std::sqrt(w + 2 * spread));
            matrix(k, j) = g.real();
            matrix(80 + k, j) = g.imag();
        }
        matrix(160, j) = 30;
        matrix(161, j) = 10 * centre;
        matrix(162, j) = 10 * (centre * centre + spread * spread);
    }
    return matrix;
}

TEST(NonnegativeLeastSquares, SolvesAProblemByHand) {
    // Without the constraint x = (2, -1); with it x_2 = 0, and x_1 is the mean of 2 and 1.
    MatrixXd matrix(3, 2);
    matrix << 1, 0, 1, 1, 0, 1;
    const VectorXd x = nonnegative_least_squares(matrix, matrix * Eigen::Vector2d(2, -1));
    EXPECT_NEAR(x[0], 1.5, 1e-14);
    EXPECT_EQ(x[1], 0);
}

TEST(NonnegativeLeastSquares, FindsWeightsThatExplainTheTarget) {
    const MatrixXd matrix = gaussian(40, 12, 1);
    VectorXd weights = gaussian(12, 1, 2).cwiseMax(0);
    EXPECT_LT((nonnegative_least_squares(matrix, matrix * weights) - weights).cwiseAbs().maxCoeff(), 1e-13);
}

TEST(NonnegativeLeastSquares, IsOptimal) {
    constexpr double roundoff = 1e-11;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const Index rows = 3 + static_cast<Index>(seed % 7) * 9, cols = 1 + static_cast<Index>(seed % 5) * 12;
        MatrixXd matrix = gaussian(rows, cols, 10 + seed);
        if (seed % 2 == 0) matrix = matrix.cwiseAbs();  // columns at small angles
        expect_optimal(matrix, gaussian(rows, 1, 100 + seed), roundoff);
    }
}

/// The condition number of wide bumps is above 1e15.
TEST(NonnegativeLeastSquares, IsOptimalForNearlyDependentColumns) {
    for (const double spread : {0.01, 0.1, 0.5, 2.0}) {
        const MatrixXd matrix = bumps(spread);
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
            const VectorXd weights = gaussian(61, 1, seed).cwiseMax(0) / 24;
            const VectorXd noise = gaussian(163, 1, 50 + seed) * (seed % 2 == 0 ? 0.0 : 1e-2);
            expect_optimal(matrix, matrix * weights + noise, 1e-10);
        }
    }
}

TEST(NonnegativeLeastSquares, TakesEqualAndEmptyColumns) {
    MatrixXd matrix = gaussian(10, 4, 3).cwiseAbs();
    matrix.col(2) = 3 * matrix.col(0);
    matrix.col(3).setZero();
    const VectorXd target = matrix.col(0) + matrix.col(1);
    expect_optimal(matrix, target, 1e-13);
    const VectorXd x = nonnegative_least_squares(matrix, target);
    EXPECT_NEAR(x[0] + 3 * x[2], 1, 1e-13);
    EXPECT_EQ(x[3], 0);
    EXPECT_EQ(nonnegative_least_squares(matrix, VectorXd::Zero(10)), VectorXd::Zero(4));
    EXPECT_EQ(nonnegative_least_squares(matrix, -target), VectorXd::Zero(4));
    EXPECT_EQ(nonnegative_least_squares(MatrixXd(10, 0), target).size(), 0);
}

TEST(NonnegativeLeastSquares, RefusesWhatIsNotFinite) {
    test::expect_invalid([] { nonnegative_least_squares(MatrixXd::Ones(3, 2), VectorXd::Ones(2)); }, "3");
    MatrixXd matrix = MatrixXd::Ones(3, 2);
    matrix(1, 1) = std::numeric_limits<double>::quiet_NaN();
    test::expect_invalid([&] { nonnegative_least_squares(matrix, VectorXd::Ones(3)); }, "nan");
}

}  // namespace
}  // namespace bayesaim::numerics
