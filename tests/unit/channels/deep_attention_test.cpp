// SPDX-License-Identifier: MIT
#include "bayesaim/channels/deep_attention.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "support/expect_invalid.hpp"
#include "support/layers.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::channels {
namespace {

using test::overlap;
using test::sample;
using test::Samples;

struct Vector {
    double residual, v11, v12, v22, omega[6], htilde[6], y12, y21, g[6], log_z;
};

const Vector vectors[] = {{1,
                           2,
                           0,
                           2,
                           {-1.14, 1.01, -0.7, -0.21, -0.06, -0.59},
                           {-3.07, 1.93, -0.19, -2.97, 3.26, 0.78},
                           0.6710205750,
                           0.3829082608,
                           {0.02754935, 0.04085003, -0.08532002, -0.74349344, 0.28743571, 0.33699797},
                           -1.06991898},
                          {1,
                           1,
                           -0.05,
                           0.4,
                           {-0.61, 0.72, -0.37, -0.05, 0.63, -1.01},
                           {-0.03, 2.12, 0.95, -0.27, 1.13, -2.1},
                           0.3517762150,
                           0.8564909534,
                           {-0.02102271, -0.27720511, 0.41304994, 0.40667676, 0.2893092, -0.81582176},
                           -1.33754112},
                          {0,
                           1,
                           -0.05,
                           0.4,
                           {0.6, -0.53, -0.98, 0.21, 0.25, -0.1},
                           {1.87, -0.62, -1.05, -0.55, 0.34, 0.75},
                           0.5498029017,
                           0.4549463637,
                           {-0.14883868, 0.18031329, -0.10616282, -0.12882962, 0.10492953, -0.01956315},
                           0.96092322}};

/// A rule far more accurate than the default.
const ZoomOptions fine_rule{
    .coarse_cells = 40, .nodes = 129, .most_nodes = 513, .cut = 30, .tolerance = 1e-9};

TEST(DeepAttention, ScoreIsThatOfTheReferenceVectors) {
    for (const Vector& v : vectors) {
        const DeepAttention channel({.residual = v.residual, .quadrature = fine_rule});
        const Eigen::Map<const Eigen::RowVectorXd> omega(v.omega, 6), htilde(v.htilde, 6), expected(v.g, 6);
        Rows outputs(1, 4), g(1, 6);
        channel.draw(htilde, 0, 0, outputs);
        EXPECT_NEAR(std::exp(outputs(0, 1)), v.y12, 1e-10);
        EXPECT_NEAR(std::exp(outputs(0, 2)), v.y21, 1e-10);
        Eigen::VectorXd log_z(1);
        channel.score(outputs, omega, overlap(v.v11, v.v12, v.v22), g, log_z);
        EXPECT_LT((g.row(0) - expected).norm(), 2e-6 * expected.norm()) << g << "\nc " << v.residual;
        EXPECT_NEAR(log_z[0], v.log_z, 1e-6) << "c " << v.residual;
    }
}

/// Compared with a rule that is four times finer, the mean is off by at most the reported error.
TEST(TwoLayerPosterior, ReportedErrorBoundsTheDeviationFromAFinerRule) {
    const struct {
        double beta, residual, c11, c22;
    } cases[] = {{1, 1, 1, 1},   {1, 1, 0.22, 0.0428}, {1, 1, 0.0211, 0.00225},
                 {3, 1, 1, 1},   {1, 3, 1, 1},         {1, 0, 0.3, 0.2},
                 {1, 0.3, 1, 1}, {1, 0, 0.03, 0.01},   {20, 1, 0.5, 0.1}};
    for (const auto& c : cases) {
        const DeepAttention coarse({.beta = c.beta, .residual = c.residual}),
            fine({.beta = c.beta, .residual = c.residual, .quadrature = fine_rule});
        const Overlap variance = overlap(2 * c.c11, -0.02 * c.c22, 2 * c.c22);
        const Samples s = sample(coarse, overlap(1.5 - c.c11, 0.5, 1.5 - c.c22), variance, 40, 5);
        const auto quick = coarse.posterior(s.outputs, s.omega, variance),
                   exact = fine.posterior(s.outputs, s.omega, variance);
        double sum = 0, reported = 0;
        for (std::size_t i = 0; i < quick.size(); ++i) {
            const double deviation = std::sqrt(exact[i].covariance(0, 0));
            const double distance = (quick[i].mean - exact[i].mean).head(2).norm() / deviation;
            sum += distance;
            reported += quick[i].error;
        }
        EXPECT_LE(sum, 3 * reported + 40 * 1e-5)
            << "beta " << c.beta << " c " << c.residual << " C " << c.c11;
    }
}

/// Outputs carry no information on the direction tau/T of any layer.
TEST(DeepAttention, ScoreIsOrthogonalToTau) {
    for (const auto& [layers, tokens] : {std::pair{2, 2}, {2, 3}, {3, 2}}) {
        const DeepAttention channel({.layers = layers, .tokens = tokens});
        const Overlap variance = Overlap::Identity(layers, layers) * 0.6;
        const Samples s = sample(channel, Overlap::Constant(layers, layers, 0.5), variance, 5, 3);
        Rows g = s.omega;
        Eigen::VectorXd none(0);
        channel.score(s.outputs, s.omega, variance, g, none);
        const Eigen::VectorXd tau = pair_scales(tokens);
        for (int l = 0; l < layers; ++l) {
            EXPECT_LT((g.middleCols(l * channel.pairs(), channel.pairs()) * tau).norm(), 1e-12 * g.norm());
        }
        EXPECT_GT(g.norm(), 0.1);
    }
}

/// Brute force: Z by a three-dimensional grid over htilde^1, with explicit inverse of B and the integral over
/// the constant done analytically; g by central differences in all six omegas. The test
/// shares no code with the channel.
TEST(DeepAttention, ScoreIsTheGradientOfABruteForceIntegral) {
    const DeepAttention channel({.quadrature = fine_rule});
    const Overlap variance = overlap(1, 0.2, 0.8);
    const Samples s = sample(channel, overlap(1, 0.5, 1.1), variance, 2, 17);
    const double k = variance(0, 1) / variance(0, 0), rest = variance(1, 1) - k * variance(0, 1);
    const auto log_z = [&](const Eigen::RowVectorXd& omega, const Eigen::Matrix2d& m) {
        constexpr int nodes = 61;
        double total = 0;
        for (int i = 0; i < nodes * nodes * nodes; ++i) {
            const Eigen::Vector3d z(13.0 * (i % nodes) / (nodes - 1) - 6.5,
                                    13.0 * (i / nodes % nodes) / (nodes - 1) - 6.5,
                                    13.0 * (i / nodes / nodes) / (nodes - 1) - 6.5);
            const Eigen::Vector3d h = omega.head(3).transpose() + std::sqrt(variance(0, 0)) * z;
            const double h12 = h[1] / std::sqrt(2.0);
            Eigen::Matrix2d b;
            b << 1 / (1 + std::exp(h12 - h[0])), 1 / (1 + std::exp(h[0] - h12)),
                1 / (1 + std::exp(h[2] - h12)), 1 / (1 + std::exp(h12 - h[2]));
            b += Eigen::Matrix2d::Identity();
            const Eigen::Matrix2d inverse = test::inverse(b), h2 = inverse * m * inverse.transpose();
            Eigen::Vector3d e(h2(0, 0), std::sqrt(2.0) * h2(0, 1), h2(1, 1));
            e -= omega.tail(3).transpose() + k * (h - omega.head(3).transpose());
            const Eigen::Vector3d tau(0.5, std::sqrt(2.0) / 2, 0.5);
            e -= tau.dot(e) * tau;
            total += std::exp(-0.5 * z.squaredNorm() - 0.5 * e.squaredNorm() / rest) /
                     std::pow(std::abs(test::determinant(b)), 3);
        }
        return std::log(total);
    };
    Rows g(2, 6);
    Eigen::VectorXd none(0);
    channel.score(s.outputs, s.omega, variance, g, none);
    for (int i = 0; i < 2; ++i) {
        const auto y = s.outputs.row(i);
        Eigen::Matrix2d m;  // softmax(m) = y
        m << 0, y[1] - y[0], y[1] - y[0], (y[1] - y[0]) - (y[2] - y[3]);
        for (int p = 0; p < 6; ++p) {
            const double step = 1e-3;
            Eigen::RowVectorXd up = s.omega.row(i), down = up;
            up[p] += step;
            down[p] -= step;
            EXPECT_NEAR(g(i, p), (log_z(up, m) - log_z(down, m)) / (2 * step), 1e-5) << i << " " << p;
        }
    }
}

/// E[g g'] = -E[dg/domega], E[(htilde - mean) mean'] = 0, within four standard errors of the samples.
void expect_nishimori(const DeepAttention& channel, const Overlap& q, const Overlap& variance, int count) {
    const Samples s = sample(channel, q, variance, count, 23);
    const int layers = channel.layers(), pairs = channel.pairs();
    const Eigen::MatrixXd directions = informed_directions(channel.tokens());
    const Eigen::Index size = directions.rows();
    const auto moments = channel.posterior(s.outputs, s.omega, variance);
    const Overlap precision = linalg::inverse(variance);
    for (int l = 0; l < layers; ++l) {
        for (int k = 0; k < layers; ++k) {
            std::vector<double> identity, orthogonality, power;
            for (int i = 0; i < count; ++i) {
                const auto& m = moments[static_cast<std::size_t>(i)];
                Eigen::MatrixXd mean(size, layers), truth(size, layers), centre(size, layers);
                for (int j = 0; j < layers; ++j) {
                    mean.col(j) = m.mean.segment(j * size, size);
                    truth.col(j) = directions * s.index.row(i).segment(j * pairs, pairs).transpose();
                    centre.col(j) = directions * s.omega.row(i).segment(j * pairs, pairs).transpose();
                }
                const Eigen::MatrixXd g = (mean - centre) * precision;
                const Overlap slope =
                    static_cast<double>(size) * precision - precision * m.covariance * precision;
                identity.push_back(g.col(l).dot(g.col(k)) - slope(l, k));
                power.push_back(g.col(l).dot(g.col(k)));
                orthogonality.push_back((truth.col(l) - mean.col(l)).dot(mean.col(k)));
            }
            const auto first = test::estimate(identity), second = test::estimate(orthogonality);
            EXPECT_LT(first.deviation(0), 4) << l << k << " E gg + E dg = " << first.mean;
            EXPECT_LT(second.deviation(0), 4) << l << k << " E (h - mean) mean = " << second.mean;
            if (l == k) {
                EXPECT_LT(first.standard_error, 0.15 * test::estimate(power).mean);
            }
        }
    }
}

TEST(DeepAttention, NishimoriIdentitiesOfTwoLayers) {
    expect_nishimori(DeepAttention(), overlap(0.5, 0.5, 0.5), overlap(2, 0, 2), 3000);
    expect_nishimori(DeepAttention(), overlap(1.261, 0.5, 1.45), overlap(0.478, -0.0062, 0.1), 3000);
    expect_nishimori(DeepAttention({.residual = 0.3}), overlap(1, 0.5, 1), overlap(1, -0.05, 0.4), 1500);
}

TEST(DeepAttention, NishimoriIdentitiesByImportanceSampling) {
    expect_nishimori(DeepAttention({.tokens = 3}), overlap(1.2, 0.5, 1.2), overlap(0.6, 0.05, 0.6), 300);
    Overlap q = Overlap::Constant(3, 3, 0.5), variance = Overlap::Constant(3, 3, 0.1);
    q.diagonal().setConstant(1.2);
    variance.diagonal().setConstant(0.6);
    expect_nishimori(DeepAttention({.layers = 3}), q, variance, 300);
}

/// Importance sampling agrees with the quadrature if both apply, and reports its effective samples.
TEST(LayerPosterior, AgreesWithTheQuadratureOfTwoLayers) {
    const DeepAttention channel;
    const Overlap variance = overlap(0.6, 0.05, 0.6);
    const Samples s = sample(channel, overlap(1.2, 0.5, 1.2), variance, 30, 29);
    const auto exact = channel.posterior(s.outputs, s.omega, variance);
    const LayerPosterior posterior(2, 2, 1, 1, 4096);
    const Eigen::MatrixXd directions = informed_directions(2);
    double distances = 0, differences = 0;
    for (int i = 0; i < 30; ++i) {
        Eigen::VectorXd centre(4);
        for (int l = 0; l < 2; ++l) {
            centre.segment(2 * l, 2) = directions * s.omega.row(i).segment(3 * l, 3).transpose();
        }
        const auto sampled = posterior(logits_of_output(s.outputs.row(i).data(), 2, 1), centre, variance);
        const auto& reference = exact[static_cast<std::size_t>(i)];
        const double distance =
            (sampled.mean - reference.mean).norm() / std::sqrt(reference.covariance.trace());
        EXPECT_LT(distance, 3 * sampled.error);
        EXPECT_NEAR(sampled.log_z, reference.log_z, 3 * sampled.error);
        distances += distance / 30;
        differences += std::abs(sampled.log_z - reference.log_z) / 30;
        EXPECT_GT(sampled.effective_samples, 200);
        EXPECT_LT(sampled.effective_samples, 4096);
        EXPECT_NEAR(sampled.error, 1 / std::sqrt(sampled.effective_samples), 1e-12);
    }
    EXPECT_LT(distances, 0.015);  // without a Jacobian: 0.1 and more
    EXPECT_LT(differences, 0.015);
}

TEST(LayerPosterior, RejectsWrongArguments) {
    for (const int layers : {1, linalg::max_layers + 1}) {
        test::expect_invalid([&] { LayerPosterior(layers, 2, 1, 1, 64); }, "layers of the posterior");
    }
    const LayerPosterior posterior(2, 2, 1, 1, 64);
    const TokenMatrix logits = TokenMatrix::Zero(2, 2);
    const Eigen::VectorXd omega = Eigen::VectorXd::Zero(4);
    test::expect_invalid([&] { posterior(logits, omega.head(2), overlap(1, 0, 1)); }, "coordinates of omega");
    test::expect_invalid([&] { posterior(logits, omega, Overlap::Identity(1, 1)); },
                         "layers of the variance");
}

/// -dg/domega from the posterior covariance agrees with differences of g.
TEST(DeepAttention, SlopeIsThatOfDifferences) {
    const DeepAttention channel;
    const Overlap variance = overlap(1, -0.05, 0.4);
    const Samples s = sample(channel, overlap(1, 0.5, 1.2), variance, 4, 43);
    Rows g = s.omega;
    for (Eigen::Index i = 0; i < 4; ++i) {
        const Overlap slope =
            channel.score_with_slope(s.outputs.row(i), s.omega.row(i), variance, g.middleRows(i, 1));
        const Eigen::MatrixXd differences = channel.score_slope(s.outputs.row(i), s.omega.row(i), variance);
        for (int l = 0; l < 2; ++l) {
            for (int k = 0; k < 2; ++k) {
                // Fourth-order differences and the error of the rule.
                EXPECT_NEAR(-differences.block(3 * l, 3 * k, 3, 3).trace(), slope(l, k), 2e-3 * slope.norm());
            }
        }
    }
}

/// The sampled predictions have the error of theory: Bayes-optimal, and with V = 0 the plug-in rule.
TEST(DeepAttention, PredictionsHaveTheGeneralizationErrorOfTheory) {
    const DeepAttention channel;
    const OrderParameters parameters{overlap(0.9, 0.45, 1.1), overlap(0.6, -0.01, 0.4)};
    const Overlap variance = 2 * parameters.error;
    const Samples s = sample(channel, parameters.overlap, variance, 4000, 37);
    const auto theory = channel.generalization(parameters, {.shifts = 8, .points = 512});
    const Rows truth = output_values(channel, s.outputs);
    Rows prediction = truth;
    const auto check = [&](const Overlap& v, double expected) {
        channel.predict(s.omega, v, prediction);
        const Eigen::VectorXd squares = (prediction - truth).rowwise().squaredNorm();
        const auto measured = test::estimate({squares.data(), static_cast<std::size_t>(squares.size())});
        EXPECT_NEAR(measured.mean, expected,
                    4 * std::hypot(measured.standard_error, theory.relative_error * expected));
        EXPECT_LT(measured.standard_error, 0.05 * expected);
    };
    check(variance, theory.bayes_optimal);
    check(Overlap::Zero(2, 2), theory.plug_in);
    EXPECT_GT(theory.plug_in, 1.02 * theory.bayes_optimal);
}

/// Sampled F agrees with the mean of g g', and does not depend on the number of threads.
TEST(DeepAttention, ScorePowerIsThatOfSamples) {
    const DeepAttention channel;
    const OrderParameters parameters{overlap(0.676, 0.504, 0.944), overlap(0.824, -0.004, 0.556)};
    ThreadPool two(2);
    const Integration integration{.shifts = 8, .points = 128},
        parallel{.shifts = 8, .points = 128, .pool = &two};
    const ScorePower power = channel.score_power(parameters, integration);
    EXPECT_EQ(power.value, channel.score_power(parameters, parallel).value);
    EXPECT_LT(power.relative_error, 0.02);
    const Overlap variance = 2 * parameters.error;
    const Samples s = sample(channel, parameters.overlap, variance, 4000, 41);
    Rows g = s.omega;
    channel.score_with_slope(s.outputs, s.omega, variance, g);
    for (int l = 0; l < 2; ++l) {
        const Eigen::VectorXd squares = g.middleCols(3 * l, 3).rowwise().squaredNorm();
        const auto measured = test::estimate({squares.data(), static_cast<std::size_t>(squares.size())});
        EXPECT_NEAR(power.value(l, l), measured.mean,
                    4 * std::hypot(measured.standard_error, power.relative_error * measured.mean));
        EXPECT_LT(measured.standard_error, 0.05 * measured.mean);
    }
}

TEST(DeepAttention, RejectsWrongArguments) {
    using test::expect_invalid;
    expect_invalid([] { DeepAttention({.residual = -0.1}); }, "deep-softmax channel: residual must be");
    expect_invalid([] { DeepAttention({.layers = 1}); }, "deep-softmax channel: layers");
    expect_invalid([] { DeepAttention({.tokens = 1}); }, "deep-softmax channel: tokens");
    expect_invalid([] { DeepAttention({.beta = 0}); }, "deep-softmax channel: beta");
    const DeepAttention channel;
    expect_invalid(
        [&] {
            channel.score_power({linalg::scalar_overlap(1), linalg::scalar_overlap(1)}, {});
        },
        "layers of the error");
}

}  // namespace
}  // namespace bayesaim::channels
