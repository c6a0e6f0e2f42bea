// SPDX-License-Identifier: MIT
#include "bayesaim/priors/power_law.hpp"

#include <gtest/gtest.h>

#include "bayesaim/core/random.hpp"
#include "bayesaim/denoisers/rotation_invariant.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/table.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::priors {
namespace {

using List = std::vector<std::pair<std::string, double>>;

TEST(PowerLawPrior, SamplesHaveTheEigenvaluesOfTheLaw) {
    constexpr Eigen::Index dim = 31;
    const PowerLaw prior(1.3, 0.6, 0.02, 2);
    ThreadPool pool(1);
    const linalg::Vector values = linalg::symmetric_eigenvalues(prior.sample(dim, 3, 1, pool));
    const spectral::PowerLaw law(1.3, 0.6, 0.02);
    for (Eigen::Index i = 0; i < dim; ++i) {
        const double expected =
            i < 19 ? 2 * law.eigenvalue((static_cast<double>(i) + 0.5) / dim) : 0;  // 18.6
        EXPECT_NEAR(values[dim - 1 - i], expected, 1e-13 * values[dim - 1]) << i;
    }
    test::expect_invalid([&] { PowerLaw(1, 0.01).sample(10, 0, 0, pool); },
                         "width * dimension must be at least 0.5");
}

TEST(PowerLawPrior, DescribesItself) {
    EXPECT_EQ(PowerLaw(1.5).parameters(), (List{{"width", 1}, {"exponent", 1.5}, {"cutoff", 1e-3}}));
    EXPECT_EQ(PowerLaw(1, 0.5, 0.1, 3).parameters(),
              (List{{"width", 0.5}, {"exponent", 1}, {"cutoff", 0.1}, {"scale", 3}}));
    const auto made = make_prior("power-law", {.width = 0.5, .scale = 3, .exponent = 2, .cutoff = 0.1});
    EXPECT_EQ(made->parameters(), PowerLaw(2, 0.5, 0.1, 3).parameters());
    EXPECT_DOUBLE_EQ(made->law().second_moment(), 9);
    EXPECT_TRUE(made->symmetric());
}

TEST(PowerLawPrior, DenoisedSamplesErrByTheMmse) {
    constexpr Eigen::Index dim = 800;
    constexpr double noise = 0.1, finite_size = 0.01;  // of order 1/d, times some large eigenvalues
    const PowerLaw prior(1, 0.5, 0.05);
    ThreadPool pool(1);
    const linalg::Matrix signal = prior.sample(dim, 1, 0, pool);
    const linalg::Matrix noisy = signal + std::sqrt(noise) * linalg::gaussian_orthogonal_ensemble(
                                                                 dim, RandomStream(1, Purpose::noise), pool);
    const auto result = denoisers::denoise(prior.law(), noisy, noise, pool);
    const double measured = (result.estimate - signal).squaredNorm() / dim;
    EXPECT_LE(test::relative_error(measured, result.posterior_variance), finite_size);
    EXPECT_LT(measured, 0.7 * noise);
}

}  // namespace
}  // namespace bayesaim::priors
