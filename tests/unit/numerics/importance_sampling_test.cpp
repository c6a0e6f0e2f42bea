// SPDX-License-Identifier: MIT
#include "bayesaim/numerics/importance_sampling.hpp"

#include <cmath>
#include <functional>
#include <numbers>

#include <gtest/gtest.h>

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::numerics {
namespace {

/// Any function, with the standard normal density as reference.
class Target final : public ImportanceTarget {
  public:
    Target(int dimension, std::function<double(const Eigen::VectorXd&)> log_f)
        : dimension_(dimension), log_f_(std::move(log_f)) {}
    int dimension() const override { return dimension_; }
    Logarithms at(const Eigen::VectorXd& x) const override {
        return {log_f_(x), -0.5 * x.squaredNorm() - 0.5 * dimension_ * std::log(2 * std::numbers::pi)};
    }
    Eigen::VectorXd draw_reference(const Eigen::VectorXd& normal) const override { return normal; }

  private:
    int dimension_;
    std::function<double(const Eigen::VectorXd&)> log_f_;
};

/// Of a Gaussian with small width around `at`, times `mass`.
double log_bump(const Eigen::VectorXd& x, const Eigen::VectorXd& at, double width, double mass) {
    return std::log(mass) - 0.5 * (x - at).squaredNorm() / (width * width) -
           static_cast<double>(x.size()) * std::log(width * std::sqrt(2 * std::numbers::pi));
}

/// Bumps of different mass and width, three deviations of the reference apart: one alone is off by a factor.
TEST(AdaptiveImportance, FindsEveryBump) {
    const Eigen::Vector4d first(1.5, 0, 0.5, -1), second(-1.5, 0.5, 0, 1);
    const Target target(4, [&](const Eigen::VectorXd& x) {
        const double one = log_bump(x, first, 0.3, 0.3), other = log_bump(x, second, 0.2, 0.7);
        const double largest = std::max(one, other);
        return largest + std::log(std::exp(one - largest) + std::exp(other - largest));
    });
    const WeightedPoints sample = AdaptiveImportance(4, 4096)(target);
    EXPECT_GT(sample.effective, 1500);
    EXPECT_NEAR(sample.log_integral, 0, 4 / std::sqrt(sample.effective));
    const Eigen::Vector4d mean = sample.points * sample.weights, expected = 0.3 * first + 0.7 * second;
    EXPECT_LT((mean - expected).norm(), 4 * 3.5 * std::sqrt(0.21 / sample.effective));
    EXPECT_NEAR(sample.weights.sum(), 1, 1e-12);
}

/// A ridge along a parabola, x_2 ~ N(x_1^2, 0.1^2), x_1 ~ N(0, 1): no Gaussian is like it.
TEST(AdaptiveImportance, FollowsACurvedRidge) {
    const Target target(2, [](const Eigen::VectorXd& x) {
        const double off = (x[1] - x[0] * x[0]) / 0.1;
        return -0.5 * (x[0] * x[0] + off * off) - std::log(0.1 * 2 * std::numbers::pi);
    });
    const WeightedPoints sample = AdaptiveImportance(2, 8192)(target);
    EXPECT_GT(sample.effective, 800);
    EXPECT_NEAR(sample.log_integral, 0, 5 / std::sqrt(sample.effective));
    const Eigen::Vector2d mean = sample.points * sample.weights;
    EXPECT_NEAR(mean[0], 0, 5 / std::sqrt(sample.effective));
    EXPECT_NEAR(mean[1], 1, 5 * std::sqrt(2 / sample.effective));
}

TEST(AdaptiveImportance, IsTheSameForTheSameSeed) {
    const Target target(3, [](const Eigen::VectorXd& x) { return -x.array().square().square().sum(); });
    const auto one = AdaptiveImportance(3, 256, 4)(target), again = AdaptiveImportance(3, 256, 4)(target),
               other = AdaptiveImportance(3, 256, 5)(target);
    EXPECT_EQ(one.points, again.points);
    EXPECT_EQ(one.weights, again.weights);
    EXPECT_NE(one.points, other.points);
    // int exp(-x^4) dx = 2 Gamma(5/4)
    EXPECT_NEAR(one.log_integral, 3 * std::log(2 * std::tgamma(1.25)), 4 / std::sqrt(one.effective));
}

TEST(AdaptiveImportance, SaysWhenNothingIsThere) {
    const Target target(2, [](const Eigen::VectorXd&) { return -test::infinity; });
    const WeightedPoints sample = AdaptiveImportance(2, 64)(target);
    EXPECT_EQ(sample.log_integral, -test::infinity);
    EXPECT_EQ(sample.effective, 0);
    EXPECT_EQ(sample.weights.norm(), 0);
}

/// A box of which a sixteenth of the reference's points see something.
TEST(AdaptiveImportance, ToleratesAFunctionThatVanishesAlmostEverywhere) {
    const Target target(4, [](const Eigen::VectorXd& x) {
        return x.minCoeff() > 0 ? -0.5 * x.squaredNorm() : -test::infinity;
    });
    const WeightedPoints sample = AdaptiveImportance(4, 4096)(target);
    EXPECT_GT(sample.effective, 300);
    for (Eigen::Index n = 0; n < sample.points.cols(); ++n) {
        if (sample.points.col(n).minCoeff() > 0) continue;
        ASSERT_EQ(sample.weights[n], 0);
    }
    EXPECT_NEAR(sample.log_integral, 2 * std::log(std::numbers::pi / 2), 5 / std::sqrt(sample.effective));
}

/// Six neighbours for each dimension would be more than there are points.
TEST(AdaptiveImportance, ToleratesMoreDimensionsThanItHasPointsFor) {
    const int dimension = 90;
    const Target target(dimension,
                        [](const Eigen::VectorXd& x) { return -2 * (x.array() - 0.5).square().sum(); });
    const WeightedPoints sample = AdaptiveImportance(dimension, 256)(target);
    EXPECT_TRUE(std::isfinite(sample.log_integral));
    EXPECT_GE(sample.effective, 1);
    EXPECT_TRUE(sample.points.allFinite());
}

TEST(AdaptiveImportance, RejectsWrongArguments) {
    test::expect_invalid([] { AdaptiveImportance(2, 3); }, "points");
    const Target target(3, [](const Eigen::VectorXd&) { return 0.0; });
    test::expect_invalid([&] { AdaptiveImportance(2, 64)(target); }, "dimensions of the target");
}

}  // namespace
}  // namespace bayesaim::numerics
