// SPDX-License-Identifier: MIT
#include "bayesaim/data/whitening.hpp"

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "support/expect_invalid.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;
using linalg::Vector;

Matrix all_tokens(const TokenSource& source) {
    Matrix scratch;
    return source.block({0, static_cast<std::size_t>(source.samples())}, scratch);
}

Matrix gaussian_columns(Eigen::Index d, Eigen::Index samples, std::uint64_t seed = 1) {
    ThreadPool pool;
    return all_tokens(
        *gaussian_tokens(samples, 2, d, seed, TokenStorage::memory, Precision::double_precision, pool));
}

/// Tokens with correlated entries and a mean.
Matrix correlated(Eigen::Index d, Eigen::Index samples) {
    Matrix x = gaussian_columns(d, samples);
    for (Eigen::Index i = 1; i < d; ++i) x.row(i) = 0.5 * x.row(i - 1) + std::sqrt(0.75) * x.row(i);
    x.colwise() += Vector::LinSpaced(d, -2, 3);
    return x;
}

class WhiteningTest : public testing::Test {
  protected:
    Whitening whitening_of_source(const TokenSource& source) {
        return whitening_of(token_statistics(source, pool_));
    }
    ThreadPool pool_;
};

TEST_F(WhiteningTest, MakesTheSecondMomentTheIdentity) {
    const auto source = given_tokens(correlated(60, 400), 2);
    const Whitening whitening = whitening_of_source(*source);
    const auto white = whitened(*source, whitening, pool_);
    EXPECT_EQ(white->samples(), 400);
    EXPECT_EQ(white->tokens(), 2);
    EXPECT_EQ(white->precision(), Precision::double_precision);
    const Matrix z = all_tokens(*white);
    EXPECT_LT(z.rowwise().mean().cwiseAbs().maxCoeff(), 1e-12);
    EXPECT_LT((z * z.transpose() / 800 - Matrix::Identity(60, 60)).cwiseAbs().maxCoeff(), 1e-10);
    // cond = ((1 + 0.5)/(1 - 0.5))^2 = 9 of the law; 800 tokens in 60 dimensions spread the eigenvalues
    EXPECT_GT(whitening.condition, 9);
    EXPECT_LT(whitening.condition, 30);
}

TEST_F(WhiteningTest, RootsAreSymmetricAndInverseToEachOther) {
    const auto source = given_tokens(correlated(60, 400), 2);
    const TokenStatistics statistics = token_statistics(*source, pool_);
    const Whitening found = whitening_of(statistics);
    EXPECT_EQ(found.root, found.root.transpose());
    EXPECT_EQ(found.inverse_root, found.inverse_root.transpose());
    EXPECT_LT((found.root * found.root - statistics.covariance).norm(), 1e-11);
    EXPECT_LT((found.root * found.inverse_root - Matrix::Identity(60, 60)).norm(), 1e-11);
    const Matrix x = all_tokens(*source), z = all_tokens(*whitened(*source, found, pool_)),
                 back = (found.root * z).colwise() + found.mean;
    EXPECT_LT((back - x).cwiseAbs().maxCoeff(), 1e-11);
}

TEST_F(WhiteningTest, WeightsGiveTheSameFormOnBothSides) {
    const auto source = given_tokens(correlated(20, 200), 2);
    const Whitening whitening = whitening_of_source(*source),
                    none = centring_of(token_statistics(*source, pool_));
    const Matrix s = Matrix::Random(20, 20), white = whitened_weights(s, whitening, whitening);
    const Matrix x = all_tokens(*source).colwise() - whitening.mean,
                 z = all_tokens(*whitened(*source, whitening, pool_));
    EXPECT_NEAR(z.col(0).dot(white * z.col(1)), x.col(0).dot(s * x.col(1)), 1e-10);
    EXPECT_LT((unwhitened_weights(white, whitening, whitening) - s).norm(), 1e-11);
    EXPECT_EQ(whitened_weights(s, none, none), s);
    EXPECT_EQ(unwhitened_weights(s, none, none), s);
    EXPECT_LT((whitened_weights(s, none, whitening) - s * whitening.root).norm(), 1e-11);
    test::expect_invalid([&] { whitened_weights(s.topRows(3), whitening, whitening); },
                         "weights must be 20 x 20, as the whitening, got 3 x 20");
}

TEST_F(WhiteningTest, CentringSubtractsTheMeanOnly) {
    const auto source = given_tokens(correlated(12, 20), 2);  // too few for a whitening
    const Whitening centring = centring_of(token_statistics(*source, pool_));
    EXPECT_TRUE(centring.identity());
    const Matrix x = all_tokens(*source), z = all_tokens(*whitened(*source, centring, pool_));
    EXPECT_EQ(z, x.colwise() - centring.mean);
    EXPECT_EQ(centring.condition, 1);
}

TEST_F(WhiteningTest, SinglePrecisionIsKept) {
    const auto source =
        gaussian_tokens(200, 2, 20, 1, TokenStorage::regenerate, Precision::float_precision, pool_);
    const auto white = whitened(*source, whitening_of_source(*source), pool_);
    EXPECT_EQ(white->precision(), Precision::float_precision);
    const Matrix z = all_tokens(*white);
    EXPECT_LT((z * z.transpose() / 400 - Matrix::Identity(20, 20)).cwiseAbs().maxCoeff(), 1e-6);
    EXPECT_EQ(z, z.cast<float>().cast<double>());
    Vector lengths;
    EXPECT_EQ(length_normalised(*source, lengths, pool_)->precision(), Precision::float_precision);
}

