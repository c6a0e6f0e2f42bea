// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/singular_values.hpp"

#include <cmath>

#include <Eigen/SVD>
#include <gtest/gtest.h>

#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/ginibre.hpp"

namespace bayesaim::denoisers {
namespace {

using linalg::Matrix;

Matrix noise(Eigen::Index dim, std::uint64_t seed, ThreadPool& pool) {
    return linalg::gaussian_matrix(dim, dim, RandomStream(seed, Purpose::noise), pool) /
           std::sqrt(static_cast<double>(dim));
}

TEST(SingularValueDenoiser, IsTheOneOfTheSingularValueDecomposition) {
    ThreadPool pool(1);
    for (const double width : {0.2, 1.5}) {
        const priors::Bilinear prior(width);
        const double D = 0.3;
        const Matrix noisy = prior.sample(60, 1, 0, pool) + std::sqrt(D) * noise(60, 2, pool);
        const Denoised denoised = denoise_singular_values(prior.law(), noisy, D, pool);
        const Eigen::JacobiSVD<Matrix> svd(noisy, Eigen::ComputeFullU | Eigen::ComputeFullV);
        const spectral::FreeConvolution spectrum(prior.law(), D);
        linalg::Vector shrunk = svd.singularValues();
        for (double& value : shrunk) value = spectrum.at(value).denoised;
        const Matrix expected = svd.matrixU() * shrunk.asDiagonal() * svd.matrixV().transpose();
        EXPECT_LE((denoised.estimate - expected).norm(), 1e-9 * expected.norm()) << width;
        EXPECT_LE((denoised.shrunk.reverse() - shrunk).norm(), 1e-7);
    }
}

/// Independent Gaussian entries: linear shrinkage by 1/(1 + D).
TEST(SingularValueDenoiser, GaussianEntriesAreShrunkAlike) {
    ThreadPool pool(1);
    const priors::Ginibre prior;
    const Matrix noisy = prior.sample(40, 3, 0, pool) + std::sqrt(0.5) * noise(40, 4, pool);
    const Denoised denoised = denoise_singular_values(prior.law(), noisy, 0.5, pool);
    EXPECT_LE((denoised.estimate - noisy / 1.5).norm(), 1e-10 * noisy.norm());
    EXPECT_NEAR(denoised.posterior_variance, 0.5 / 1.5, 1e-12);
}

TEST(SingularValueDenoiser, MeasuredErrorIsTheMmse) {
    ThreadPool pool(2);
    for (const double width : {0.1, 0.5, 2.0}) {
        const priors::Bilinear prior(width);
        for (const double D : {0.1, 2.0}) {
            const Matrix s = prior.sample(400, 5, 0, pool);
            const Denoised denoised =
                denoise_singular_values(prior.law(), s + std::sqrt(D) * noise(400, 6, pool), D, pool);
            const double error = (denoised.estimate - s).squaredNorm() / 400;
            EXPECT_NEAR(error, denoised.posterior_variance, 0.02 * denoised.posterior_variance)
                << width << " " << D;
        }
    }
}

TEST(SingularValueDenoiser, BitsDoNotDependOnThreads) {
    ThreadPool one(1), three(3);
    const priors::Bilinear prior(0.5);
    const Matrix noisy = prior.sample(150, 1, 0, one) + noise(150, 2, one);
    EXPECT_EQ(denoise_singular_values(prior.law(), noisy, 1, one).estimate,
              denoise_singular_values(prior.law(), noisy, 1, three).estimate);
}

}  // namespace
}  // namespace bayesaim::denoisers
