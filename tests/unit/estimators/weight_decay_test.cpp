// SPDX-License-Identifier: MIT
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/estimators/attention_loss.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;

class WeightDecay : public ::testing::Test {
  protected:
    void make(const std::string& name, const channels::ChannelOptions& of_channel = {}, Eigen::Index dim = 20,
              double alpha = 0.4) {
        channel = channels::make_channel(name, of_channel);
        const data::SyntheticOptions synthetic{.dim = dim, .alpha = alpha};
        if (channel->geometry().symmetric()) {
            problem = data::make_synthetic(priors::Wishart(0.5), *channel, synthetic, pool);
        } else {
            problem = data::make_synthetic(priors::Bilinear(0.5), *channel, synthetic, pool);
        }
        options.width = 10;
        options.weight_decay = 0.7;
        options.precision = data::Precision::double_precision;
        options.record_stride = 1;
    }
    /// A student after one step from these weights; its record has the objective before the step.
    Descent step(const Matrix& weights) {
        const auto descender = make_gradient_descent(problem.data, *channel, options, pool);
        Descent descent = descender->start(0);
        descent.weights = weights;
        descender->advance(descent, 1, nullptr);
        return descent;
    }
    Matrix weights(std::uint64_t index) {
        const Eigen::Index factors = channel->geometry().symmetric() ? 1 : 2;
        return linalg::gaussian_matrix(problem.data.tokens->dim(), options.width * factors,
                                       RandomStream(5, Purpose::initial, index), pool);
    }
    /// dL/dW without the penalty.
    Matrix plain_gradient(const Matrix& w) {
        Matrix gradient;
        AttentionLoss<double>(problem.data, *channel, pool).evaluate(w, gradient);
        return gradient;
    }

    ThreadPool pool{1};
    std::unique_ptr<channels::Channel> channel;
    data::Synthetic problem;
    GradientDescentOptions options;
};

/// Central differences of the recorded objective, as in AttentionLoss.GradientIsThatOfFiniteDifferences.
TEST_F(WeightDecay, GradientIsThatOfFiniteDifferences) {
    for (const auto& [name, of_channel] :
         {std::pair<std::string, channels::ChannelOptions>{"softmax", {}},
          {"linear", {.label_noise = 0.3}},
          {"softmax", {.tokens = 3, .attention = channels::Attention::masked}}}) {
        make(name, of_channel);
        options.optimizer = Optimizer::gradient_descent;
        options.learning_rate = 1e-3;
        const Matrix w = weights(0), along = weights(1);
        const Matrix gradient = (w - step(w).weights) / options.learning_rate;
        constexpr double h = 1e-5;
        const double slope =
            (step(w + h * along).record[0].loss - step(w - h * along).record[0].loss) / (2 * h);
        const double found = gradient.cwiseProduct(along).sum(), scale = gradient.norm() * along.norm();
        EXPECT_LE(test::scaled_error(found, slope, scale), 1e-8) << name;
        // Half the penalty, or none, would show.
        EXPECT_GT(std::abs(options.weight_decay * w.cwiseProduct(along).sum()), 1e-5 * scale) << name;
        EXPECT_NEAR(step(w).record[0].gradient_norm, gradient.norm(), 1e-9 * gradient.norm());
    }
}

TEST_F(WeightDecay, IsPartOfTheStepOfBothOptimizers) {
    make("softmax");
    const Matrix w = weights(0), g = plain_gradient(w) + 2 * 0.7 * w;
    options.optimizer = Optimizer::gradient_descent;
    options.learning_rate = 0.01;
    EXPECT_LE((step(w).weights - (w - 0.01 * g)).norm(), 1e-14 * w.norm());
    // The first step of Adam: m/(1 - b1) = g and v/(1 - b2) = g^2.
    options.optimizer = Optimizer::adam;
    const Matrix expected = w.array() - 0.01 * g.array() / (g.array().abs() + options.epsilon);
    EXPECT_LE((step(w).weights - expected).norm(), 1e-13 * w.norm());
    const Matrix decoupled =
        w.array() * (1 - 0.01 * 1.4) - 0.01 * plain_gradient(w).array() / plain_gradient(w).array().abs();
    EXPECT_GT((decoupled - expected).norm(), 1e-4 * w.norm()) << "the check sees no difference";
}

