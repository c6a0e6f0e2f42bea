// SPDX-License-Identifier: MIT
#include "bayesaim/priors/multi_head.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/free_moments.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::priors {
namespace {

/// Cumulants add: kappa_n of the mean of M heads is M^(1-n) rho^(1-n/2).
TEST(MultiHead, MeanOfHeadsIsAWiderLayer) {
    const auto kappa = spectral::free_cumulants(MultiHead(3, 0.4).law(), 8);
    for (int n = 1; n <= 8; ++n) {
        const double expected = std::pow(3.0, 1 - n) * std::pow(0.4, 1 - 0.5 * n);
        EXPECT_NEAR(kappa[static_cast<std::size_t>(n - 1)], expected, 1e-10) << n;
    }
}

/// mmse of c S at noise c^2 D is c^2 times that of S at D; and one head is the layer itself.
TEST(MultiHead, ErrorScalesLikeTheLaw) {
    const Wishart wide(1.2), narrow(0.4);
    EXPECT_NEAR(spectral::mmse(MultiHead(3, 0.4).law(), 0.1), spectral::mmse(wide.law(), 0.3) / 3, 1e-11);
    EXPECT_NEAR(spectral::mmse(MultiHead(1, 0.4).law(), 0.1), spectral::mmse(narrow.law(), 0.1), 1e-12);
    EXPECT_NEAR(spectral::prior_free_entropy(MultiHead(3, 0.4).law(), 6),
                spectral::prior_free_entropy(wide.law(), 2), 1e-10);
}

TEST(MultiHead, DrawsHaveTheSpectrumOfTheLaw) {
    ThreadPool pool(1);
    const MultiHead prior(2, 0.5);
    const linalg::Matrix s = prior.sample(300, 5, 0, pool);
    EXPECT_NEAR(s.trace() / 300, prior.law().mean(), 0.03);
    EXPECT_NEAR(s.squaredNorm() / 300, prior.law().second_moment(), 0.05);
    // Two heads of width 1/2 make a matrix of full rank; one has half its eigenvalues at 0.
    const linalg::Vector values = linalg::symmetric_eigenvalues(s);
    EXPECT_LT((values.array() < 1e-9).count(), 3);
}

/// Layer l has the heads l M .. l M + M - 1 of the seed: no head is in two layers.
TEST(MultiHead, HeadsOfAllLayersAreDifferentDraws) {
    ThreadPool pool(1);
    const MultiHead prior(3, 0.5);
    const Wishart head(0.5);
    for (const std::uint64_t layer : {0, 1, 2}) {
        linalg::Matrix mean = linalg::Matrix::Zero(8, 8);
        for (std::uint64_t m = 0; m < 3; ++m) mean += head.sample(8, 5, 3 * layer + m, pool) / 3;
        EXPECT_LT((prior.sample(8, 5, layer, pool) - mean).norm(), 1e-13) << layer;
    }
}

TEST(MultiHead, RejectsNoHeads) {
    test::expect_invalid([] { MultiHead(0, 0.5); }, "heads must be at least 1, got 0");
}

}  // namespace
}  // namespace bayesaim::priors
