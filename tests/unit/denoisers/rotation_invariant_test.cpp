// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/rotation_invariant.hpp"

#include <gtest/gtest.h>

#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::denoisers {
namespace {

using linalg::Matrix;
using linalg::Vector;

struct Observation {
    Matrix signal, noisy;
};

Observation observe(const priors::Prior& prior, Eigen::Index dim, double noise_variance, std::uint64_t seed) {
    ThreadPool pool(1);
    const Matrix signal = prior.sample(dim, seed, 0, pool);
    const Matrix noise = linalg::gaussian_orthogonal_ensemble(dim, RandomStream(seed, Purpose::noise), pool);
    return {signal, signal + std::sqrt(noise_variance) * noise};
}

double largest_difference(const Matrix& a, const Matrix& b) {
    return (a - b).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
}

TEST(RotationInvariantDenoiser, MeasuredErrorIsTheMmse) {
    constexpr Eigen::Index dim = 1000;
    constexpr double finite_size = 0.01;  // fluctuations and corrections are of order 1/d
    const priors::Wishart prior(0.5);
    ThreadPool pool(1);
    const auto [signal, noisy] = observe(prior, dim, 0.5, 1);
    const Denoised result = denoise(prior.law(), noisy, 0.5, pool);
    const double measured = (result.estimate - signal).squaredNorm() / dim;
    EXPECT_LE(test::relative_error(measured, result.posterior_variance), finite_size);
    EXPECT_LE(test::relative_error(result.posterior_variance, 0.249259331846), 1e-9);
    // The shrinkage is the best one on these eigenvectors: other multiples of it err more.
    for (const double factor : {0.95, 1.05}) {
        EXPECT_GT((factor * result.estimate - signal).squaredNorm() / dim, measured);
    }
    EXPECT_LT(measured, 0.6 * (noisy - signal).squaredNorm() / dim) << "no better than the observation";
}

TEST(RotationInvariantDenoiser, EstimateIsExactlySymmetricWithTheReportedEigenvalues) {
    const priors::Wishart prior(2);
    ThreadPool pool(1);
    const Matrix noisy = observe(prior, 80, 0.3, 2).noisy;
    const Denoised result = denoise(prior.law(), noisy, 0.3, pool);
    EXPECT_EQ(result.estimate, result.estimate.transpose());
    constexpr double roundoff = 1e-12;
    EXPECT_LE(largest_difference(linalg::symmetric_eigenvalues(noisy), result.eigenvalues), roundoff);
    Vector shrunk = result.shrunk;
    EXPECT_TRUE(std::is_sorted(shrunk.begin(), shrunk.end())) << "the shrinkage is increasing";
    EXPECT_LE(largest_difference(linalg::symmetric_eigenvalues(result.estimate), shrunk), roundoff);
    // Same eigenvectors: the two matrices commute.
    EXPECT_LE(largest_difference(result.estimate * noisy, noisy * result.estimate), 10 * roundoff);
    const spectral::FreeConvolution spectrum(prior.law(), 0.3);
    for (Eigen::Index i = 0; i < shrunk.size(); ++i)
        EXPECT_EQ(shrunk[i], spectrum.at(result.eigenvalues[i]).denoised);
    EXPECT_EQ(result.posterior_variance, spectrum.mmse());
}

TEST(RotationInvariantDenoiser, HasTheSameBitsForAnyNumberOfThreads) {
    const priors::Wishart prior(0.5);
    const Matrix noisy = observe(prior, 300, 1, 3).noisy;
    ThreadPool one(1), three(3);
    EXPECT_EQ(denoise(prior.law(), noisy, 1, one).estimate, denoise(prior.law(), noisy, 1, three).estimate);
}

TEST(RotationInvariantDenoiser, ShrinksWignerMatricesLinearly) {
    const priors::Wigner prior;
    ThreadPool pool(1);
    for (const double noise : {0.1, 1.0, 20.0}) {
        const Matrix noisy = 0.9 * observe(prior, 100, noise, 4).noisy;  // all eigenvalues inside the bulk
        const Denoised result = denoise(prior.law(), noisy, noise, pool);
        EXPECT_LE(largest_difference(result.estimate, noisy / (1 + noise)), 1e-12 * std::sqrt(1 + noise))
            << noise;
        EXPECT_LE(test::relative_error(result.posterior_variance, noise / (1 + noise)), 1e-12) << noise;
    }
}

TEST(RotationInvariantDenoiser, CommutesWithRotations) {
    const priors::Wishart prior(0.5);
    ThreadPool pool(1);
    const Matrix noisy = observe(prior, 60, 0.5, 5).noisy;
    const Matrix o =
        linalg::haar_orthogonal(linalg::gaussian_matrix(60, 60, RandomStream(5, Purpose::rotation), pool));
    Matrix rotated = o * noisy * o.transpose();
    rotated = (0.5 * (rotated + rotated.transpose())).eval();
    const Matrix expected = o * denoise(prior.law(), noisy, 0.5, pool).estimate * o.transpose();
    // Round-off, which the square root at an edge amplifies.
    EXPECT_LE(largest_difference(denoise(prior.law(), rotated, 0.5, pool).estimate, expected), 1e-11);
}

TEST(RotationInvariantDenoiser, ErrorIsTheNoiseTimesTheDivergence) {
    // In coordinates of unit Frobenius norm the noise has variance 2 D/d, so
    // E ||Shat - S||^2/d = (2 D/d^2) div Shat.
    constexpr Eigen::Index dim = 30;
    constexpr double noise = 0.5, step = 1e-5;
    const priors::Wishart prior(0.5);
    ThreadPool pool(1);
    // Outliers of a small matrix sit where the shrinkage itself is too steep for differences.
    const DenoiseOptions options{.linear_outside_support = true};
    const Matrix noisy = observe(prior, dim, noise, 6).noisy;
    const auto estimate = [&](const Matrix& at) {
        return denoise(prior.law(), at, noise, pool, options).estimate;
    };
    double divergence = 0;
    for (Eigen::Index i = 0; i < dim; ++i) {
        for (Eigen::Index j = 0; j <= i; ++j) {
            Matrix direction = Matrix::Zero(dim, dim);
            direction(i, j) = direction(j, i) = i == j ? 1 : std::sqrt(0.5);
            const Matrix change = estimate(noisy + step * direction) - estimate(noisy - step * direction);
            divergence += change.cwiseProduct(direction).sum() / (2 * step);
        }
    }
    // The same by perturbation theory: f'(l_i) on the diagonal, (f_i - f_j)/(l_i - l_j) off it.
    const Denoised result = denoise(prior.law(), noisy, noise, pool, options);
    const Vector &l = result.eigenvalues, &f = result.shrunk;
    const spectral::FreeConvolution spectrum(prior.law(), noise);
    const spectral::Interval bulk = spectrum.edges().front();
    double exact = 0;
    for (Eigen::Index i = 0; i < dim; ++i) {
        if (bulk.low < l[i] && l[i] < bulk.high) {
            exact += (spectrum.at(l[i] + step).denoised - spectrum.at(l[i] - step).denoised) / (2 * step);
        } else {
            exact += prior.law().variance() / (prior.law().variance() + noise);
        }
        for (Eigen::Index j = 0; j < i; ++j) exact += (f[i] - f[j]) / (l[i] - l[j]);
    }
    constexpr double finite_difference = 1e-5, finite_size = 3.0 / dim;
    EXPECT_LE(test::relative_error(divergence, exact), finite_difference);
    EXPECT_LE(test::relative_error(2 * noise / (dim * dim) * divergence, spectrum.mmse()), finite_size);
}

TEST(RotationInvariantDenoiser, BeyondTheEdgesTheShrinkageIsLinear) {
    const priors::Wishart prior(0.5);
    ThreadPool pool(1);
    constexpr double noise = 0.01;  // two bulks, with outliers in the gap too
    const spectral::FreeConvolution spectrum(prior.law(), noise);
    const auto bulks = spectrum.edges();
    ASSERT_EQ(bulks.size(), 2U);
    const double gap = bulks[1].low - bulks[0].high;
    const Vector values{{bulks[0].low - 1, 0.5 * (bulks[0].low + bulks[0].high), bulks[0].high + 0.1 * gap,
                         bulks[1].low - 0.1 * gap, 0.5 * (bulks[1].low + bulks[1].high), bulks[1].high + 5}};
    const Vector clamped{{bulks[0].low, values[1], bulks[0].high, bulks[1].low, values[4], bulks[1].high}};
    const double slope = prior.law().variance() / (prior.law().variance() + noise);
    const Matrix noisy = values.asDiagonal();
    const Denoised as_is = denoise(prior.law(), noisy, noise, pool);
    const Denoised moved = denoise(prior.law(), noisy, noise, pool, {.linear_outside_support = true});
    for (Eigen::Index i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(as_is.shrunk[i], spectrum.at(values[i]).denoised, 1e-12);
        EXPECT_NEAR(moved.shrunk[i], spectrum.at(clamped[i]).denoised + slope * (values[i] - clamped[i]),
                    1e-7);  // square root of round-off at the edge
        EXPECT_NEAR(moved.eigenvalues[i], values[i], 1e-12)
            << "the eigenvalues reported are those of the matrix";
    }
    EXPECT_GT(as_is.shrunk[5] - moved.shrunk[5], 0.01) << "nothing was outside";
}

TEST(RotationInvariantDenoiser, BadInputIsNamed) {
    using test::expect_invalid;
    const priors::Wigner prior;
    ThreadPool pool(1);
    const auto denoising = [&](const Matrix& noisy, double noise) {
        return [&prior, &pool, noisy, noise] { denoise(prior.law(), noisy, noise, pool); };
    };
    Matrix a = Matrix::Identity(3, 3);
    expect_invalid(denoising(Matrix::Zero(3, 4), 1), "noisy matrix must be a square matrix, got 3 x 4");
    expect_invalid(denoising(Matrix(0, 0), 1), "noisy matrix must be a square matrix, got 0 x 0");
    expect_invalid(denoising(a, 0), "noise variance must be positive and finite, got 0");
    expect_invalid(denoising(a, -1), "noise variance must be positive and finite, got -1");
    expect_invalid(denoising(a, test::not_a_number), "noise variance must be positive and finite, got nan");
    a(2, 0) = 0.5;
    expect_invalid(denoising(a, 1), "noisy matrix must be symmetric, got 0.5 at (2, 0) and 0 at (0, 2)");
    a(2, 0) = a(0, 2) = test::not_a_number;
    expect_invalid(denoising(a, 1), "noisy matrix(2, 0) must be a finite number, got nan");
}

}  // namespace
}  // namespace bayesaim::denoisers
