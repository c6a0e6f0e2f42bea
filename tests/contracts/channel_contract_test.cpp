// SPDX-License-Identifier: MIT
// What every channel of the table promises, at one and several tokens.
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/core/random.hpp"

namespace bayesaim::channels {
namespace {

struct Case {
    std::string channel;
    ChannelOptions options;
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        return out << c.channel << " T=" << c.options.tokens << " beta=" << c.options.beta
                   << " noise=" << c.options.label_noise;
    }
};

/// Every row of the table; the printed hardmax score is wrong on purpose and breaks the contract (see its own
/// tests).
std::vector<Case> cases() {
    std::vector<Case> result;
    for (const ChannelEntry& entry : channel_table()) {
        if (entry.name == "hardmax-as-printed") continue;
        if (entry.name == "linear") {
            result.push_back({entry.name, {.tokens = 1}});
            result.push_back({entry.name, {.tokens = 3, .label_noise = 0.3}});
        } else if (entry.name == "softmax") {
            for (const double beta : {1e-3, 1.0, 1e3})
                result.push_back({entry.name, {.tokens = 3, .beta = beta}});
        }
        result.push_back({entry.name, {.tokens = 2}});
        result.push_back({entry.name, {.tokens = 3}});
    }
    return result;
}

class ChannelContract : public testing::TestWithParam<Case> {
  protected:
    static constexpr double overlap = 0.9, error = 0.35;

    void SetUp() override { channel = make_channel(GetParam().channel, GetParam().options); }

    /// n samples of (omega, htilde, y) at the order parameters above.
    void sample(Eigen::Index n) {
        const int pairs = channel->pairs(), tokens = channel->tokens();
        omega.resize(n, pairs);
        index.resize(n, pairs);
        outputs.resize(n, tokens * tokens);
        g.resize(n, pairs);
        log_z.resize(n);
        Eigen::VectorXd z(2 * pairs);
        for (Eigen::Index i = 0; i < n; ++i) {
            RandomStream(11, Purpose::tokens, static_cast<std::uint64_t>(i))
                .fill_normal({z.data(), static_cast<std::size_t>(z.size())});
            omega.row(i) = std::sqrt(2 * overlap) * z.head(pairs);
            index.row(i) = omega.row(i) + std::sqrt(2 * error) * z.tail(pairs).transpose();
        }
        channel->draw(index, 12, 0, outputs);
    }

