// SPDX-License-Identifier: MIT
#include "bayesaim/channels/deep_sequence.hpp"

#include <cmath>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/core/random.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::channels {
namespace {

Overlap overlap(double a, double b, double c) {
    Overlap result(2, 2);
    result << a, b, b, c;
    return result;
}

struct Samples {
    Rows omega, index, outputs;
};

Samples sample(const Channel& channel, const Overlap& q, const Overlap& variance, int count,
               std::uint64_t seed) {
    Samples result{Rows(count, 6), Rows(count, 6), Rows(count, 4)};
    const Overlap known = Eigen::LLT<Overlap>(2 * q).matrixL(),
                  rest = Eigen::LLT<Overlap>(variance).matrixL();
    Eigen::MatrixXd z(3, 4);
    for (Eigen::Index i = 0; i < count; ++i) {
        RandomStream(seed, Purpose::tokens, static_cast<std::uint64_t>(i)).fill_normal({z.data(), 12});
        const Eigen::MatrixXd omega = z.leftCols(2) * known.transpose(),
                              index = omega + z.rightCols(2) * rest.transpose();
        result.omega.row(i) = omega.reshaped().transpose();
        result.index.row(i) = index.reshaped().transpose();
    }
    channel.draw(result.index, 0, 0, result.outputs);
    return result;
}

/// Z on a grid of layer 1, with the explicit inverse of B, and g by differences of log Z. Nothing is shared
/// with the posterior.
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
            const Eigen::Matrix2d inverse = mixing.inverse(), attention = y * inverse;
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

/// E[g g'] = -E[dg/domega] and E[(h - mean) mean'] = 0, within four standard errors.
TEST(DeepSequence, NishimoriIdentities) {
    for (const double c : {1.0, 0.3}) {
        const DeepSequence channel({.residual = c});
        const Overlap variance = overlap(1, -0.05, 0.4), precision = variance.inverse();
        const int count = 1000;
        const Samples s = sample(channel, overlap(1, 0.5, 1.2), variance, count, 23);
        const auto moments = channel.posterior(s.outputs, s.omega, variance);
        const Eigen::MatrixXd directions = informed_directions(2);
        for (int l = 0; l < 2; ++l) {
            for (int k = 0; k < 2; ++k) {
                std::vector<double> identity, orthogonality, power;
                for (int i = 0; i < count; ++i) {
                    const auto& m = moments[static_cast<std::size_t>(i)];
                    const Eigen::Matrix2d mean = m.mean.reshaped(2, 2);
                    const Eigen::Matrix2d truth =
                                              directions * Eigen::RowVectorXd(s.index.row(i)).reshaped(3, 2),
                                          centre =
                                              directions * Eigen::RowVectorXd(s.omega.row(i)).reshaped(3, 2);
                    const Eigen::Matrix2d g = (mean - centre) * precision;
                    const Overlap slope = 2 * precision - precision * m.covariance * precision;
                    power.push_back(g.col(l).dot(g.col(k)));
                    identity.push_back(power.back() - slope(l, k));
                    orthogonality.push_back((truth.col(l) - mean.col(l)).dot(mean.col(k)));
                }
                EXPECT_LT(test::estimate(identity).deviation(0), 4) << "c " << c << " " << l << k;
                EXPECT_LT(test::estimate(orthogonality).deviation(0), 4) << "c " << c << " " << l << k;
                if (l == k) {
                    EXPECT_LT(test::estimate(identity).standard_error, 0.1 * test::estimate(power).mean);
                }
            }
        }
    }
}

/// The read-out tells more of the first layer than the attention of the second does, and Tr(V F) -> K - 1
/// where little is left to learn.
TEST(DeepSequence, IsMoreInformativeThanTheAttentionAlone) {
    const OrderParameters parameters{overlap(0.9, 0.45, 1.1), overlap(0.6, -0.01, 0.4)};
    const Integration integration{.shifts = 4, .points = 128};
    const auto sequence = DeepSequence().score_power(parameters, integration),
               attention = DeepAttention().score_power(parameters, integration);
    EXPECT_GT(sequence.value(0, 0), 1.3 * attention.value(0, 0));
    EXPECT_LT(sequence.relative_error, 0.05);
}

TEST(DeepSequence, RejectsWrongArguments) {
    test::expect_invalid([] { DeepSequence({.residual = -1}); }, "deep-seq2seq channel: residual");
    test::expect_invalid([] { DeepSequence({.beta = 0}); }, "deep-seq2seq channel: beta");
}

}  // namespace
}  // namespace bayesaim::channels
