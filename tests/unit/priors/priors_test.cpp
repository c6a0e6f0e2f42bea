// SPDX-License-Identifier: MIT
#include <vector>

#include <gtest/gtest.h>

#include "bayesaim/core/table.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/table.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::priors {
namespace {

using test::expect_invalid;

TEST(Wishart, IsTheScaledGramMatrixOfItsStream) {
    ThreadPool pool(1);
    const linalg::Matrix w = linalg::gaussian_matrix(20, 10, RandomStream(4, Purpose::weights, 2), pool);
    const linalg::Matrix expected = w * w.transpose() / std::sqrt(10.0 * 20.0);
    const linalg::Matrix s = Wishart(0.5).sample(20, 4, 2, pool);
    EXPECT_LE((s - expected).cwiseAbs().maxCoeff(), 1e-14);
}

TEST(Wishart, HasRankWidthTimesDimension) {
    ThreadPool pool(1);
    const linalg::Vector values = linalg::symmetric_eigenvalues(Wishart(0.3).sample(100, 1, 0, pool));
    EXPECT_EQ((values.array().abs() > 1e-10).count(), 30);
    EXPECT_GT(values[0], -1e-12);
}

TEST(Wishart, TraceHasTheExactMoments) {
    // E tr S = sqrt(width), E tr S^2 = 1 + width + 1/d at every d.
    constexpr Eigen::Index dim = 20;
    ThreadPool pool(1);
    std::vector<double> trace, square;
    for (std::uint64_t draw = 0; draw < 3000; ++draw) {
        const linalg::Matrix s = Wishart(0.5).sample(dim, 8, draw, pool);
        trace.push_back(s.trace() / dim);
        square.push_back(s.squaredNorm() / dim);
    }
    EXPECT_LE(test::estimate(trace).deviation(std::sqrt(0.5)), 4);
    EXPECT_LE(test::estimate(square).deviation(1.5 + 1.0 / dim), 4);
}

TEST(Wishart, NamesBadArguments) {
    ThreadPool pool(1);
    expect_invalid([] { Wishart(0); }, "width must be positive and finite, got 0");
    expect_invalid([] { Wishart(-1); }, "width must be positive and finite, got -1");
    expect_invalid([] { Wishart prior(test::not_a_number); }, "width must be positive and finite, got nan");
    expect_invalid([&] { Wishart(0.5).sample(0, 1, 0, pool); }, "dimension must be at least 1, got 0");
    expect_invalid([&] { Wishart(0.01).sample(10, 1, 0, pool); }, "width * dimension must be at least 0.5");
}

TEST(Wigner, IsTheGaussianOrthogonalEnsemble) {
    ThreadPool pool(1);
    const Wigner prior;
    EXPECT_EQ(prior.sample(30, 5, 1, pool),
              linalg::gaussian_orthogonal_ensemble(30, RandomStream(5, Purpose::weights, 1), pool));
    EXPECT_EQ(prior.law().mean(), 0);
    EXPECT_EQ(prior.law().variance(), 1);
    expect_invalid([&] { prior.sample(0, 1, 0, pool); }, "dimension must be at least 1, got 0");
}

TEST(PriorTable, MakesWhatIsAskedForAndListsWhatItKnows) {
    EXPECT_EQ(names_of(prior_table()),
              (std::vector<std::string>{"wishart", "wigner", "spectrum", "multi-head", "bilinear", "ginibre",
                                        "power-law"}));
    const auto prior = make_prior("wishart", {.width = 0.25});
    EXPECT_EQ(prior->name(), "wishart");
    ASSERT_EQ(prior->parameters().size(), 1U);
    EXPECT_EQ(prior->parameters()[0], (std::pair<std::string, double>("width", 0.25)));
    EXPECT_EQ(make_prior("wigner", {})->name(), "wigner");
    expect_invalid([] { make_prior("gauss", {}); },
                   "prior must be one of wishart, wigner, spectrum, multi-head, bilinear, ginibre, "
                   "power-law, got 'gauss'");
    expect_invalid([] { make_prior("spectrum", {}); }, "prior spectrum needs a spectrum file");
    expect_invalid([] { make_prior("wishart", {.width = 0}); }, "width must be positive and finite, got 0");
}

}  // namespace
}  // namespace bayesaim::priors
