// SPDX-License-Identifier: MIT
// What every row of the table of priors promises.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/table.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "support/temporary_file.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::priors {
namespace {

constexpr Eigen::Index dim = 300;

class PriorContract : public ::testing::TestWithParam<std::string> {
  protected:
    PriorContract() : prior_(make_prior(GetParam(), {.width = 0.5, .spectrum_file = file_.path()})) {}

    linalg::Matrix sample(std::uint64_t seed, std::uint64_t index, std::size_t threads = 1) const {
        ThreadPool pool(threads);
        return prior_->sample(dim, seed, index, pool);
    }

    const test::TemporaryFile file_{"-2 0.1\n-0.5 0.3\n0.5 0.4\n3 0.2\n"};
    const std::unique_ptr<Prior> prior_;
};

TEST_P(PriorContract, NameIsThatOfTheTable) { EXPECT_EQ(prior_->name(), GetParam()); }

TEST_P(PriorContract, SamplesAreSymmetricAndFinite) {
    const linalg::Matrix s = sample(1, 0);
    EXPECT_EQ(s.rows(), dim);
    EXPECT_EQ(s, s.transpose());
    EXPECT_TRUE(s.allFinite());
}

TEST_P(PriorContract, TheSameSeedGivesTheSameBitsForAnyNumberOfThreads) {
    const linalg::Matrix s = sample(7, 3);
    EXPECT_EQ(sample(7, 3), s);
    EXPECT_EQ(sample(7, 3, 2), s);
    EXPECT_EQ(sample(7, 3, 3), s);
}

TEST_P(PriorContract, SeedsAndIndicesGiveIndependentDraws) {
    const linalg::Matrix centred = sample(7, 3) - prior_->law().mean() * linalg::Matrix::Identity(dim, dim);
    for (const auto& [seed, index] : {std::pair{7, 4}, std::pair{8, 3}}) {
        const linalg::Matrix other =
            sample(seed, index) - prior_->law().mean() * linalg::Matrix::Identity(dim, dim);
        // Tr(A B)/d of free centred matrices is of order variance/d; of equal ones it is the variance.
        EXPECT_LE(std::abs(centred.cwiseProduct(other).sum() / dim), 10 * prior_->law().variance() / dim);
    }
}

TEST_P(PriorContract, MomentsOfSamplesAreThoseOfTheLaw) {
    std::vector<double> first, second;
    for (std::uint64_t draw = 0; draw < 12; ++draw) {
        const linalg::Matrix s = sample(11, draw);
        first.push_back(s.trace() / dim);
        second.push_back(s.squaredNorm() / dim);
    }
    const spectral::SpectralLaw& law = prior_->law();
    const double finite_size = 2.0 / dim;  // real matrices: E tr S^2 = kappa2 + 1/d for Wishart and Wigner
    const test::Estimate mean = test::estimate(first), square = test::estimate(second);
    EXPECT_NEAR(mean.mean, law.mean(),
                4 * mean.standard_error + finite_size * std::sqrt(law.second_moment()));
    EXPECT_NEAR(square.mean, law.second_moment(),
                4 * square.standard_error + finite_size * law.second_moment());
}

/// Largest distance between the empirical distribution of the values and the integrated density.
double kolmogorov_distance(linalg::Vector values, const spectral::FreeConvolution& spectrum) {
    std::sort(values.begin(), values.end());
    const auto n = static_cast<double>(values.size());
    double below = 0, worst = 0;
    Eigen::Index counted = 0;
    for (const spectral::Interval& bulk : spectrum.edges()) {
        constexpr int steps = 4000;
        for (int k = 0; k < steps; ++k) {
            const double width = (bulk.high - bulk.low) / steps, x = bulk.low + (k + 0.5) * width;
            below += width * spectrum.at(x).density;
            while (counted < values.size() && values[counted] < x + 0.5 * width) ++counted;
            worst = std::max(worst, std::abs(below - static_cast<double>(counted) / n));
        }
    }
    EXPECT_NEAR(below, 1, 1e-4) << "mass by the midpoint rule";
    return worst;
}

TEST_P(PriorContract, SpectrumUnderNoiseIsTheFreeConvolution) {
    ThreadPool pool(1);
    const linalg::Matrix noise =
        linalg::gaussian_orthogonal_ensemble(dim, RandomStream(5, Purpose::noise), pool);
    const linalg::Matrix s = sample(5, 0);
    for (const double noise_variance : {0.05, 0.5}) {
        const linalg::Vector values = linalg::symmetric_eigenvalues(s + std::sqrt(noise_variance) * noise);
        const spectral::FreeConvolution spectrum(prior_->law(), noise_variance);
        // Eigenvalues are rigid: order log(d)/d, far below the 1/sqrt(d) of independent points.
        EXPECT_LE(kolmogorov_distance(values, spectrum), 4.0 / dim) << noise_variance;
        const spectral::FreeConvolution wrong(prior_->law(), noise_variance + 0.3);
        EXPECT_GT(kolmogorov_distance(values, wrong), 4.0 / dim) << "the test does not see the noise";
    }
}

TEST_P(PriorContract, MmseIncreasesFromZeroToThePriorVarianceAndSlowerThanTheNoise) {
    const spectral::SpectralLaw& law = prior_->law();
    const double at_zero = 1 - law.atomic_concentration();
    double last = 0, last_ratio = at_zero * (1 + 1e-9);
    for (double noise = 1e-10; noise < 2e10; noise *= 3) {
        const spectral::FreeConvolution spectrum(law, noise);
        const double error = spectrum.mmse();
        EXPECT_GT(error, last) << noise;
        EXPECT_LE(error, std::min(noise, law.variance())) << noise;
        EXPECT_LT(error / noise, last_ratio) << noise;
        EXPECT_GT(spectrum.mmse_derivative(), 0) << noise;
        EXPECT_LE(test::relative_error(spectrum.mass(), 1), 1e-10) << noise;
        last = error;
        last_ratio = error / noise;
    }
    EXPECT_LE(test::relative_error(mmse(law, 1e-10) / 1e-10, at_zero), 1e-4);
    EXPECT_LE(test::relative_error(last, law.variance()), 1e-8);
}

INSTANTIATE_TEST_SUITE_P(Table, PriorContract, ::testing::ValuesIn(prior_names()),
                         [](const auto& row) { return row.param; });

}  // namespace
}  // namespace bayesaim::priors
