// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/soft_threshold.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::denoisers {
namespace {

using linalg::Matrix;

constexpr double roundoff = 1e-13;

Matrix noise(Eigen::Index dim, std::uint64_t seed) {
    ThreadPool pool(1);
    return linalg::gaussian_orthogonal_ensemble(dim, RandomStream(seed, Purpose::noise), pool);
}

/// S minimises ||S - R||^2/2 + theta Tr S over S >= 0 if and only if S >= 0, M = S - R + theta I >= 0 and Tr(S M) = 0.
/// A threshold of the wrong sign or size, or one of absolute values, violates one of them.
TEST(SoftThreshold, IsTheMinimumOverPositiveMatrices) {
    ThreadPool pool(1);
    for (const Eigen::Index dim : {1, 2, 7, 40}) {
        for (const double threshold : {0.0, 0.3, 1.2, 5.0}) {
            const Matrix noisy = noise(dim, 1);
            const Matrix estimate = soft_threshold(noisy, threshold, pool).estimate,
                         multiplier = estimate - noisy + threshold * Matrix::Identity(dim, dim);
            EXPECT_EQ(estimate, estimate.transpose());
            EXPECT_GE(linalg::symmetric_eigenvalues(estimate)[0], -roundoff) << dim << " " << threshold;
            EXPECT_GE(linalg::symmetric_eigenvalues(multiplier)[0], -roundoff) << dim << " " << threshold;
            EXPECT_NEAR(estimate.cwiseProduct(multiplier).sum(), 0, roundoff * static_cast<double>(dim))
                << dim << " " << threshold;
        }
    }
}

TEST(SoftThreshold, NoNeighbourHasASmallerPenalisedDistance) {
    ThreadPool pool(1);
    const Matrix noisy = noise(6, 2);
    const double threshold = 0.4;
    const auto objective = [&](const Matrix& s) {
        return 0.5 * (s - noisy).squaredNorm() + threshold * s.trace();
    };
    const double least = objective(soft_threshold(noisy, threshold, pool).estimate);
    for (std::uint64_t seed = 10; seed < 60; ++seed) {
        // Positive matrices next to the estimate and far from it
        const Matrix root = noise(6, seed), other = root * root;
        for (const double part : {1e-3, 0.1, 1.0}) {
            const Matrix mixed = (1 - part) * soft_threshold(noisy, threshold, pool).estimate + part * other;
            EXPECT_GT(objective(mixed), least);
        }
    }
}

/// The divergence is (2/d^2) sum_k <E_k, dS[E_k]> over an orthonormal basis of symmetric matrices.
TEST(SoftThreshold, DivergenceIsTheSumOfItsDerivatives) {
    constexpr double step = 1e-5, finite_difference = 1e-8;  // step^2, and 1e-15/step
    ThreadPool pool(1);
    for (const Eigen::Index dim : {1, 2, 5, 8}) {
        for (const double threshold : {-3.0, -0.2, 0.1, 0.7, 3.0}) {
            const Matrix noisy = noise(dim, 3);
            double sum = 0;
            for (Eigen::Index i = 0; i < dim; ++i) {
                for (Eigen::Index j = 0; j <= i; ++j) {
                    Matrix direction = Matrix::Zero(dim, dim);
                    direction(i, j) = direction(j, i) = i == j ? 1 : std::sqrt(0.5);
                    const Matrix change = soft_threshold(noisy + step * direction, threshold, pool).estimate -
                                          soft_threshold(noisy - step * direction, threshold, pool).estimate;
                    sum += direction.cwiseProduct(change).sum() / (2 * step);
                }
            }
            EXPECT_NEAR(soft_threshold(noisy, threshold, pool).divergence,
                        2 * sum / static_cast<double>(dim * dim), finite_difference)
                << dim << " " << threshold;
        }
    }
}

TEST(SoftThreshold, CountsItsZeros) {
    ThreadPool pool(1);
    Matrix noisy = Matrix::Zero(4, 4);
    noisy.diagonal() << 3, -1, 0.5, 2;
    const Thresholded result = soft_threshold(noisy, 0.5, pool);
    EXPECT_EQ(result.zeros, 2) << "an eigenvalue at the threshold is a zero";
    Matrix expected = Matrix::Zero(4, 4);
    expected(0, 0) = 2.5;
    expected(3, 3) = 1.5;
    EXPECT_LT((result.estimate - expected).norm(), roundoff);
    EXPECT_EQ(result.eigenvalues[0], 0);
    EXPECT_EQ(result.eigenvalues[1], 0);
    EXPECT_NEAR(result.eigenvalues[2], 1.5, roundoff);
    EXPECT_NEAR(result.eigenvalues[3], 2.5, roundoff);
    const Thresholded nothing = soft_threshold(noisy, 3, pool);
    EXPECT_EQ(nothing.zeros, 4);
    EXPECT_EQ(nothing.estimate, Matrix::Zero(4, 4));
    EXPECT_EQ(nothing.divergence, 0);
    const Thresholded all = soft_threshold(noisy, -2, pool);
    EXPECT_EQ(all.zeros, 0);
    EXPECT_NEAR(all.divergence, 5.0 / 4, roundoff) << "(d + 1)/d of a map of slope 1";
}

TEST(SoftThreshold, ReadsTheLowerTriangleAndHasTheSameBitsForAnyNumberOfThreads) {
    const Matrix noisy = noise(150, 4);
    Matrix lower = noisy;
    lower.triangularView<Eigen::StrictlyUpper>().setConstant(7);
    ThreadPool one(1), three(3);
    const Matrix expected = soft_threshold(noisy, 0.2, one).estimate;
    EXPECT_EQ(expected, soft_threshold(lower, 0.2, three).estimate);
}

}  // namespace
}  // namespace bayesaim::denoisers
