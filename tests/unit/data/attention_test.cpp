// SPDX-License-Identifier: MIT
#include "bayesaim/data/attention.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;

/// The sensing matrix Z_ab of one sample, as the theory writes it. The library never stores n of these.
Matrix sensing_matrix(const Matrix& tokens, int a, int b) {
    const double d = static_cast<double>(tokens.rows()), same = a == b ? 1 : 0;
    const Matrix outer = tokens.col(a) * tokens.col(b).transpose();
    return (outer + outer.transpose() - 2 * same * Matrix::Identity(tokens.rows(), tokens.rows())) /
           std::sqrt(2 * d * (1 + same));
}

/// A few samples of T tokens: T = 1 and 2 have eigenvectors in closed form, T = 3 does not.
struct Attention : testing::TestWithParam<int> {
    static constexpr int dim = 23, samples = 40;
    const int tokens = GetParam(), pairs = tokens * (tokens + 1) / 2;
    ThreadPool pool{1};
    Matrix columns = linalg::gaussian_matrix(dim, samples* tokens, RandomStream(1, Purpose::tokens), pool);
    Matrix weights = linalg::gaussian_orthogonal_ensemble(dim, RandomStream(2, Purpose::weights), pool);
    std::unique_ptr<TokenSource> source = given_tokens(columns, tokens);
    Matrix scratch;
    TokenSource::Block block = source->block({0, samples}, scratch);
};
INSTANTIATE_TEST_SUITE_P(Tokens, Attention, testing::Values(1, 2, 3));

TEST_P(Attention, IndicesAreTracesWithTheSensingMatrices) {
    channels::Rows index(samples, pairs);
    Matrix projected;
    AttentionMap<double>(weights).indices(block, tokens, projected, index);
    for (int i = 0; i < samples; ++i) {
        const Matrix x = columns.middleCols(i * tokens, tokens);
        for (int a = 0; a < tokens; ++a) {
            for (int b = a; b < tokens; ++b) {
                const double expected = (weights * sensing_matrix(x, a, b)).trace();
                EXPECT_NEAR(index(i, channels::pair_index(a, b, tokens)), expected, 1e-12);
            }
        }
    }
}

/// Other blocks begin at other addresses: the order of the sums must not depend on them.
TEST_P(Attention, IndicesOfASampleHaveTheSameBitsInAnyBlock) {
    if (!linalg::LowerFactor<double>(weights).uses_own_kernel()) GTEST_SKIP() << "OpenBLAS multiplies here";
    channels::Rows whole(samples, pairs), part(7, pairs);
    Matrix projected;
    const AttentionMap<double> map(weights);
    map.indices(block, tokens, projected, whole);
    for (const std::size_t first : {1U, 4U, 33U}) {
        map.indices(source->block({first, first + 7}, scratch), tokens, projected, part);
        EXPECT_EQ(part, whole.middleRows(static_cast<Eigen::Index>(first), 7)) << first;
    }
}

TEST_P(Attention, TransposeIsTheSumOfSensingMatrices) {
    channels::Rows g = linalg::gaussian_matrix(samples, pairs, RandomStream(3, Purpose::tokens), pool);
    g.topRows(2).setZero();                     // samples without information,
    if (tokens > 1) g(2, 1) = g(3, 1) = 0;      // diagonal weights,
    if (tokens > 1) g(3, 0) = g(3, pairs - 1);  // and equal ones
    Matrix mixed, lower = Matrix::Zero(dim, dim), expected = lower;
    accumulate_transpose(block, tokens, g, mixed, lower);
    double trace = 0;
    for (int i = 0; i < samples; ++i) {
        const Matrix x = columns.middleCols(i * tokens, tokens);
        for (int a = 0; a < tokens; ++a) {
            for (int b = a; b < tokens; ++b) {
                expected += g(i, channels::pair_index(a, b, tokens)) * sensing_matrix(x, a, b);
            }
            trace += g(i, channels::pair_index(a, a, tokens));
        }
    }
    Matrix sum = lower.selfadjointView<Eigen::Lower>();
    sum = (sum - trace * Matrix::Identity(dim, dim)) / std::sqrt(double{dim});
    EXPECT_LT((sum - expected).norm(), 1e-13 * static_cast<double>(dim) * expected.norm());
}

