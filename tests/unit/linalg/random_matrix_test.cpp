// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/random_matrix.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "bayesaim/linalg/symmetric_eigen.hpp"

#include "support/tolerance.hpp"

namespace bayesaim::linalg {
namespace {

TEST(GaussianMatrix, HasTheSameBitsForAnyNumberOfThreads) {
    const RandomStream stream(7, Purpose::weights, 3);
    std::vector<double> numbers(37 * 101);
    stream.fill_normal(numbers);
    const Matrix whole = Eigen::Map<const Matrix>(numbers.data(), 37, 101);
    for (const std::size_t threads : {1, 2, 3, 7}) {
        ThreadPool pool(threads);
        EXPECT_EQ(gaussian_matrix(37, 101, stream, pool), whole) << threads << " threads";
    }
}

TEST(GaussianMatrix, MayBeEmpty) {
    ThreadPool pool(2);
    EXPECT_EQ(gaussian_matrix(0, 5, RandomStream(1, Purpose::weights), pool).cols(), 5);
    EXPECT_EQ(gaussian_matrix(5, 0, RandomStream(1, Purpose::weights), pool).rows(), 5);
}

class GaussianOrthogonalEnsemble : public ::testing::Test {
  protected:
    static constexpr Eigen::Index dim = 300;
    ThreadPool pool{1};
    const Matrix sample = gaussian_orthogonal_ensemble(dim, RandomStream(11, Purpose::noise), pool);
};

TEST_F(GaussianOrthogonalEnsemble, IsSymmetricAndTheSameForAnyNumberOfThreads) {
    EXPECT_EQ(sample, sample.transpose());
    ThreadPool three(3);
    EXPECT_EQ(gaussian_orthogonal_ensemble(dim, RandomStream(11, Purpose::noise), three), sample);
}

TEST_F(GaussianOrthogonalEnsemble, HasVarianceOneOverDimOffTheDiagonalAndTwiceThatOnIt) {
    std::vector<double> off, off_squared, diagonal_squared;
    for (Eigen::Index j = 0; j < dim; ++j) {
        diagonal_squared.push_back(sample(j, j) * sample(j, j));
        for (Eigen::Index i = j + 1; i < dim; ++i) {
            off.push_back(sample(i, j));
            off_squared.push_back(sample(i, j) * sample(i, j));
        }
    }
    EXPECT_LE(test::estimate(off).deviation(0), 4);
    EXPECT_LE(test::estimate(off_squared).deviation(1.0 / dim), 4);
    EXPECT_LE(test::estimate(diagonal_squared).deviation(2.0 / dim), 4);
}

TEST_F(GaussianOrthogonalEnsemble, HasItsSpectrumOnMinusTwoToTwo) {
    const Vector values = symmetric_eigenvalues(sample);
    // The largest eigenvalue is 2 + d^{-2/3} (Tracy-Widom: mean -1.2, deviation 1.3).
    const double fluctuation = 6 * std::pow(dim, -2.0 / 3);
    EXPECT_NEAR(values[0], -2, fluctuation);
    EXPECT_NEAR(values[dim - 1], 2, fluctuation);
}

}  // namespace
}  // namespace bayesaim::linalg
