// SPDX-License-Identifier: MIT
// The scale of wishart and bilinear: c S in place of S.
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "bayesaim/core/random.hpp"
#include "bayesaim/denoisers/singular_values.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/table.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::priors {
namespace {

using Parameters = std::vector<std::pair<std::string, double>>;
using test::expect_invalid;

/// A prior and the same with the scale 3.
struct Pair {
    std::shared_ptr<const Prior> one, three;
};

std::vector<Pair> pairs() {
    return {{std::make_shared<Wishart>(0.5), std::make_shared<Wishart>(0.5, 3)},
            {std::make_shared<Bilinear>(0.4), std::make_shared<Bilinear>(0.4, 1, 3)},
            {std::make_shared<Bilinear>(0.4, 2), std::make_shared<Bilinear>(0.4, 2, 3)}};
}

TEST(PriorScale, MultipliesSamples) {
    ThreadPool pool(1);
    for (const auto& [one, three] : pairs()) {
        const linalg::Matrix s = one->sample(20, 1, 2, pool), scaled = three->sample(20, 1, 2, pool);
        ASSERT_EQ(s.cols(), scaled.cols());
        EXPECT_LE((scaled - 3 * s).norm(), 1e-13 * s.norm());
    }
}

/// mmse of c S at noise c^2 D is c^2 times that of S at D, and I_in(qhat) is that of S at c^2 qhat.
TEST(PriorScale, MultipliesTheLaw) {
    for (const auto& [one, three] : pairs()) {
        EXPECT_DOUBLE_EQ(three->law().mean(), 3 * one->law().mean());
        EXPECT_DOUBLE_EQ(three->law().second_moment(), 9 * one->law().second_moment());
        EXPECT_EQ(three->law().aspect(), one->law().aspect());
        for (const double D : {1e-3, 0.3, 20.0}) {
            const auto expected = spectral::error_point(one->law(), D),
                       found = spectral::error_point(three->law(), 9 * D);
            EXPECT_LE(test::relative_error(found.error, 9 * expected.error), 1e-12) << D;
            EXPECT_LE(test::relative_error(found.slope, expected.slope), 1e-10) << D;
        }
        EXPECT_NEAR(spectral::prior_free_entropy(three->law(), 0.3),
                    spectral::prior_free_entropy(one->law(), 2.7), 1e-11);
    }
}

TEST(PriorScale, MultipliesDenoisedMatrices) {
    ThreadPool pool(1);
    for (const double aspect : {1.0, 1.5}) {
        const Bilinear one(0.4, aspect), three(0.4, aspect, 3);
        const linalg::Matrix s = one.sample(40, 1, 0, pool);
        const linalg::Matrix noisy =
            s + 0.1 * linalg::gaussian_matrix(s.rows(), s.cols(), RandomStream(1, Purpose::noise), pool);
        const auto expected = denoisers::denoise_singular_values(one.law(), noisy, 0.4, pool);
        const auto found =
            denoisers::denoise_singular_values(three.law(), linalg::Matrix(3 * noisy), 9 * 0.4, pool);
        EXPECT_LE((found.estimate - 3 * expected.estimate).norm(), 1e-9 * expected.estimate.norm());
        EXPECT_LE(test::relative_error(found.posterior_variance, 9 * expected.posterior_variance), 1e-12);
        EXPECT_LE((found.shrunk - 3 * expected.shrunk).norm(), 1e-7);
        EXPECT_LE((found.eigenvalues - 3 * expected.eigenvalues).norm(), 1e-7);
    }
}

TEST(PriorScale, IsReportedUnlessItIsOne) {
    EXPECT_EQ(Wishart(0.5, 1).parameters(), (Parameters{{"width", 0.5}}));
    EXPECT_EQ(Wishart(0.5, 2).parameters(), (Parameters{{"width", 0.5}, {"scale", 2}}));
    EXPECT_EQ(Bilinear(0.5, 1, 2).parameters(), (Parameters{{"width", 0.5}, {"scale", 2}}));
    EXPECT_EQ(Bilinear(0.5, 2, 3).parameters(), (Parameters{{"width", 0.5}, {"aspect", 2}, {"scale", 3}}));
    EXPECT_EQ(make_prior("wishart", {.width = 0.5, .scale = 2})->law().mean(), 2 * std::sqrt(0.5));
    EXPECT_EQ(make_prior("bilinear", {.width = 0.5, .scale = 2})->law().variance(), 4);
}

TEST(PriorScale, MustBePositive) {
    expect_invalid([] { Wishart(0.5, 0); }, "scale must be positive and finite, got 0");
    expect_invalid([] { Wishart(0.5, -1); }, "scale must be positive and finite, got -1");
    expect_invalid([] { Bilinear(0.5, 1, test::not_a_number); },
                   "scale must be positive and finite, got nan");
    expect_invalid([] { Bilinear(0.5, 2, 1e30); }, "scale must be between 1e-10 and 1e+10, got 1e+30");
}

}  // namespace
}  // namespace bayesaim::priors