TEST_F(WeightDecay, IsCountedOnceInEveryMinibatch) {
    make("softmax", {}, 20, 0.3);  // 120 samples: four batches of 30
    options.optimizer = Optimizer::gradient_descent;
    options.learning_rate = 1e-200;
    options.max_steps = 4;
    const double whole = step(weights(0)).record[0].loss;
    options.batch_size = 30;
    const auto descender = make_gradient_descent(problem.data, *channel, options, pool);
    Descent descent = descender->start(0);
    descent.weights = weights(0);
    descender->advance(descent, 4, nullptr);
    double mean = 0;
    for (std::size_t i = 0; i < 4; ++i) mean += descent.record[i].loss / 4;
    EXPECT_LE(test::relative_error(mean, whole), 1e-13);
    EXPECT_GT(options.weight_decay * weights(0).squaredNorm(), 0.1 * whole);
}

TEST_F(WeightDecay, ThatIsLargeLeavesNothing) {
    make("linear", {.label_noise = 0.3});
    options.optimizer = Optimizer::gradient_descent;
    options.weight_decay = 50;
    options.learning_rate = 0.004;
    options.max_steps = 300;
    const Descent descent = run_gradient_descent(problem.data, *channel, options, pool);
    EXPECT_LT(descent.estimate().norm(), 1e-12);
    Matrix nothing = Matrix::Zero(20, 10), gradient;
    EXPECT_DOUBLE_EQ(descent.record.back().loss,
                     AttentionLoss<double>(problem.data, *channel, pool).evaluate(nothing, gradient));
}

TEST_F(WeightDecay, RegularizationIsThatOfTheTrace) {
    make("linear");
    const Matrix w = weights(0);
    const double d = 20, r = 10, lambda = equivalent_regularization(0.7, 10, 20);
    EXPECT_DOUBLE_EQ(lambda, 0.35 * std::sqrt(0.5));
    EXPECT_NEAR(0.5 * 0.7 * w.squaredNorm(), lambda * d * (w * w.transpose()).trace() / std::sqrt(r * d),
                1e-10);
    EXPECT_DOUBLE_EQ(equivalent_regularization(0.7, 10, 20, 2), 2 * lambda);
}

/// G = -d(L/2)/dS of linear outputs and L itself, sample by sample: h_ab = (x_a' S z_b - delta_ab Tr S)/sqrt(d),
/// without the trace where keys are other tokens.
struct Slope {
    Matrix g;
    double loss = 0;
};
Slope slope_at(const data::Dataset& data, const Matrix& s) {
    const Eigen::Index dim = s.rows(), queries = data.tokens->tokens(), keys = data.keys().tokens();
    const bool tied = !data.key_tokens;
    Slope result{Matrix::Zero(dim, dim)};
    Matrix scratch, key_scratch;
    for (std::size_t i = 0; i < static_cast<std::size_t>(data.tokens->samples()); ++i) {
        const Matrix x = data.tokens->block({i, i + 1}, scratch),
                     z = data.keys().block({i, i + 1}, key_scratch);
        for (Eigen::Index a = 0; a < queries; ++a) {
            for (Eigen::Index b = 0; b < keys; ++b) {
                Matrix slope = x.col(a) * z.col(b).transpose();
                if (tied) slope = (0.5 * (slope + slope.transpose())).eval();
                if (tied && a == b) slope -= Matrix::Identity(dim, dim);
                slope /= std::sqrt(static_cast<double>(dim));
                const double residual =
                    data.outputs(static_cast<Eigen::Index>(i), keys * a + b) - slope.cwiseProduct(s).sum();
                result.loss += residual * residual;
                result.g += residual * slope;
            }
        }
    }
    return result;
}

