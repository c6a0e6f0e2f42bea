// SPDX-License-Identifier: MIT
#include "bayesaim/channels/unequal_lengths.hpp"

#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/linalg/random_matrix.hpp"

namespace bayesaim::channels {
namespace {

using linalg::Matrix;

constexpr Eigen::Index dim = 9, samples = 6;

Matrix normal(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
    ThreadPool pool;
    return linalg::gaussian_matrix(rows, columns, RandomStream(seed, Purpose::noise), pool);
}

std::shared_ptr<const Channel> make(const char* name, Attention attention, double label_noise = 0) {
    ChannelOptions options;
    options.tokens = 3;
    options.attention = attention;
    options.label_noise = label_noise;
    if (attention == Attention::cross) options.key_tokens = 4;
    return make_channel(name, options);
}

struct Sample {
    Rows outputs, omega;
    double trace;
};

/// Outputs of tokens of unequal lengths with their lengths, and the indices of the tokens at one length.
Sample make_sample(const Channel& channel, bool unequal) {
    const Geometry geometry = channel.geometry();
    const bool separate = geometry.separate_keys();
    Matrix x = normal(dim, samples * geometry.queries, 1), z = normal(dim, samples * geometry.keys, 2);
    Matrix s = normal(dim, dim, 3);
    if (geometry.symmetric()) s = (s + s.transpose()).eval();
    const auto lengths_of = [&](Matrix& tokens, std::uint64_t seed) {
        const Matrix random = normal(1, tokens.cols(), seed);
        Rows lengths(samples, tokens.cols() / samples);
        for (Eigen::Index k = 0; k < tokens.cols(); ++k) {
            const double length = unequal ? std::exp(0.5 * random(0, k)) : 1;
            tokens.col(k) *= std::sqrt(length * dim) / tokens.col(k).norm();
            lengths(k / lengths.cols(), k % lengths.cols()) = length;
        }
        return lengths;
    };
    const Rows of_x = lengths_of(x, 4), of_z = lengths_of(z, 5);
    ThreadPool pool;
    const auto indices = [&](const Matrix& queries, const Matrix& keys) {
        const auto q = data::given_tokens(queries, geometry.queries),
                   k = data::given_tokens(keys, geometry.keys);
        return data::attention_indices(geometry, *q, separate ? *k : *q, std::vector<Matrix>{s}, pool);
    };
    Sample result;
    Rows outputs(samples, geometry.outputs());
    channel.draw(indices(x, z), 0, 0, outputs);
    result.outputs.resize(samples, outputs.cols() + of_x.cols() + (separate ? of_z.cols() : 0));
    if (separate) {
        result.outputs << outputs, of_x, of_z;
    } else {
        result.outputs << outputs, of_x;
    }
    for (Eigen::Index k = 0; k < x.cols(); ++k) x.col(k) *= std::sqrt(dim) / x.col(k).norm();
    for (Eigen::Index k = 0; k < z.cols(); ++k) z.col(k) *= std::sqrt(dim) / z.col(k).norm();
    result.omega = indices(x, z);
    result.trace = s.trace() / std::sqrt(static_cast<double>(dim));
    return result;
}

/// The score vanishes at the indices of the true weights, which a wrong factor or offset would not do.
TEST(UnequalLengths, ScoreVanishesAtTheTruth) {
    for (const char* name : {"softmax", "linear"}) {
        for (const Attention attention : {Attention::tied, Attention::cross, Attention::masked}) {
            const auto inside = make(name, attention);
            const Sample sample = make_sample(*inside, true);
            const UnequalLengths channel(inside, sample.trace);
            Rows g(samples, inside->pairs());
            Eigen::VectorXd no_log_z(0);
            channel.score(sample.outputs, sample.omega, linalg::scalar_overlap(1), g, no_log_z);
            EXPECT_LT(g.cwiseAbs().maxCoeff(), 1e-10) << name << " " << to_string(attention);
            if (attention == Attention::tied) {
                UnequalLengths(inside, 0).score(sample.outputs, sample.omega, linalg::scalar_overlap(1), g,
                                                no_log_z);
                EXPECT_GT(g.cwiseAbs().maxCoeff(), 0.1) << "the trace matters";
            }
        }
    }
}

TEST(UnequalLengths, EqualLengthsAreTheChannelInside) {
    for (const char* name : {"softmax", "linear"}) {
        for (const Attention attention : {Attention::tied, Attention::cross, Attention::masked}) {
            const auto inside = make(name, attention, std::string(name) == "linear" ? 0.3 : 0);
            const Sample sample = make_sample(*inside, false);
            const Rows omega = sample.omega + Rows(normal(samples, inside->pairs(), 6));
            Rows g(samples, inside->pairs()), expected = g;
            const auto variance = linalg::scalar_overlap(0.7);
            const Overlap slope =
                UnequalLengths(inside, 5).score_with_slope(sample.outputs, omega, variance, g);
            const Overlap expected_slope = inside->score_with_slope(
                sample.outputs.leftCols(inside->outputs()), omega, variance, expected);
            EXPECT_LT((g - expected).cwiseAbs().maxCoeff(), 1e-10) << name;
            EXPECT_NEAR(slope(0, 0), expected_slope(0, 0), 1e-9);
        }
    }
}

/// g is the gradient of log Z, and the slope that of g.
TEST(UnequalLengths, ScoreAndSlopeAreDerivatives) {
    for (const char* name : {"softmax", "linear"}) {
        const auto inside = make(name, Attention::tied, std::string(name) == "linear" ? 0.3 : 0);
        const Sample sample = make_sample(*inside, true);
        const UnequalLengths channel(inside, sample.trace);
        const auto variance = linalg::scalar_overlap(0.7);
        const Rows omega = (sample.omega + Rows(normal(samples, inside->pairs(), 6))).topRows(1),
                   outputs = sample.outputs.topRows(1);
        const auto score = [&](const Rows& at, double& log_z) {
            Rows g(1, inside->pairs());
            Eigen::VectorXd z(1);
            channel.score(outputs, at, variance, g, z);
            log_z = z[0];
            return g;
        };
        double middle = 0, above = 0, below = 0;
        const Rows g = score(omega, middle);
        const Eigen::MatrixXd slope = channel.score_slope(outputs, omega, variance);
        for (Eigen::Index p = 0; p < g.cols(); ++p) {
            Rows up = omega, down = omega;
            constexpr double step = 1e-5;
            up(0, p) += step;
            down(0, p) -= step;
            const Rows difference = (score(up, above) - score(down, below)) / (2 * step);
            EXPECT_NEAR(g(0, p), (above - below) / (2 * step), 1e-7);
            EXPECT_LT((difference.transpose() - slope.col(p)).cwiseAbs().maxCoeff(), 1e-7);
        }
    }
}

}  // namespace
}  // namespace bayesaim::channels
