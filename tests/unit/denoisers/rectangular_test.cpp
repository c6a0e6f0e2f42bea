// SPDX-License-Identifier: MIT
// The denoiser of singular values for rectangular matrices.
#include <cmath>

#include <Eigen/SVD>
#include <gtest/gtest.h>

#include "bayesaim/core/random.hpp"
#include "bayesaim/denoisers/singular_values.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/ginibre.hpp"
#include "bayesaim/spectral/rectangular_law.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::denoisers {
namespace {

using linalg::Matrix;

double size_of(const Matrix& matrix) {
    return std::sqrt(static_cast<double>(matrix.rows()) * static_cast<double>(matrix.cols()));
}

/// S + sqrt(D) Z
Matrix with_noise(const Matrix& s, double D, std::uint64_t seed, ThreadPool& pool) {
    return s + std::sqrt(D / size_of(s)) *
                   linalg::gaussian_matrix(s.rows(), s.cols(), RandomStream(seed, Purpose::noise), pool);
}

TEST(RectangularDenoiser, IsTheOneOfTheSingularValueDecomposition) {
    ThreadPool pool(1);
    const double D = 0.3;
    for (const double aspect : {1.5, 0.4}) {
        for (const bool line : {false, true}) {
            const priors::Bilinear prior(0.3, aspect);
            const Matrix s = prior.sample(60, 1, 0, pool), noisy = with_noise(s, D, 2, pool);
            ASSERT_EQ(s.cols(), aspect > 1 ? 90 : 24);
            const Denoised denoised =
                denoise_singular_values(prior.law(), noisy, D, pool, {.linear_outside_support = line});
            const Eigen::JacobiSVD<Matrix> svd(noisy, Eigen::ComputeThinU | Eigen::ComputeThinV);
            const spectral::RectangularCurve curve = spectral::RectangularLaw(0.3, aspect).with_noise(D);
            const Shrinkage shrink(prior.law(), curve, {.linear_outside_support = line});
            linalg::Vector shrunk = svd.singularValues();
            for (double& value : shrunk) value = shrink(value);
            const Matrix expected = svd.matrixU() * shrunk.asDiagonal() * svd.matrixV().transpose();
            EXPECT_LE((denoised.estimate - expected).norm(), 1e-9 * expected.norm()) << aspect;
            EXPECT_LE((denoised.shrunk.reverse() - shrunk).norm(), 1e-7);
        }
    }
}

TEST(RectangularDenoiser, TransposeOfTheMatrixGivesTheTransposedEstimate) {
    ThreadPool pool(1);
    const priors::Bilinear high(0.2, 0.5), wide(0.4, 2);
    const Matrix noisy = with_noise(high.sample(80, 1, 0, pool), 0.5, 2, pool);
    const Matrix one = denoise_singular_values(high.law(), noisy, 0.5, pool).estimate,
                 other = denoise_singular_values(wide.law(), noisy.transpose(), 0.5, pool).estimate;
    EXPECT_LE((one - other.transpose()).norm(), 1e-10 * one.norm());
}

/// With the line beyond the edges, where 50 x 85 matrices have singular values.
TEST(RectangularDenoiser, GaussianEntriesAreShrunkAlike) {
    ThreadPool pool(1);
    const priors::Ginibre prior(1.7);
    const Matrix noisy = with_noise(prior.sample(50, 3, 0, pool), 0.5, 4, pool);
    ASSERT_EQ(noisy.cols(), 85);
    const Denoised denoised =
        denoise_singular_values(prior.law(), noisy, 0.5, pool, {.linear_outside_support = true});
    EXPECT_LE((denoised.estimate - noisy / 1.5).norm(), 1e-9 * noisy.norm());
    EXPECT_NEAR(denoised.posterior_variance, 0.5 / 1.5, 1e-12);
}

/// 500 x 1000 at width 0.5 and D = 0.5: the theory's note measured 0.24808, the limit is 0.24730.
TEST(RectangularDenoiser, MeasuredErrorIsTheMmse) {
    ThreadPool pool(2);
    for (const auto& [width, aspect, D, dim] :
         {std::tuple(0.5, 2.0, 0.5, 500), {0.1, 1.5, 2.0, 300}, {0.2, 0.5, 0.1, 400}, {2.0, 3.0, 1.0, 150}}) {
        const priors::Bilinear prior(width, aspect);
        const Matrix s = prior.sample(dim, 5, 0, pool);
        const Denoised denoised = denoise_singular_values(prior.law(), with_noise(s, D, 6, pool), D, pool);
        const double error = (denoised.estimate - s).squaredNorm() / size_of(s);
        EXPECT_NEAR(error, denoised.posterior_variance, 0.02 * denoised.posterior_variance)
            << width << " " << aspect << " " << D;
        EXPECT_NEAR(s.squaredNorm() / size_of(s), 1, 0.05);
    }
    EXPECT_NEAR(spectral::mmse(priors::Bilinear(0.5, 2).law(), 0.5), 0.24730, 1e-5);
}

TEST(RectangularDenoiser, BitsDoNotDependOnThreads) {
    ThreadPool one(1), three(3);
    for (const double aspect : {1.6, 0.6}) {
        const priors::Bilinear prior(0.5, aspect);
        const Matrix noisy = with_noise(prior.sample(150, 1, 0, one), 1, 2, one);
        EXPECT_EQ(prior.sample(150, 1, 0, one), prior.sample(150, 1, 0, three));
        EXPECT_EQ(denoise_singular_values(prior.law(), noisy, 1, one).estimate,
                  denoise_singular_values(prior.law(), noisy, 1, three).estimate);
    }
}

TEST(RectangularDenoiser, RefusesAnotherShape) {
    ThreadPool pool(1);
    const priors::Bilinear prior(0.5, 2);
    test::expect_invalid([&] { denoise_singular_values(prior.law(), Matrix::Zero(10, 10), 1, pool); },
                         "columns of the noisy matrix must be of size 20, got 10");
}

}  // namespace
}  // namespace bayesaim::denoisers