/// Linear outputs, a student wider than d: every start ends at the minimum of the convex problem
///   L(S)/2 + lambda d Tr S over S >= 0,
/// whose conditions are Z = lambda d I - G >= 0 and Z S = 0. 20000 steps leave 1e-12 of each.
TEST_F(WeightDecay, MinimumSolvesTheConvexProblem) {
    constexpr Eigen::Index dim = 24;
    make("linear", {.label_noise = 0.5}, dim, 0.3);
    options.width = 29;  // 1.2 d
    options.weight_decay = 0.8;
    options.optimizer = Optimizer::gradient_descent;
    options.learning_rate = 0.02;
    options.max_steps = options.record_stride = 2000;
    const auto result =
        run_averaged_gradient_descent(problem.data, *channel, {.descent = options, .starts = 3}, pool);
    const double weight = equivalent_regularization(0.8, 29, dim) * dim;
    const double objective = training_objective(result.descents).value();
    for (const Descent& descent : result.descents) {
        EXPECT_LE(test::relative_error(descent.record.back().loss, objective), 1e-7);
        const Matrix s = descent.estimate();
        EXPECT_LE((s - result.estimate).norm(), 1e-4 * s.norm());
        const auto [g, loss] = slope_at(problem.data, s);
        EXPECT_LE(test::relative_error(descent.record.back().loss, loss + 2 * weight * s.trace()), 1e-10);
        const Matrix z = weight * Matrix::Identity(dim, dim) - g;
        EXPECT_GE(linalg::symmetric_eigenvalues(z)[0], -1e-4 * weight);
        EXPECT_LE((z * s).norm(), 1e-4 * weight * s.norm());
        // Neither condition is empty: S is not 0, and has eigenvalues that are.
        EXPECT_GT(linalg::symmetric_eigenvalues(z)[dim - 1], 0.1 * weight);
        EXPECT_LT(linalg::symmetric_eigenvalues(s)[0], 1e-4 * s.norm());
        EXPECT_GT(s.norm(), 1);
    }
}

/// Untied: L(S)/2 + lambda d ||S||_*, whose conditions are ||G|| <= lambda d, the largest singular value, and
/// <G, S> = lambda d ||S||_*.
TEST_F(WeightDecay, MinimumOfUntiedAttentionHasThePenaltyOfTheNuclearNorm) {
    constexpr Eigen::Index dim = 16;
    make("linear", {.label_noise = 0.5, .attention = channels::Attention::cross}, dim, 0.6);
    options.width = 19;
    options.optimizer = Optimizer::gradient_descent;
    options.learning_rate = 0.02;
    options.max_steps = options.record_stride = 4000;
    const Matrix s = run_gradient_descent(problem.data, *channel, options, pool).estimate();
    const Matrix g = slope_at(problem.data, s).g;
    const auto singular_values = [](const Matrix& m) {
        return linalg::symmetric_eigenvalues(linalg::gram(1, m)).cwiseMax(0).cwiseSqrt().eval();
    };
    const double weight = equivalent_regularization(0.7, 19, dim, 2) * dim;
    const double nuclear_norm = singular_values(s).sum();
    EXPECT_GT(nuclear_norm, 1);
    EXPECT_LE(singular_values(g)[dim - 1], weight * (1 + 1e-4));
    EXPECT_LE(test::relative_error(g.cwiseProduct(s).sum(), weight * nuclear_norm), 1e-4);
}

TEST_F(WeightDecay, MustNotBeNegative) {
    make("softmax");
    options.weight_decay = -1;
    test::expect_invalid([&] { run_gradient_descent(problem.data, *channel, options, pool); },
                         "weight decay must be");
}

}  // namespace
}  // namespace bayesaim::estimators