/// Single precision rounds, in both directions; a factor lost in the conversion is off by 1.
TEST_P(Attention, InSinglePrecisionItIsTheSameToRoundOff) {
    const auto rounded = given_tokens(Eigen::MatrixXf(columns.cast<float>()), tokens);
    ASSERT_EQ(rounded->precision(), Precision::float_precision);
    linalg::FloatMatrix narrow, work;
    Matrix wide, projected;
    const auto single = rounded->float_block({0, samples}, narrow);
    const auto same = rounded->block({0, samples}, wide);
    channels::Rows index(samples, pairs), expected(samples, pairs);
    AttentionMap<float>(weights).indices(single, tokens, work, index);
    AttentionMap<double>(weights).indices(same, tokens, projected, expected);
    EXPECT_LT((index - expected).norm(), 1e-5 * expected.norm());
    EXPECT_GT((index - expected).norm(), 0);
    Matrix lower = Matrix::Ones(dim, dim), exact = lower;
    accumulate_transpose(single, tokens, index, work, lower);
    accumulate_transpose(same, tokens, index, projected, exact);
    EXPECT_LT((lower - exact).norm(), 1e-5 * exact.norm());
}

/// htilde has variance 2 Q: at d = 200 its spread over samples shows it within four standard errors.
TEST(AttentionStatistics, IndicesHaveTheVarianceOfTheTheory) {
    ThreadPool pool(2);
    const priors::Wishart prior(0.5);
    const Matrix weights = prior.sample(200, 5, 0, pool);
    const auto source =
        gaussian_tokens(2000, 2, 200, 5, TokenStorage::memory, Precision::double_precision, pool);
    const channels::Rows index = attention_indices(*source, {&weights, 1}, pool);
    const double second_moment = weights.squaredNorm() / 200;
    for (int p = 0; p < 3; ++p) {
        const double variance = index.col(p).squaredNorm() / 2000;
        EXPECT_NEAR(variance, 2 * second_moment, 4 * 2 * second_moment * std::sqrt(2.0 / 2000));
    }
}

/// Layer by layer, from the tokens as they are: layer l has columns l K to (l+1) K.
TEST(AttentionIndices, OfSeveralLayersStandSideBySide) {
    ThreadPool one(1), two(2);
    const auto source =
        gaussian_tokens(300, 3, 12, 5, TokenStorage::memory, Precision::double_precision, one);
    const Matrix weights[] = {priors::Wishart(0.5).sample(12, 5, 0, one),
                              priors::Wishart(2).sample(12, 5, 1, one)};
    const channels::Rows both = attention_indices(*source, weights, two);
    ASSERT_EQ(both.cols(), 12);
    for (const Eigen::Index l : {0, 1})
        EXPECT_EQ(both.middleCols(6 * l, 6), attention_indices(*source, {&weights[l], 1}, one)) << l;
    EXPECT_NE(both.leftCols(6), both.rightCols(6));
}

TEST(AttentionIndices, RejectWeightsThatDoNotFitTheTokens) {
    ThreadPool pool(1);
    const auto source = gaussian_tokens(3, 2, 12, 5, TokenStorage::memory, Precision::double_precision, pool);
    const Matrix small[] = {Matrix::Identity(12, 12), Matrix::Identity(5, 5)};
    test::expect_invalid([&] { attention_indices(*source, small, pool); },
                         "weights must be 12 x 12, got 5 x 5");
    test::expect_invalid([&] { attention_indices(*source, {}, pool); },
                         "weights must be at least one matrix, got none");
}

TEST(Tokens, StoredAndRegeneratedOnesHaveTheSameBits) {
    ThreadPool one(1), two(2);
    for (const Precision precision : {Precision::double_precision, Precision::float_precision}) {
        const auto stored = gaussian_tokens(300, 2, 17, 9, TokenStorage::memory, precision, two);
        const auto made = gaussian_tokens(300, 2, 17, 9, TokenStorage::regenerate, precision, one);
        Matrix a, b;
        EXPECT_EQ(Matrix(stored->block({7, 250}, a)), Matrix(made->block({7, 250}, b)));
    }
}

}  // namespace
}  // namespace bayesaim::data