TEST_F(WhiteningTest, TooFewTokensAreRefused) {
    const auto few = given_tokens(gaussian_columns(20, 99), 2),
               enough = given_tokens(gaussian_columns(20, 100), 2);
    test::expect_invalid([&] { whitening_of_source(*few); },
                         "number of tokens must be at least 10 d = 200 to whiten them, got 198 (d = 20)");
    EXPECT_NO_THROW(whitening_of_source(*enough));
}

TEST_F(WhiteningTest, TokensThatDoNotSpanTheSpaceAreRefused) {
    Matrix x = correlated(20, 200);
    x.row(3) = 2 * x.row(5) + x.row(7);
    x.row(11).setConstant(4);
    test::expect_invalid([&] { whitening_of_source(*given_tokens(x, 2)); },
                         "covariance of the tokens must be invertible, got 2 of d = 20 directions that the "
                         "tokens do not span");
    test::expect_invalid(
        [&] { whitening_of_source(*given_tokens(Matrix(x.cast<float>().cast<double>()), 2)); },
        "got 2 of d = 20 directions");
    test::expect_invalid([&] { whitening_of_source(*given_tokens(Matrix(Matrix::Ones(20, 400)), 2)); },
                         "got 20 of d = 20 directions");
}

TEST_F(WhiteningTest, OfAnotherDimensionIsRefused) {
    const Whitening whitening = whitening_of_source(*given_tokens(gaussian_columns(20, 100), 2));
    test::expect_invalid([&] { whitened(*given_tokens(gaussian_columns(10, 100), 2), whitening, pool_); },
                         "mean of the whitening must be of size 10, got 20");
}

TEST_F(WhiteningTest, SameBitsForAnyNumberOfThreads) {
    ThreadPool three(3);
    const auto source = given_tokens(correlated(37, 403), 2);
    const Whitening whitening = whitening_of_source(*source);
    const Matrix one_thread = all_tokens(*whitened(*source, whitening, pool_));
    EXPECT_EQ(all_tokens(*whitened(*source, whitening, three)), one_thread);
    Vector one_length, three_lengths;
    const Matrix normalised = all_tokens(*length_normalised(*source, one_length, pool_));
    EXPECT_EQ(all_tokens(*length_normalised(*source, three_lengths, three)), normalised);
    EXPECT_EQ(one_length, three_lengths);
}

TEST(LengthNormalised, TokensHaveLengthRootOfD) {
    ThreadPool pool;
    const auto source = given_tokens(correlated(30, 70), 2);
    Vector s;
    const Matrix x = all_tokens(*source), u = all_tokens(*length_normalised(*source, s, pool));
    ASSERT_EQ(s.size(), 140);
    for (Eigen::Index i = 0; i < 140; ++i) {
        EXPECT_NEAR(u.col(i).squaredNorm(), 30, 1e-12 * 30);
        EXPECT_LT((u.col(i) * std::sqrt(s[i]) - x.col(i)).norm(), 1e-12);
    }
}

TEST(LengthNormalised, RefusesTheFirstTokenThatIsZero) {
    ThreadPool pool(3);
    Matrix x = correlated(30, 70);
    x.col(2 * 17 + 1).setZero();
    x.col(2 * 50).setZero();
    Vector s;
    test::expect_invalid([&] { length_normalised(*given_tokens(x, 2), s, pool); },
                         "token 1 of sample 17 must be of positive length, got 0");
}

TEST(TokenSubset, ShowsTheSamplesInTheirOrder) {
    ThreadPool pool;
    for (const TokenStorage storage : {TokenStorage::memory, TokenStorage::regenerate}) {
        const std::shared_ptr<const TokenSource> source =
            gaussian_tokens(50, 3, 7, 2, storage, Precision::float_precision, pool);
        const std::array<Eigen::Index, 6> samples = {4, 5, 6, 40, 2, 2};
        const auto subset = token_subset(source, samples);
        EXPECT_EQ(subset->samples(), 6);
        EXPECT_EQ(subset->tokens(), 3);
        EXPECT_EQ(subset->dim(), 7);
        EXPECT_EQ(subset->precision(), Precision::float_precision);
        const Matrix x = all_tokens(*source), part = all_tokens(*subset);
        for (std::size_t i = 0; i < samples.size(); ++i)
            EXPECT_EQ(part.middleCols(static_cast<Eigen::Index>(3 * i), 3), x.middleCols(3 * samples[i], 3))
                << i;
        Matrix scratch;
        EXPECT_EQ(subset->block({2, 5}, scratch), part.middleCols(6, 9));
        linalg::FloatMatrix float_scratch;
        EXPECT_EQ(subset->float_block({2, 5}, float_scratch), part.middleCols(6, 9).cast<float>());
    }
}

TEST(TokenSubset, OfNeighboursIsAViewAndKeepsTheSourceAlive) {
    std::shared_ptr<const TokenSource> source = given_tokens(gaussian_columns(5, 50), 2);
    Matrix scratch;
    const double* start = source->block({0, 50}, scratch).data();
    std::vector<Eigen::Index> samples(20);
    std::iota(samples.begin(), samples.end(), 10);
    const auto subset = token_subset(source, samples);
    source.reset();
    EXPECT_EQ(subset->block({3, 9}, scratch).data(), start + 13 * 2 * 5);
}

TEST(TokenSubset, RefusesSamplesThatTheSourceDoesNotHave) {
    const std::shared_ptr<const TokenSource> source = given_tokens(gaussian_columns(5, 50), 2);
    const std::array<Eigen::Index, 2> high = {3, 50}, low = {-1, 3};
    test::expect_invalid([&] { token_subset(source, high); },
                         "sample of a subset must be between 0 and 49, got 50");
    test::expect_invalid([&] { token_subset(source, low); }, "got -1");
    test::expect_invalid([&] { token_subset(source, {}); }, "samples must be at least 1, got 0");
}

}  // namespace
}  // namespace bayesaim::data
