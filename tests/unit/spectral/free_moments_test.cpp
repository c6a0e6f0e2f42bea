// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/free_moments.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/spectral/atomic_law.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::spectral {
namespace {

/// kappa_n = rho^(1 - n/2); those of the semicircle vanish beyond the second.
TEST(FreeCumulants, AreThoseOfTiedAttention) {
    for (const double width : {0.1, 0.5, 2.0}) {
        const auto kappa = free_cumulants(MarchenkoPasturLaw(width), 16);
        ASSERT_EQ(kappa.size(), 16U);
        for (int n = 1; n <= 16; ++n) {
            const double expected = std::pow(width, 1 - 0.5 * n);
            // Small cumulants are what is left of large moments.
            EXPECT_NEAR(kappa[static_cast<std::size_t>(n - 1)], expected, 1e-8 * std::max(1.0, expected))
                << width << " " << n;
        }
    }
    const auto kappa = free_cumulants(MarchenkoPasturLaw::semicircle(), 12);
    EXPECT_NEAR(kappa[1], 1, 1e-12);
    for (const std::size_t n : {0, 2, 3, 5, 7, 11}) EXPECT_NEAR(kappa[n], 0, 1e-9) << n;
}

/// Atoms at +-1: kappa_2n = (-1)^(n-1) Catalan(n-1), the law that sums to the arcsine.
TEST(FreeCumulants, OfTwoAtomsAreCatalanNumbers) {
    const double atoms[] = {-1, 1};
    const auto kappa = free_cumulants(AtomicLaw(atoms), 8);
    const double expected[] = {0, 1, 0, -1, 0, 2, 0, -5};
    for (std::size_t n = 0; n < 8; ++n) EXPECT_NEAR(kappa[n], expected[n], 1e-10) << n;
}

/// Against traces of words in matrices of d = 300: four realisations, four standard errors of their mean,
/// and the order of the letters matters (tr x1 x2 x1 x2 is not tr x1 x1 x2 x2).
TEST(FreeMoments, AreTracesOfLargeMatrices) {
    ThreadPool pool(1);
    const int dim = 300;
    linalg::Overlap noise(2, 2);
    noise << 0.5, 0.2, 0.2, 0.3;
    const std::vector<double> kappa1 = free_cumulants(MarchenkoPasturLaw(0.5), 6),
                              kappa2 = free_cumulants(MarchenkoPasturLaw(2), 6);
    const std::vector<double> cumulants[] = {kappa1, kappa2};
    const FreeMoments moments(cumulants, noise, 6);
    const std::vector<Word> words{{0, 0}, {0, 1}, {0, 1, 0, 1}, {0, 0, 1, 1}, {0, 0, 1}, {0, 1, 1, 0, 1, 0}};
    std::vector<std::vector<double>> traces(words.size());
    for (std::uint64_t draw = 0; draw < 4; ++draw) {
        std::vector<linalg::Matrix> x;
        const linalg::Matrix xi[] = {
            linalg::gaussian_orthogonal_ensemble(dim, RandomStream(3, Purpose::noise, 2 * draw), pool),
            linalg::gaussian_orthogonal_ensemble(dim, RandomStream(3, Purpose::noise, 2 * draw + 1), pool)};
        for (int layer = 0; layer < 2; ++layer) {
            const double width = layer == 0 ? 0.5 : 2;
            const int r = static_cast<int>(width * dim);
            const linalg::Matrix w = linalg::gaussian_matrix(
                dim, r, RandomStream(4, Purpose::weights, 2 * draw + static_cast<std::uint64_t>(layer)),
                pool);
            x.push_back(linalg::gram(1 / std::sqrt(double(r) * dim), w));
            x.back().diagonal().array() -= std::sqrt(width);
        }
        // Covariance 0.5, 0.2, 0.3.
        x[0] += std::sqrt(0.5) * xi[0];
        x[1] += 0.2 / std::sqrt(0.5) * xi[0] + std::sqrt(0.3 - 0.08) * xi[1];
        for (std::size_t i = 0; i < words.size(); ++i) {
            linalg::Matrix product = linalg::Matrix::Identity(dim, dim);
            for (const int letter : words[i]) product = product * x[static_cast<std::size_t>(letter)];
            traces[i].push_back(product.trace() / dim);
        }
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
        double mean = 0, squares = 0;
        for (const double t : traces[i]) mean += t / 4;
        for (const double t : traces[i]) squares += (t - mean) * (t - mean);
        const double standard_error = std::sqrt(squares / 12), finite_size = 4.0 / dim;
        const double expected = moments.moment(words[i]);
        EXPECT_NEAR(mean, expected, 4 * standard_error + finite_size * (1 + std::abs(expected)))
            << "word " << i;
        EXPECT_LT(standard_error, 0.05 * (1 + std::abs(expected)));
    }
    EXPECT_GT(moments.moment({0, 0, 1, 1}) - moments.moment({0, 1, 0, 1}), 0.5);
}

TEST(FreeMoments, RejectsWordsItHasNot) {
    const std::vector<double> cumulants[] = {free_cumulants(MarchenkoPasturLaw(1), 4)};
    const FreeMoments moments(cumulants, linalg::scalar_overlap(1), 4);
    test::expect_invalid([&] { moments.moment({0, 0, 0, 0, 0}); }, "length of a word");
    test::expect_invalid([&] { moments.moment({1}); }, "letter of a word");
    test::expect_invalid([&] { FreeMoments({}, linalg::scalar_overlap(1), 4); }, "layers");
}

}  // namespace
}  // namespace bayesaim::spectral
