// SPDX-License-Identifier: MIT
// Means over data of every loss, against averages over samples of its proximal steps.
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bayesaim/losses/table.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

#include "support/losses.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::losses {
namespace {

using channels::Rows;
using test::LossCase;

/// Averages over shifted Sobol points, all from Loss::score: E sum g omega, E sum g htilde*, E sum g^2, E ell, and E sum
/// -dg/domega.
enum { g_omega, g_teacher, power, loss_value, slope, averages };

std::vector<numerics::Estimate> sampled(const LossCase& of, const Alignment& at, double variance,
                                        std::size_t points, std::uint64_t seed) {
    const auto channel = of.make_channel();
    const auto loss = of.make_loss();
    const Eigen::Index pairs = channel->pairs();
    const double shared = at.overlap / at.self_overlap,
                 rest = std::sqrt(2 * (at.total - shared * at.overlap));
    return numerics::ShiftedSobol(static_cast<int>(2 * pairs), 8, points, seed)
        .averages(averages, 512, [&](const Eigen::ArrayXXd& x, std::size_t first, Eigen::VectorXd& sums) {
            const Rows omega = (std::sqrt(2 * at.self_overlap) * x.leftCols(pairs)).matrix();
            const Rows teacher = shared * omega + (rest * x.rightCols(pairs)).matrix();
            Rows outputs(omega.rows(), channel->outputs()), g(omega.rows(), pairs);
            Eigen::VectorXd log_z(omega.rows());
            channel->draw(teacher, seed, first, outputs);
            const Overlap v = linalg::scalar_overlap(variance);
            sums[slope] += loss->score_with_slope(outputs, omega, v, g)(0, 0);
            loss->score(outputs, omega, v, g, log_z);
            sums[g_omega] += g.cwiseProduct(omega).sum();
            sums[g_teacher] += g.cwiseProduct(teacher).sum();
            sums[power] += g.squaredNorm();
            sums[loss_value] += -log_z.sum() - 0.5 * variance * g.squaredNorm();
        });
}

/// Stein: E sum g omega = -2 q curvature + 2 m signal and E sum g htilde* = -2 m curvature + 2 Q signal.
void expect_sampled(const LossCase& of, const Alignment& at, double variance, std::size_t points,
                    const Integration& integration = {}) {
    SCOPED_TRACE(fmt::format("{}, m {}, q {}, V {}", of.title(), at.overlap, at.self_overlap, variance));
    const auto samples = sampled(of, at, variance, points, 11);
    const ProximalMeans means = of.make_loss()->means(at, variance, integration);
    // Samples, and the means' own error where they are sampled too, which is relative to the terms of a difference.
    const auto expect = [&](int which, double expected, double terms) {
        const auto& [value, error] = samples[static_cast<std::size_t>(which)];
        const double tolerance = 4.5 * std::hypot(error, means.relative_error * terms) + 1e-7;
        EXPECT_NEAR(value, expected, tolerance) << "average " << which;
        // A factor of 2 anywhere, or curvature and signal exchanged, would be seen.
        EXPECT_LT(tolerance, 0.1 * (std::abs(expected) + at.total * means.curvature)) << "average " << which;
    };
    const double a = 2 * means.curvature, s = 2 * means.signal;
    expect(g_omega, -at.self_overlap * a + at.overlap * s, at.self_overlap * a + at.overlap * s);
    expect(g_teacher, -at.overlap * a + at.total * s, at.overlap * a + at.total * s);
    expect(power, means.power, means.power);
    expect(loss_value, means.loss, means.loss);
    if (of.make_loss()->convex()) expect(slope, means.curvature, means.curvature);
}

TEST(LossMeans, AreAveragesOfTheStepsAndObeyStein) {
    for (const LossCase& of : test::loss_cases({2, 3}, {1, 3})) {
        if (of.loss == "square" && of.channel == "softmax" && of.tokens > 2) continue;  // refused
        expect_sampled(of, {1.5, 0.9, 1.0}, 1.5, 1024);
    }
    for (const LossCase& of : test::loss_cases({4}, {1})) {
        if (of.loss == "square" && of.channel == "softmax") continue;
        expect_sampled(of, {1.1, 0.3, 0.2}, 8, 512, {.shifts = 8, .points = 32});
    }
}

TEST(LossMeans, OfTwoTokensAreRightFromSmallToLargeResponses) {
    for (const char* loss : {"cross-entropy", "square"}) {
        for (const double variance : {1e-3, 0.1, 30.0, 1e3}) {
            expect_sampled({loss, "softmax", 2, 1, 0}, {1.5, 0.5, 0.4}, variance, 2048);
        }
        // Too many nodes for a rule of equal steps.
        expect_sampled({loss, "softmax", 2, 12, 0}, {1.5, 0.5, 0.4}, 2, 8192, {.shifts = 8, .points = 32});
    }
}

/// Gauss-Hermite nodes and weights of the standard normal law: Newton's method on orthonormal polynomials.
std::pair<std::vector<double>, std::vector<double>> gauss_hermite(int n) {
    std::vector<double> nodes, weights;
    const auto polynomial = [n](double x) {  // h_n and h_{n-1}
        double last = 0, now = 1;
        for (int k = 0; k < n; ++k) {
            const double next = (x * now - std::sqrt(k) * last) / std::sqrt(k + 1);
            last = now;
            now = next;
        }
        return std::pair{now, last};
    };
    // Roots are between sign changes, at least 0.2 apart for n up to 60.
    constexpr double step = 0.01;
    for (double low = -3 * std::sqrt(n); low < 3 * std::sqrt(n); low += step) {
        double a = low, b = low + step;
        if (polynomial(a).first * polynomial(b).first >= 0) continue;
        for (int k = 0; k < 60; ++k) {
            const double middle = 0.5 * (a + b);
            (polynomial(a).first * polynomial(middle).first <= 0 ? b : a) = middle;
        }
        nodes.push_back(0.5 * (a + b));
        weights.push_back(1 / (n * std::pow(polynomial(nodes.back()).second, 2)));
    }
    return {nodes, weights};
}

/// Two tokens at beta = 1, where 20^4 Gauss-Hermite nodes are enough. htilde is orthogonal to tau = (1, sqrt(2), 1), which no
/// output shows.
TEST(LossMeans, OfTwoTokensAgreeWithGaussHermiteQuadrature) {
    const auto [nodes, weights] = gauss_hermite(20);
    ASSERT_EQ(nodes.size(), 20U);
    Eigen::Matrix<double, 3, 2> basis;
    basis << 1 / std::numbers::sqrt2, 0.5, 0, -1 / std::numbers::sqrt2, -1 / std::numbers::sqrt2, 0.5;
    const Alignment at{1.5, 0.6, 0.4};
    const double shared = at.overlap / at.self_overlap,
                 rest = std::sqrt(2 * (at.total - shared * at.overlap));
    for (const char* name : {"cross-entropy", "square"}) {
        const LossCase of{name, "softmax", 2, 1, 0};
        const auto channel = of.make_channel();
        const auto loss = of.make_loss();
        const double variance = 2;  // the square loss is convex up to 4.1
        double sums[averages] = {}, mass = 0;
        Rows omega(400, 3), teacher(400, 3), outputs(400, 4), g(400, 3);
        Eigen::VectorXd log_z(400), weight(400);
        for (std::size_t i = 0; i < 20; ++i) {
            for (std::size_t j = 0; j < 20; ++j) {
                for (std::size_t k = 0; k < 400; ++k) {
                    const auto row = static_cast<Eigen::Index>(k);
                    const Eigen::Vector2d x(nodes[i], nodes[j]), rest_x(nodes[k / 20], nodes[k % 20]);
                    omega.row(row) = std::sqrt(2 * at.self_overlap) * (basis * x).transpose();
                    teacher.row(row) = shared * omega.row(row) + rest * (basis * rest_x).transpose();
                    weight[row] = weights[i] * weights[j] * weights[k / 20] * weights[k % 20];
                }
                channel->draw(teacher, 0, 0, outputs);
                loss->score(outputs, omega, linalg::scalar_overlap(variance), g, log_z);
                const Eigen::VectorXd squares = g.rowwise().squaredNorm();
                sums[g_omega] += weight.dot(g.cwiseProduct(omega).rowwise().sum());
                sums[g_teacher] += weight.dot(g.cwiseProduct(teacher).rowwise().sum());
                sums[power] += weight.dot(squares);
                sums[loss_value] -= weight.dot(log_z + 0.5 * variance * squares);
                mass += weight.sum();
            }
        }
        const ProximalMeans means = loss->means(at, variance, {});
        const double quadrature = 1e-6;
        EXPECT_NEAR(mass, 1, 1e-12);
        EXPECT_NEAR(sums[g_omega], -2 * at.self_overlap * means.curvature + 2 * at.overlap * means.signal,
                    quadrature);
        EXPECT_NEAR(sums[g_teacher], -2 * at.overlap * means.curvature + 2 * at.total * means.signal,
                    quadrature);
        EXPECT_NEAR(sums[power], means.power, quadrature);
        EXPECT_NEAR(sums[loss_value], means.loss, quadrature);
    }
}

/// At beta = 3 Gauss-Hermite rules converge slowly: 20^4 and 40^4 nodes are wrong by 0.4% and 0.1%. The references are averages
/// over 2^21 Sobol points by a program with its own coordinates and its own Newton's method.
TEST(LossMeans, OfCrossEntropyAtLargerBetaHaveTheReferenceValues) {
    const auto loss = LossCase{"cross-entropy", "softmax", 2, 3, 0}.make_loss();
    constexpr double sampling = 2e-5;
    const auto expect = [&](const Alignment& at, double variance, const ProximalMeans& expected) {
        const ProximalMeans means = loss->means(at, variance, {});
        EXPECT_LT(test::relative_error(means.curvature, expected.curvature), sampling);
        EXPECT_LT(test::relative_error(means.signal, expected.signal), sampling);
        EXPECT_LT(test::relative_error(means.power, expected.power), sampling);
        EXPECT_LT(test::relative_error(means.loss, expected.loss), sampling);
    };
    expect({1.5, 0.4859443, 0.2816431}, 4.924682, {0.275424565, 0.156993592, 0.022413710, 0.024239225, 0});
    expect({1.5, 0.2963025, 0.1187289}, 0.942463, {1.131104550, 0.480257571, 0.257699080, 0.119141976, 0});
}

/// Halving the step of the rule changes nothing: the error of the quadrature is what is said of it.
TEST(LossMeans, OfTwoTokensHaveConverged) {
    // The step of the square loss jumps where two minima are equally good.
    for (const auto& [name, accuracy] : {std::pair("cross-entropy", 2e-6), {"square", 5e-5}}) {
        for (const double beta : {0.3, 1.0, 2.0}) {
            const auto loss = LossCase{name, "softmax", 2, beta, 0}.make_loss();
            const Alignment at{1.5, 0.6, 0.4};
            const ProximalMeans usual = loss->means(at, 3, {.points = 128}),
                                fine = loss->means(at, 3, {.points = 512});
            for (const auto member : {&ProximalMeans::curvature, &ProximalMeans::signal,
                                      &ProximalMeans::power, &ProximalMeans::loss})
                EXPECT_NEAR(usual.*member, fine.*member, accuracy * fine.*member) << name << " " << beta;
        }
    }
}

/// E ||g(htilde of Shat) - g(htilde*)||^2 of the outputs.
TEST(LossMeans, GeneralizationIsTheDistanceOfOutputs) {
    const Alignment at{1.5, 0.9, 1.0};
    const double shared = at.overlap / at.total,
                 rest = std::sqrt(2 * (at.self_overlap - shared * at.overlap));
    for (const LossCase& of : test::loss_cases({2, 3}, {1, 5})) {
        const auto channel = of.make_channel();
        const Eigen::Index pairs = channel->pairs();
        const auto distance =
            numerics::ShiftedSobol(static_cast<int>(2 * pairs), 8, 2048, 3)
                .average([&](const Eigen::ArrayXXd& x) {
                    const Rows teacher = (std::sqrt(2 * at.total) * x.leftCols(pairs)).matrix(),
                               student = shared * teacher + (rest * x.rightCols(pairs)).matrix();
                    Rows first(x.rows(), channel->outputs()), second = first;
                    channel->predict(teacher, linalg::zero_overlap(1), first);
                    channel->predict(student, linalg::zero_overlap(1), second);
                    return (first - second).squaredNorm();
                });
        const double found = of.make_loss()->generalization(at, {});
        EXPECT_NEAR(distance.value, found, 4.5 * distance.standard_error + 1e-9) << of.title();
        EXPECT_LT(distance.standard_error, 0.02 * found) << of.title();
    }
}

}  // namespace
}  // namespace bayesaim::losses
