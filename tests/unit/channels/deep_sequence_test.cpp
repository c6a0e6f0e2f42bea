// SPDX-License-Identifier: MIT
#include "bayesaim/channels/deep_sequence.hpp"

#include <cmath>
#include <numbers>
#include <tuple>

#include <gtest/gtest.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/posteriors/two_layer_posterior.hpp"

#include "support/expect_invalid.hpp"
#include "support/layers.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::channels {
namespace {

using test::overlap;
using test::sample;
using test::Samples;

/// Z on a grid of layer 1, with the explicit inverse of B, and g by differences of log Z. The test shares
/// no code with the posterior.
TEST(SequencePosterior, ScoreIsTheGradientOfABruteForceIntegral) {
    for (const Eigen::Index i : {0, 1}) {
        const double c = 1, beta = 1, total = c + 1;
        const DeepSequence channel(
            {.residual = c, .quadrature = {.nodes = 129, .most_nodes = 513, .cut = 30, .tolerance = 1e-9}});
        const Overlap variance = overlap(1, 0.2, 0.8);
        const Samples s = sample(channel, overlap(1, 0.5, 1.1), variance, 2, 17);
        const double k = variance(0, 1) / variance(0, 0), rest = variance(1, 1) - k * variance(0, 1);
        const auto density = [&](const Eigen::RowVectorXd& omega, const Eigen::Vector2d& mu, double u1,
                                 double u2) {
            const double a = 1 / (1 + std::exp(-beta * u1)), b = 1 / (1 + std::exp(-beta * u2));
            Eigen::Matrix2d mixing, y;
            mixing << total - a, a, b, total - b;
            y << total - mu[0], mu[0], mu[1], total - mu[1];
            const Eigen::Matrix2d inverse = test::inverse(mixing), attention = y * inverse;
            if (!(attention.minCoeff() > 0)) return 0.0;
            Eigen::Matrix2d m;
            m << 0, std::log(attention(0, 1) / attention(0, 0)), 0,
                std::log(attention(0, 1) / attention(0, 0)) - std::log(attention(1, 0) / attention(1, 1));
            m(1, 0) = m(0, 1);
            m /= beta;
            const Eigen::Matrix2d h = inverse * m * inverse.transpose();
            // In the plane orthogonal to the constant: coordinates p, r of layer 2.
            const double p = (h(0, 0) - h(1, 1)) / std::sqrt(2.0), r = (h(0, 0) - 2 * h(0, 1) + h(1, 1)) / 2;
            const double p1 = (u2 - u1) / std::sqrt(2.0), r1 = -(u1 + u2) / 2;
            const auto perpendicular = [&](Eigen::Index first) {
                return Eigen::Vector2d(
                    (omega[first] - omega[first + 2]) / std::sqrt(2.0),
                    (omega[first] - std::sqrt(2.0) * omega[first + 1] + omega[first + 2]) / 2);
            };
            const Eigen::Vector2d first = Eigen::Vector2d(p1, r1) - perpendicular(0);
            const Eigen::Vector2d second = Eigen::Vector2d(p, r) - perpendicular(3) - k * first;
            // d mu / d(p, r) = K^2 delta^5 x derivative of the softmax, up to a constant.
            const double delta = std::abs(total - a - b);
            const double slope =
                std::pow(delta, 5) * attention(0, 0) * attention(0, 1) * attention(1, 0) * attention(1, 1);
            return std::exp(-0.5 * first.squaredNorm() / variance(0, 0) - 0.5 * second.squaredNorm() / rest) /
                   slope;
        };
        // a = end s(x), b likewise: nodes accumulate at both ends of the rectangle.
        const auto log_z = [&](const Eigen::RowVectorXd& omega, const Eigen::Vector2d& mu) {
            double sum = 0;
            constexpr int nodes = 481;
            const double ends[] = {std::min({mu[0], total - mu[1], 1.0}),
                                   std::min({mu[1], total - mu[0], 1.0})};
            for (int node = 0; node < nodes * nodes; ++node) {
                double u[2], jacobian = 1;
                for (const int axis : {0, 1}) {
                    const double x = 48.0 * (axis == 0 ? node % nodes : node / nodes) / (nodes - 1) - 24;
                    const double share = ends[axis] / (1 + std::exp(-x));
                    u[axis] = std::log(share / (1 - share)) / beta;
                    jacobian *= 1 / (1 + std::exp(x)) / (1 - share);
                }
                if (jacobian > 0) sum += jacobian * density(omega, mu, u[0], u[1]);
            }
            return std::log(sum);
        };
        Rows g(2, 6);
        Eigen::VectorXd none(0);
        channel.score(s.outputs, s.omega, variance, g, none);
        const Eigen::Vector2d mu(s.outputs(i, 1), s.outputs(i, 2));
        for (const int p : {0, 1, 4}) {
            const double step = 1e-3;
            Eigen::RowVectorXd up = s.omega.row(i), down = up;
            up[p] += step;
            down[p] -= step;
            EXPECT_NEAR(g(i, p), (log_z(up, mu) - log_z(down, mu)) / (2 * step),
                        1e-4 * (1 + std::abs(g(i, p))))
                << "sample " << i << " omega " << p;
        }
    }
}

/// V_ll = 2 error, V_lk = 2 coupling, and the corresponding overlap for width 1/2.
struct Stage {
    Stage(int layers, double error, double coupling)
        : variance(Overlap::Constant(layers, layers, 2 * coupling)),
          overlap(Overlap::Constant(layers, layers, 0.5 - coupling)) {
        variance.diagonal().setConstant(2 * error);
        overlap.diagonal().setConstant(1.5 - error);
    }
    Overlap variance, overlap;
};

Eigen::VectorXd coordinates(const Rows& rows, Eigen::Index i) {
    const Eigen::Index layers = rows.cols() / 3;
    return (informed_directions(2) * Eigen::RowVectorXd(rows.row(i)).reshaped(3, layers)).reshaped();
}

/// E[g g'] = -E[dg/domega] and E[(h - mean) mean'] = 0, within four standard errors.
void expect_nishimori(const LayeredChannel& channel, const Overlap& q, const Overlap& variance, int count) {
    const int layers = channel.layers();
    const Overlap precision = linalg::inverse(variance);
    const Samples s = sample(channel, q, variance, count, 23);
    const auto moments = channel.posterior(s.outputs, s.omega, variance);
    for (int l = 0; l < layers; ++l) {
        for (int k = 0; k < layers; ++k) {
            std::vector<double> identity, orthogonality, power;
            for (int i = 0; i < count; ++i) {
                const auto& m = moments[static_cast<std::size_t>(i)];
                const Eigen::MatrixXd mean = m.mean.reshaped(2, layers);
                const Eigen::MatrixXd truth = coordinates(s.index, i).reshaped(2, layers),
                                      centre = coordinates(s.omega, i).reshaped(2, layers);
                const Eigen::MatrixXd g = (mean - centre) * precision;
                const Overlap slope = 2 * precision - precision * m.covariance * precision;
                power.push_back(g.col(l).dot(g.col(k)));
                identity.push_back(power.back() - slope(l, k));
                orthogonality.push_back((truth.col(l) - mean.col(l)).dot(mean.col(k)));
            }
            EXPECT_LT(test::estimate(identity).deviation(0), 4) << "layers " << l << k;
            EXPECT_LT(test::estimate(orthogonality).deviation(0), 4) << "layers " << l << k;
            if (l == k) {
                EXPECT_LT(test::estimate(identity).standard_error, 0.1 * test::estimate(power).mean);
            }
        }
    }
}

TEST(DeepSequence, NishimoriIdentities) {
    for (const double c : {1.0, 0.3}) {
        SCOPED_TRACE(c);
        expect_nishimori(DeepSequence({.residual = c}), overlap(1, 0.5, 1.2), overlap(1, -0.05, 0.4), 1000);
    }
}

TEST(DeepSequence, NishimoriIdentitiesOfThreeLayers) {
    const Stage stage(3, 0.3, 0.02);
    expect_nishimori(DeepSequence({.layers = 3}), stage.overlap, stage.variance, 1200);
    expect_nishimori(DeepSequence({.layers = 3, .residual = 0.3}), stage.overlap, stage.variance, 400);
}

/// Two layers: agrees with the quadrature, if it resolves the posterior, within the reported sampling error.
/// For c < 1 maxima on both sides of delta = 0 must be found: without one Z is off by e^10 and more.
TEST(ReadoutPosterior, OfTwoLayersIsTheQuadrature) {
    for (const double c : {1.0, 0.3, 0.0}) {
        for (const double error : {1.0, 0.3, 0.05}) {
            const Stage stage(2, error, 0);
            const DeepSequence channel({.residual = c});
            const ReadoutPosterior posterior(2, 1, c, 1024);
            const int count = 40;
            const Samples s = sample(channel, stage.overlap, stage.variance, count, 5);
            int resolved = 0;
            for (Eigen::Index i = 0; i < count; ++i) {
                const Eigen::Vector2d mu(s.outputs(i, 1), s.outputs(i, 2));
                const Eigen::VectorXd centre = coordinates(s.omega, i);
                const LayerMoments quadrature =
                    sequence_posterior(mu, centre, stage.variance, 1, c, DeepSequenceOptions().quadrature);
                if (quadrature.error > 1e-3) continue;
                ++resolved;
                const LayerMoments sampled = posterior(s.outputs.row(i).transpose(), centre, stage.variance);
                const double deviation = std::sqrt(quadrature.covariance.trace());
                EXPECT_LT((sampled.mean - quadrature.mean).norm(), 4 * sampled.error * deviation)
                    << "c " << c << " error " << error << " sample " << i;
                EXPECT_NEAR(sampled.log_z, quadrature.log_z, 4 * sampled.error);
                EXPECT_LT((sampled.covariance - quadrature.covariance).norm(),
                          6 * sampled.error * quadrature.covariance.trace());
                EXPECT_GT(sampled.effective_samples, 150);
            }
            EXPECT_GT(resolved, count / 2);
        }
    }
}

/// Three layers: the integral over the prior of the first two, with explicit inverses. The test does not use
/// the coordinates of the posterior.
TEST(ReadoutPosterior, OfThreeLayersIsTheIntegralOverThePrior) {
    const int layers = 3, points = 1 << 19;
    const double c = 1, beta = 1;
    const Stage stage(layers, 0.8, 0.05);
    const Samples s = sample(DeepSequence({.layers = 3}), stage.overlap, stage.variance, 8, 3);
    const Overlap root = linalg::lower_root(stage.variance), precision = linalg::inverse(stage.variance);
    const Eigen::MatrixXd directions = informed_directions(2);
    int compared = 0;
    for (Eigen::Index i = 0; i < 8; ++i) {
        const Eigen::VectorXd centre = coordinates(s.omega, i);
        TokenMatrix y(2, 2);
        y << s.outputs(i, 0), s.outputs(i, 1), s.outputs(i, 2), s.outputs(i, 3);
        double total = 0, squares = 0;
        Eigen::VectorXd mean = Eigen::VectorXd::Zero(6);
        Eigen::VectorXd z(4), h(6);
        for (int n = 0; n < points; ++n) {
            RandomStream(7, Purpose::integration, static_cast<std::uint64_t>(n)).fill_normal({z.data(), 4});
            h.head<2>() = root(0, 0) * z.head<2>();
            h.segment<2>(2) = root(1, 0) * z.head<2>() + root(1, 1) * z.tail<2>();
            const double prior = -0.5 * z.squaredNorm();
            h.head<4>() += centre.head<4>();
            Eigen::VectorXd pairs(6);
            pairs << directions.transpose() * h.head<2>(), directions.transpose() * h.segment<2>(2);
            const TokenMatrix mixing = mixing_matrix(pairs.data(), 2, 2, beta, c),
                              inverse = test::inverse(mixing);
            const TokenMatrix attention = y * inverse;
            if (!(attention.minCoeff() > 0)) continue;
            double logs[4];
            for (int k = 0; k < 4; ++k) logs[k] = std::log(attention(k / 2, k % 2));
            Eigen::VectorXd last(3);
            scaled_indices(inverse * logits_of_output(logs, 2, beta) * inverse.transpose(), last.data());
            h.tail<2>() = directions * last;
            double distance = 0;
            const Eigen::MatrixXd shift = (h - centre).reshaped(2, layers);
            for (int l = 0; l < layers; ++l) {
                for (int k = 0; k < layers; ++k) distance += precision(l, k) * shift.col(l).dot(shift.col(k));
            }
            const double weight = std::exp(-0.5 * distance - prior) /
                                  (std::pow(std::abs(test::determinant(mixing)), 5) * attention.prod());
            total += weight;
            squares += weight * weight;
            mean += weight * h;
        }
        mean /= total;
        // N(h^3 | h^1, h^2) / |dY/dh^3|, |dY/dh^3| = sqrt(2) beta^2 prod(A) |det B|^5 / rows^4, rows = 4
        const double log_z = std::log(total / points) + std::log(256 * precision(2, 2)) -
                             std::log(2 * std::numbers::pi * std::numbers::sqrt2);
        const double effective = total * total / squares;
        if (effective < 200) continue;
        ++compared;
        const LayerMoments found =
            ReadoutPosterior(layers, beta, c, 4096)(s.outputs.row(i).transpose(), centre, stage.variance);
        EXPECT_LT((found.mean - mean).norm(),
                  4 * std::hypot(found.error, 1 / std::sqrt(effective)) * std::sqrt(found.covariance.trace()))
            << "sample " << i;
        EXPECT_NEAR(found.log_z, log_z, 4 * std::hypot(found.error, 1 / std::sqrt(effective)))
            << "sample " << i;
        EXPECT_LT(found.error, 0.1);
    }
    EXPECT_GE(compared, 4);
}

/// The reference is the density of its own points, N(z) / |dx/dz|; any other density makes weights wrong.
TEST(ReadoutPosterior, ReferenceIsTheDensityOfItsPoints) {
    for (const auto& [layers, c, negative] :
         {std::tuple(2, 1.0, 0U), {3, 1.0, 0U}, {4, 2.5, 0U}, {3, 0.3, 1U}}) {
        const Stage stage(layers, 0.4, 0.03);
        Eigen::VectorXd omega(2 * layers);
        RandomStream(3, Purpose::tokens, 0).fill_normal({omega.data(), static_cast<std::size_t>(2 * layers)});
        const auto integrand = ReadoutPosterior(layers, 1.3, c, 64)
                                   .integrand({0.3, 0.7, 0.6, 0.4}, omega, stage.variance, negative);
        const int dim = integrand->dimension();
        for (const std::uint64_t n : {1, 2, 3}) {
            Eigen::VectorXd z(dim);
            RandomStream(4, Purpose::tokens, n).fill_normal({z.data(), static_cast<std::size_t>(dim)});
            Eigen::MatrixXd slope(dim, dim);
            constexpr double step = 1e-5;
            for (int i = 0; i < dim; ++i) {
                const Eigen::VectorXd shift = step * Eigen::VectorXd::Unit(dim, i);
                slope.col(i) = (integrand->draw_reference(z + shift) - integrand->draw_reference(z - shift)) /
                               (2 * step);
            }
            const double log_determinant =
                linalg::cholesky(slope.transpose() * slope)->diagonal().array().log().sum();
            const double expected =
                -0.5 * z.squaredNorm() - 0.5 * dim * std::log(2 * std::numbers::pi) - log_determinant;
            EXPECT_NEAR(integrand->at(integrand->draw_reference(z)).reference, expected, 1e-5)
                << layers << " layers, c " << c;
        }
    }
}

/// Rounded outputs, and outputs that no indices give, have finite moments.
TEST(ReadoutPosterior, StaysFiniteAtTheEndsOfWhatOutputsCanBe) {
    const Stage stage(3, 0.5, 0);
    for (const double first : {0.0, 1e-17, 2.0, 4.0}) {
        for (const double second : {0.0, 2.0, 4.0 - 1e-15}) {
            const LayerMoments m = ReadoutPosterior(3, 1, 1, 256)({4 - first, first, second, 4 - second},
                                                                  Eigen::VectorXd::Zero(6), stage.variance);
            EXPECT_TRUE(m.mean.allFinite() && m.covariance.allFinite()) << first << " " << second;
            EXPECT_GE(m.effective_samples, 0.99);
        }
    }
}

/// Large beta saturates the attention: moments are finite, and errors report unresolved posteriors.
TEST(DeepSequence, StaysFiniteWhereAttentionIsSaturated) {
    for (const int layers : {2, 3}) {
        for (const double beta : {8.0, 30.0, 100.0}) {
            const DeepSequence channel({.layers = layers, .beta = beta, .points = 256});
            const Stage stage(layers, 0.6, 0.01);
            const Samples s = sample(channel, stage.overlap, stage.variance, 60, 9);
            for (const LayerMoments& m : channel.posterior(s.outputs, s.omega, stage.variance)) {
                ASSERT_TRUE(m.mean.allFinite() && m.covariance.allFinite()) << layers << " " << beta;
                ASSERT_GT(m.error, 0);
                ASSERT_GT(m.covariance.diagonal().minCoeff(), -1e-12);  // round-off of quadratures
            }
        }
    }
}

TEST(ReadoutPosterior, RejectsWrongArguments) {
    for (const int layers : {-1, 1, linalg::max_layers + 1, 40}) {
        test::expect_invalid([&] { ReadoutPosterior(layers, 1, 1, 64); }, "layers of the posterior");
    }
    const ReadoutPosterior posterior(3, 1, 1, 64);
    const Stage three(3, 0.5, 0), two(2, 0.5, 0);
    const Eigen::VectorXd omega = Eigen::VectorXd::Zero(6);
    test::expect_invalid(
        [&] {
            posterior({1, 1, 1, 1}, omega.head(4), three.variance);
        },
        "coordinates of omega");
    test::expect_invalid([&] { posterior({1, 1, 1, 1}, omega, two.variance); }, "layers of the variance");
}

/// The read-out has more information on the first layer than the attention of the second. Both fix K - 1
/// combinations of each sample: Tr(V F) -> K - 1 as the error vanishes.
TEST(DeepSequence, IsMoreInformativeThanTheAttentionAlone) {
    const OrderParameters parameters{overlap(0.9, 0.45, 1.1), overlap(0.6, -0.01, 0.4)};
    const Integration integration{.shifts = 4, .points = 128};
    const auto sequence = DeepSequence().score_power(parameters, integration),
               attention = DeepAttention().score_power(parameters, integration);
    EXPECT_GT(sequence.value(0, 0), 1.3 * attention.value(0, 0));
    EXPECT_LT(sequence.relative_error, 0.05);
    const OrderParameters late{overlap(1.499, 0.5, 1.499), overlap(1e-3, 0, 1e-3)};
    const auto end = DeepSequence().score_power(late, integration);
    EXPECT_NEAR((2 * late.error * end.value).trace(), 2, 0.03);
    EXPECT_GT(end.value(0, 0) / end.value(1, 1), 0.1);  // informative on both layers
}

/// Compares with plain averages over pairs of draws of the same omega. Outputs are not logarithms.
TEST(DeepSequence, GeneralizationErrorIsThatOfTheReadOut) {
    const DeepSequence channel;
    const Overlap q = overlap(0.9, 0.45, 1.1), error = overlap(0.6, -0.01, 0.4);
    const int count = 20000;
    Samples one = sample(channel, q, 2 * error, count, 31);
    const Samples other = sample(channel, overlap(1, 0, 1), 2 * error, count, 32);
    Rows second(count, 4), plug_in(count, 4);
    channel.draw(one.omega + other.index - other.omega, 0, 0, second);
    channel.draw(one.omega, 0, 0, plug_in);
    std::vector<double> halved, whole;
    for (Eigen::Index i = 0; i < count; ++i) {
        halved.push_back(0.5 * (one.outputs.row(i) - second.row(i)).squaredNorm());
        whole.push_back((one.outputs.row(i) - plug_in.row(i)).squaredNorm());
    }
    const GeneralizationError found = channel.generalization({q, error}, {.shifts = 8, .points = 1024});
    const auto optimal = test::estimate(halved), plain = test::estimate(whole);
    EXPECT_LT(optimal.deviation(found.bayes_optimal), 4);
    EXPECT_LT(plain.deviation(found.plug_in), 4);
    EXPECT_LT(optimal.standard_error, 0.02 * optimal.mean);
}

TEST(DeepSequence, RejectsWrongArguments) {
    test::expect_invalid([] { DeepSequence({.residual = -1}); }, "deep-seq2seq channel: residual");
    test::expect_invalid([] { DeepSequence({.beta = 0}); }, "deep-seq2seq channel: beta");
    test::expect_invalid([] { DeepSequence({.beta = 1000}); }, "deep-seq2seq channel: beta");
    test::expect_invalid([] { DeepSequence({.residual = 1e200}); }, "deep-seq2seq channel: residual");
    test::expect_invalid([] { DeepSequence({.layers = 1}); }, "deep-seq2seq channel: layers");
    test::expect_invalid([] { DeepSequence({.points = 0}); }, "points");
}

}  // namespace
}  // namespace bayesaim::channels