    std::unique_ptr<Channel> channel;
    const Overlap variance = linalg::scalar_overlap(2 * error);
    const OrderParameters parameters{linalg::scalar_overlap(overlap), linalg::scalar_overlap(error)};
    Rows omega, index, outputs, g;
    Eigen::VectorXd log_z;
};

TEST_P(ChannelContract, ScoreIsTheGradientOfLogZ) {
    sample(5);
    channel->score(outputs, omega, variance, g, log_z);
    const double step = 1e-3;
    for (int p = 0; p < channel->pairs(); ++p) {
        Eigen::VectorXd difference = Eigen::VectorXd::Zero(5);
        const double shift[] = {-2, -1, 1, 2}, weight[] = {1, -8, 8, -1};
        for (int k = 0; k < 4; ++k) {
            Rows moved = omega, ignored = g;
            Eigen::VectorXd value(5);
            moved.col(p).array() += shift[k] * step;
            channel->score(outputs, moved, variance, ignored, value);
            difference += weight[k] / (12 * step) * value;
        }
        for (Eigen::Index i = 0; i < 5; ++i) {
            const double finite_difference =
                1e-9 * std::max(1.0, std::abs(g(i, p))) + 1e-13 * std::abs(log_z[i]) / step;
            EXPECT_NEAR(g(i, p), difference[i], finite_difference) << "pair " << p;
        }
    }
}

TEST_P(ChannelContract, ScoreSlopeIsTheGradientOfTheScore) {
    sample(3);
    channel->score(outputs, omega, variance, g, log_z);
    const double step = 1e-3;
    for (Eigen::Index i = 0; i < 3; ++i) {
        const Eigen::MatrixXd slope = channel->score_slope(outputs.row(i), omega.row(i), variance);
        EXPECT_TRUE(slope.isApprox(slope.transpose(), 1e-9));
        for (int p = 0; p < channel->pairs(); ++p) {
            Rows up = omega, down = omega, g_up = g, g_down = g;
            up(i, p) += step;
            down(i, p) -= step;
            channel->score(outputs, up, variance, g_up, log_z);
            channel->score(outputs, down, variance, g_down, log_z);
            const Eigen::VectorXd difference = (g_up.row(i) - g_down.row(i)).transpose() / (2 * step);
            EXPECT_LT((slope.col(p) - difference).norm(), 1e-5)
                << "pair " << p;  // second-order finite difference
        }
    }
}

/// E[g] = 0 and E[g g^T] = -E[dg/domega], within four standard errors.
TEST_P(ChannelContract, ScoreHasZeroMeanAndItsCovarianceIsMinusItsSlope) {
    const Eigen::Index n = 3000;
    sample(n);
    channel->score(outputs, omega, variance, g, log_z);
    const int pairs = channel->pairs();
    for (int p = 0; p < pairs; ++p) {
        const double mean = g.col(p).mean(), deviation = std::sqrt((g.col(p).array() - mean).square().mean());
        EXPECT_LT(std::abs(mean), 4 * deviation / std::sqrt(n) + 1e-12);
    }
    const Eigen::Index few = channel->sampled() ? 150 : 1000;  // slopes by differences are slow
    Eigen::MatrixXd sum = Eigen::MatrixXd::Zero(pairs, pairs), squares = sum;
    for (Eigen::Index i = 0; i < few; ++i) {
        const Eigen::MatrixXd value =
            g.row(i).transpose() * g.row(i) + channel->score_slope(outputs.row(i), omega.row(i), variance);
        sum += value;
        squares += value.cwiseProduct(value);
    }
    const double count = static_cast<double>(few);
    for (int p = 0; p < pairs; ++p) {
        for (int q = 0; q <= p; ++q) {
            const double standard_error = std::sqrt(squares(p, q) / count / count);
            EXPECT_LT(std::abs(sum(p, q) / count), 4 * standard_error + 1e-9) << p << " " << q;
        }
    }
}

TEST_P(ChannelContract, SampledScorePowerIsTheOneOfStateEvolution) {
    const Eigen::Index n = 3000;
    sample(n);
    channel->score(outputs, omega, variance, g, log_z);
    const Eigen::ArrayXd power = g.rowwise().squaredNorm();
    const double mean = power.mean(),
                 standard_error = std::sqrt((power - mean).square().mean() / static_cast<double>(n));
    const ScorePower expected = channel->score_power(parameters, {.shifts = 8, .points = 32});
    const double allowance = 4 * std::hypot(standard_error, expected.relative_error * mean);
    EXPECT_NEAR(mean, expected.value(0, 0), allowance);
    EXPECT_LT(allowance, 0.15 * mean) << "the test has no power";
}

/// Permuting the tokens permutes indices, outputs and score.
TEST_P(ChannelContract, PermutedTokensPermuteTheScore) {
    sample(20);
    const int tokens = channel->tokens();
    channel->score(outputs, omega, variance, g, log_z);
    std::vector<int> permutation(static_cast<std::size_t>(tokens));
    std::iota(permutation.begin(), permutation.end(), 0);
    std::rotate(permutation.begin(), permutation.begin() + tokens / 2, permutation.end());
    const auto image = [&](int a) { return permutation[static_cast<std::size_t>(a)]; };
    Rows moved_omega = omega, moved_outputs = outputs, moved_g = g;
    Eigen::VectorXd moved_log_z = log_z;
    for (int a = 0; a < tokens; ++a) {
        for (int b = 0; b < tokens; ++b) {
            moved_outputs.col(image(a) * tokens + image(b)) = outputs.col(a * tokens + b);
            const int to = pair_index(std::min(image(a), image(b)), std::max(image(a), image(b)), tokens);
            moved_omega.col(to) = omega.col(pair_index(std::min(a, b), std::max(a, b), tokens));
        }
    }
    channel->score(moved_outputs, moved_omega, variance, moved_g, moved_log_z);
    for (int a = 0; a < tokens; ++a) {
        for (int b = a; b < tokens; ++b) {
            const int to = pair_index(std::min(image(a), image(b)), std::max(image(a), image(b)), tokens);
            EXPECT_LT((moved_g.col(to) - g.col(pair_index(a, b, tokens))).norm(), 1e-8 * (1 + g.norm()));
        }
    }
    EXPECT_LT((moved_log_z - log_z).cwiseAbs().maxCoeff(), 1e-9 * (1 + log_z.cwiseAbs().maxCoeff()));
}

/// dI_out/dq = F at fixed Q: free entropy and state evolution belong together.
TEST_P(ChannelContract, ScorePowerIsTheDerivativeOfTheInformation) {
    const Integration integration{.shifts = 4, .points = 32};
    const auto at = [&](double q) {
        return *channel->information({linalg::scalar_overlap(q), linalg::scalar_overlap(overlap + error - q)},
                                     integration);
    };
    const double step = 1e-3;
    const double derivative =
        (8 * (at(overlap + step) - at(overlap - step)) - (at(overlap + 2 * step) - at(overlap - 2 * step))) /
        (12 * step);
    const double expected = channel->score_power(parameters, integration).value(0, 0);
    // Sampled at common points: both converge, but not point by point.
    EXPECT_NEAR(derivative / expected, 1, channel->sampled() ? 0.1 : 1e-7);
}

TEST_P(ChannelContract, GeneralizationErrorGrowsWithTheErrorAndPlugInIsWorse) {
    double last = 0;
    for (const double e : {0.01, 0.1, 0.5}) {
        const auto result =
            channel->generalization({linalg::scalar_overlap(1.25 - e), linalg::scalar_overlap(e)}, {});
        EXPECT_GT(result.bayes_optimal, last);
        EXPECT_GE(result.plug_in * (1 + 4 * result.relative_error + 1e-9), result.bayes_optimal);
        last = result.bayes_optimal;
    }
}

/// Bayes-optimal prediction: half the mean squared distance of two outputs that share omega, here by plain
/// sampling.
TEST_P(ChannelContract, GeneralizationErrorIsWhatSamplesShow) {
    if (GetParam().options.label_noise > 0) return;  // the error is that of the noiseless output
    const Eigen::Index n = 20000;
    sample(n);
    Rows other_index = omega, other_outputs = outputs;
    Eigen::VectorXd z(channel->pairs());
    for (Eigen::Index i = 0; i < n; ++i) {
        RandomStream(13, Purpose::tokens, static_cast<std::uint64_t>(i))
            .fill_normal({z.data(), static_cast<std::size_t>(z.size())});
        other_index.row(i) += std::sqrt(2 * error) * z.transpose();
    }
    channel->draw(other_index, 12, 0, other_outputs);
    const Rows a = output_values(*channel, outputs), b = output_values(*channel, other_outputs);
    const Eigen::ArrayXd half_distance = 0.5 * (a - b).rowwise().squaredNorm();
    const double mean = half_distance.mean();
    const double standard_error = std::sqrt((half_distance - mean).square().mean() / static_cast<double>(n));
    const auto expected = channel->generalization(parameters, {});
    EXPECT_NEAR(mean, expected.bayes_optimal, 4 * std::hypot(standard_error, expected.relative_error * mean));
}

/// The error of predict() on samples is the Bayes-optimal one, and with V = 0 that of the plug-in rule.
TEST_P(ChannelContract, PredictionsHaveTheGeneralizationErrorOfTheory) {
    const Eigen::Index n = 20000;
    sample(n);
    Rows truth = outputs, prediction = outputs;
    const Overlap none = linalg::scalar_overlap(0);
    channel->predict(index, none, truth);
    if (GetParam().options.label_noise == 0) {
        EXPECT_EQ(truth, output_values(*channel, outputs));
    }
    const auto expected = channel->generalization(parameters, {});
    const auto check = [&](const Overlap& v, double value) {
        channel->predict(omega, v, prediction);
        const Eigen::ArrayXd squares = (prediction - truth).rowwise().squaredNorm();
        const double mean = squares.mean();
        const double standard_error = std::sqrt((squares - mean).square().mean() / static_cast<double>(n));
        EXPECT_NEAR(mean, value, 4 * std::hypot(standard_error, expected.relative_error * mean));
    };
    check(variance, expected.bayes_optimal);
    check(none, expected.plug_in);
}

/// No other prediction from omega is better: the error of predict() does not correlate with omega.
TEST_P(ChannelContract, PredictionErrorsAreUncorrelatedWithWhatIsKnown) {
    const Eigen::Index n = 5000;
    sample(n);
    Rows truth = outputs, prediction = outputs;
    channel->predict(index, linalg::scalar_overlap(0), truth);
    channel->predict(omega, variance, prediction);
    for (Eigen::Index column = 0; column < truth.cols(); ++column) {
        const Eigen::ArrayXd miss = (truth - prediction).col(column);
        for (int p = 0; p < channel->pairs(); ++p) {
            const Eigen::ArrayXd product = miss * omega.col(p).array();
            const double standard_error = std::sqrt(product.square().sum()) / static_cast<double>(n);
            EXPECT_LT(std::abs(product.mean()), 4.5 * standard_error + 1e-12);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Table, ChannelContract, testing::ValuesIn(cases()));

TEST(ChannelTable, UnknownNameListsTheKnownOnes) {
    try {
        make_channel("sparsemax", {});
        FAIL();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "channel must be one of linear, softmax, hardmax, hardmax-as-printed, got 'sparsemax'");
    }
}

}  // namespace
}  // namespace bayesaim::channels
