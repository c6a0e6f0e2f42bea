// SPDX-License-Identifier: MIT
#include "bayesaim/channels/rows/row_channel.hpp"

#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/hardmax/universal.hpp"
#include "bayesaim/channels/rows/row_posterior.hpp"
#include "bayesaim/numerics/gaussian.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::channels {
namespace {

constexpr double pi = std::numbers::pi;

Geometry cross(int queries, int keys) { return {Attention::cross, queries, keys}; }
Geometry masked(int tokens) { return {Attention::masked, tokens, tokens}; }

double power(const Channel& channel, double overlap, double total = 1) {
    return channel.score_power({linalg::scalar_overlap(overlap), linalg::scalar_overlap(total - overlap)}, {})
        .value(0, 0);
}

TEST(Geometry, PairsAreNumberedRowByRow) {
    for (const Geometry& geometry : {Geometry{Attention::tied, 4, 4}, cross(2, 3), masked(4)}) {
        int next = 0;
        for (int a = 0; a < geometry.queries; ++a) {
            for (int b = geometry.symmetric() ? a : 0; b < geometry.keys; ++b) {
                if (!geometry.sees(a, b)) continue;
                EXPECT_EQ(geometry.pair(a, b), next++);
            }
        }
        EXPECT_EQ(next, geometry.pairs());
    }
    EXPECT_EQ((Geometry{Attention::tied, 4, 4}.pair(3, 1)), (Geometry{Attention::tied, 4, 4}.pair(1, 3)));
}

/// Z by a plain Riemann sum over h_j, g by differences of log Z: slow and obvious.
double plain_log_z(const std::vector<double>& omega, std::size_t label, const std::vector<double>& variance) {
    const double deviation = std::sqrt(variance[label]), step = 0.002 * deviation;
    double sum = 0;
    for (double h = omega[label] - 12 * deviation; h <= omega[label] + 12 * deviation; h += step) {
        double product = numerics::normal_density((h - omega[label]) / deviation) / deviation;
        for (std::size_t b = 0; b < omega.size(); ++b) {
            if (b != label) product *= numerics::normal_cdf((h - omega[b]) / std::sqrt(variance[b]));
        }
        sum += step * product;
    }
    return std::log(sum);
}

TEST(RowPosterior, IsTheIntegralOverTheWinner) {
    RowPosterior posterior;
    for (const std::vector<double>& omega : {std::vector{0.3, -0.2},
                                             {0.3, -0.2, 0.9},
                                             {2.0, 0.1, -1.0, 0.5},
                                             {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.5}}) {
        for (const auto& [first, others] :
             {std::pair(0.05, 0.05), {0.7, 0.7}, {4.0, 4.0}, {0.3, 1.0}, {2.0, 0.5}}) {
            std::vector<double> variance(omega.size(), others);
            variance[1] = first;  // the diagonal entry of a causal row has a variance of its own
            for (std::size_t label = 0; label < omega.size(); ++label) {
                std::vector<double> g(omega.size());
                const double log_z = posterior.evaluate(omega, label, variance, g);
                const double expected = plain_log_z(omega, label, variance);
                if (expected < -30) continue;  // the plain sum underflows
                EXPECT_NEAR(log_z, expected, 1e-9) << label << " " << first << " " << others;
                for (std::size_t b = 0; b < omega.size(); ++b) {
                    auto up = omega, down = omega;
                    const double step = 1e-3 * std::sqrt(variance[b]);
                    up[b] += step;
                    down[b] -= step;
                    const double slope =
                        (plain_log_z(up, label, variance) - plain_log_z(down, label, variance)) / (2 * step);
                    EXPECT_NEAR(g[b], slope, 1e-4 * (1 + std::abs(slope))) << label << " " << b;
                }
            }
        }
    }
}

/// Three entries: Z = Phi2(k2, k3; 1/2), also where it underflows.
TEST(RowPosterior, ThreeEntriesAreABivariateDistribution) {
    RowPosterior posterior;
    for (const auto& [second, third] : {std::pair(0.5, -0.3), {3.0, 2.0}, {40.0, 1.0}, {-5.0, 60.0}}) {
        const std::vector<double> omega{0, second, third};
        std::vector<double> g(3);
        const double log_z = posterior.evaluate(omega, 0, std::vector<double>(3, 1), g),
                     scale = std::numbers::sqrt2;
        const auto exact = numerics::bivariate_normal_cdf(-second / scale, -third / scale, 0.5);
        EXPECT_LE(test::relative_error(log_z, exact.log_probability), 1e-10);
        const double largest = std::max(exact.ratio1, exact.ratio2) / scale;
        EXPECT_NEAR(g[1], -exact.ratio1 / scale, 1e-10 * largest);
        EXPECT_NEAR(g[2], -exact.ratio2 / scale, 1e-10 * largest);
        EXPECT_NEAR(g[0], -g[1] - g[2], 1e-12 * largest);
    }
}

/// S_anti known: h_12 = h_21, and the rows are those of tied attention.
TEST(RowHardmax, SelfAttentionWithoutAntisymmetricErrorIsTied) {
    const RowHardmax self({Attention::self, 2, 2});
    const Hardmax tied(2);
    Overlap error = linalg::zero_overlap(2), overlap = linalg::zero_overlap(2);
    error.diagonal() << 0.35, 1e-9;
    Rows omega(1, 6), g(1, 6), g_tied(1, 3), outputs(1, 4);
    omega << 0.3, -0.8, 0.1, 0, 0, 0;
    Eigen::VectorXd log_z(1), log_z_tied(1);
    for (int label = 0; label < 4; ++label) {
        outputs << label % 2, 1 - label % 2, label / 2, 1 - label / 2;
        self.score(outputs, omega, 2 * error, g, log_z);
        tied.score(outputs, omega.leftCols(3), linalg::scalar_overlap(0.7), g_tied, log_z_tied);
        EXPECT_NEAR(log_z[0], log_z_tied[0], 1e-7);
        EXPECT_LE((g.leftCols(3) - g_tied).norm(), 1e-6) << label;
    }
    overlap.diagonal() << 0.65, 1e-12;
    EXPECT_NEAR(
        self.score_power({overlap, error}, {}).value(0, 0),
        tied.score_power({linalg::scalar_overlap(0.65), linalg::scalar_overlap(0.35)}, {}).value(0, 0), 1e-6);
}

TEST(RowPosterior, LabelsHaveTotalProbabilityOne) {
    RowPosterior posterior;
    const std::vector<double> omega{0.4, -1.1, 0.2, 2.0, -0.3};
    std::vector<double> g(omega.size());
    double total = 0;
    for (std::size_t label = 0; label < omega.size(); ++label)
        total += std::exp(posterior.evaluate(omega, label, std::vector{0.8, 0.8, 0.5, 0.8, 0.8}, g));
    EXPECT_NEAR(total, 1, 1e-12);
}

/// References computed independently (Python: trapezoidal sums in one and two dimensions, Sobol points for four).
TEST(RowHardmax, ScorePowerIsThatOfTheReferences) {
    const RowHardmax two(cross(2, 2)), three(cross(3, 3)), four(cross(4, 4));
    EXPECT_NEAR(power(two, 0), 4 / pi, 1e-11);
    EXPECT_NEAR(power(two, 0.5), 1.922151832300, 1e-11);
    EXPECT_NEAR(power(two, 0.99), 14.396955102594, 1e-10);
    EXPECT_NEAR(power(two, 0.9999), 144.1278359639, 1e-8);
    EXPECT_NEAR(power(three, 0), 81 / (8 * pi), 1e-11);
    EXPECT_NEAR(power(three, 0.2), 3.647392278, 1e-8);
    EXPECT_NEAR(power(three, 0.5), 4.678746607, 1e-8);
    EXPECT_NEAR(power(three, 0.9), 10.488502836, 1e-8);
    EXPECT_NEAR(power(three, 0.99), 32.739529398, 1e-7);
    EXPECT_NEAR(power(four, 0), 5.651272846, 1e-8);
    EXPECT_NEAR(power(four, 0.5), 7.9895, 4e-4);
    EXPECT_NEAR(power(RowHardmax(masked(5)), 0.5) / 5, 7.9895 / 4, 2e-4);  // rows of four
}

/// The stored functions of every length: the entropy of uniform labels, and the limit of small errors.
TEST(RowHardmax, StoredFunctionsObeyTheirSumRules) {
    for (int length = 2; length <= hardmax_universal::longest_row; ++length) {
        const double tolerance = 10 * hardmax_universal::row_error(length);
        EXPECT_NEAR(hardmax_universal::row_information(length, 1), -std::log(length), tolerance);
        EXPECT_NEAR(hardmax_universal::row_information(length, 0), 0, 1e-14);
        double largest = 0;  // mean of the largest of M normals
        for (double x = -9; x < 9; x += 0.01)
            largest += 0.01 * length * x * numerics::normal_density(x) *
                       std::pow(numerics::normal_cdf(x), length - 1);
        constexpr double tie = 1.806394571138;  // int phi^2/(Phi Phi-)
        EXPECT_NEAR(hardmax_universal::row_power(length, 1), length * largest * largest / (length - 1),
                    tolerance);
        EXPECT_NEAR(hardmax_universal::row_power(length, 0), largest * tie / std::numbers::sqrt2, tolerance);
    }
}

/// At E = 0.4958692815 and 0.43880281417, T = 2 and 3. Softmax: 4 E Var(sigmoid(beta u) | u0) and its plug-in, u0 ~
/// N(0, 2q), u ~ N(u0, 2V), by a double trapezoidal sum in Python.
TEST(RowChannels, GeneralizationErrorsAreThoseOfTheReferences) {
    const auto at = [](const Channel& channel, double error) {
        return channel.generalization({linalg::scalar_overlap(1 - error), linalg::scalar_overlap(error)}, {});
    };
    const double error = 0.4958692815;
    const auto softmax = at(RowSoftmax(cross(2, 2)), error), cold = at(RowSoftmax(cross(2, 2), 5), error),
               hardmax = at(RowHardmax(cross(2, 2)), error),
               three = at(RowHardmax(cross(3, 3)), 0.43880281417);
    EXPECT_NEAR(softmax.bayes_optimal, 0.13954337567, 1e-10);
    EXPECT_NEAR(softmax.plug_in, 0.14238561905, 1e-10);
    EXPECT_NEAR(cold.bayes_optimal, 0.46721409450398, 1e-10);
    EXPECT_NEAR(cold.plug_in, 0.58303724353210, 1e-10);
    EXPECT_NEAR(hardmax.bayes_optimal, 2 / pi * std::acos(1 - error), 1e-12);
    EXPECT_NEAR(hardmax.plug_in, 4 / pi * std::acos(std::sqrt(1 - error)), 1e-12);
    EXPECT_NEAR(hardmax.bayes_optimal, 0.66362594990, 1e-10);
    EXPECT_NEAR(three.bayes_optimal, 1.307075660, 1e-8);
    EXPECT_NEAR(three.plug_in, 1.977, 4e-3);
}

TEST(RowChannels, OutputsThatAreNotSeenMayBeAnything) {
    const RowSoftmax channel(masked(3));
    Rows index = Rows::Random(4, 6), outputs(4, 9);
    channel.draw(index, 0, 0, outputs);
    EXPECT_EQ(outputs(0, 4), -std::numeric_limits<double>::infinity());
    EXPECT_NO_THROW(channel.check_outputs(outputs));
    outputs.col(4).setConstant(7);
    EXPECT_NO_THROW(channel.check_outputs(outputs));
    outputs(2, 1) += 1;
    test::expect_invalid([&] { channel.check_outputs(outputs); },
                         "sum of the probabilities of sample 2, row 0");
    Rows labels = Rows::Zero(1, 9);
    test::expect_invalid([&] { RowHardmax(masked(3)).check_outputs(labels); }, "must be one 1 and zeros");
}

TEST(RowChannels, RefuseRowsThatTellNothing) {
    test::expect_invalid(
        [] { RowSoftmax(masked(2)); },
        "softmax channel, masked attention: tokens must be at least 3: a row of one entry tells "
        "nothing, got 2");
    test::expect_invalid([] { RowSoftmax(cross(2, 1)); },
                         "softmax channel, cross attention: key tokens must be at least 2");
    test::expect_invalid([] { RowHardmax(masked(2)); }, "hardmax channel, masked attention: tokens");
    test::expect_invalid([] { RowLinear(Geometry{}); }, "rows of tied attention are not independent");
    EXPECT_NO_THROW(RowLinear(cross(1, 1)));
}

}  // namespace
}  // namespace bayesaim::channels
