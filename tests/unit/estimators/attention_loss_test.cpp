// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/attention_loss.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"
#include "support/generators.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;

Matrix normal_matrix(Eigen::Index rows, Eigen::Index cols, std::uint64_t index) {
    ThreadPool pool(1);
    return linalg::gaussian_matrix(rows, cols, RandomStream(7, Purpose::initial, index), pool);
}

struct Problem {
    std::unique_ptr<channels::Channel> channel;
    data::Synthetic synthetic;
    double beta = 1;

    Problem(const std::string& name, int tokens, double inverse_temperature, Eigen::Index dim,
            Eigen::Index samples)
        : channel(channels::make_channel(name, {.tokens = tokens, .beta = inverse_temperature})),
          beta(inverse_temperature) {
        ThreadPool pool(1);
        data::SyntheticOptions options;
        options.dim = dim;
        options.alpha = static_cast<double>(samples) / static_cast<double>(dim * dim);
        synthetic = data::make_synthetic(priors::Wishart(1), *channel, options, pool);
    }

    template <class Scalar>
    AttentionLoss<Scalar> loss() const {
        ThreadPool pool(1);
        return AttentionLoss<Scalar>(synthetic.data, *channel, pool);
    }

    /// The formula, sample by sample.
    double obvious_loss(const Matrix& w) const {
        const data::TokenSource& source = *synthetic.data.tokens;
        const Eigen::Index tokens = source.tokens();
        const double d = static_cast<double>(source.dim()), r = static_cast<double>(w.cols());
        double loss = 0;
        Matrix scratch;
        for (std::size_t i = 0; i < static_cast<std::size_t>(source.samples()); ++i) {
            const Matrix x = source.block({i, i + 1}, scratch);
            Matrix h = x.transpose() * w * w.transpose() * x;
            h.diagonal().array() -= w.squaredNorm();
            h /= std::sqrt(r) * d;
            for (Eigen::Index a = 0; a < tokens; ++a) {
                const Eigen::ArrayXd e = (beta * h.row(a).array()).exp();
                for (Eigen::Index b = 0; b < tokens; ++b) {
                    const double y = synthetic.data.outputs(static_cast<Eigen::Index>(i), a * tokens + b);
                    const bool softmax = channel->name() == "softmax";
                    loss += softmax ? std::pow(std::exp(y) - e[b] / e.sum(), 2) : std::pow(y - h(a, b), 2);
                }
            }
        }
        return loss;
    }
};

Problem any_problem() {
    const bool softmax = test::integer(0, 2) > 0;
    const int tokens = test::integer(2, 5);
    const double beta = softmax ? test::log_uniform(0.1, 10) : 1;
    const Eigen::Index dim = test::integer(2, 9), samples = test::integer(1, 140);
    return Problem(softmax ? "softmax" : "linear", tokens, beta, dim, samples);
}

/// Central differences with step 1e-5 are right to 1e-10 of the third derivative and to 1e-11 of the loss. A
/// gradient without Tr(G) W, without a factor 2 or of the wrong sign is off by more than 1e-2.
RC_GTEST_PROP(AttentionLoss, GradientIsThatOfFiniteDifferences, ()) {
    const Problem problem = any_problem();
    const auto loss = problem.loss<double>();
    const Eigen::Index width = test::integer(1, 6);
    const Matrix w = normal_matrix(loss.dim(), width, 1);
    Matrix gradient, ignored;
    const double value = loss.evaluate(w, gradient);
    for (std::uint64_t direction = 2; direction < 5; ++direction) {
        const Matrix along = normal_matrix(loss.dim(), width, direction);
        constexpr double h = 1e-5;
        const double slope =
            (loss.evaluate(w + h * along, ignored) - loss.evaluate(w - h * along, ignored)) / (2 * h);
        const double scale = 1 + value + gradient.norm() * along.norm();
        RC_ASSERT(test::scaled_error((gradient.array() * along.array()).sum(), slope, scale) < 1e-6);
    }
}

RC_GTEST_PROP(AttentionLoss, IsTheFormula, ()) {
    const Problem problem = any_problem();
    const Matrix w = normal_matrix(problem.synthetic.data.tokens->dim(), test::integer(1, 6), 1);
    const double expected = problem.obvious_loss(w);
    Matrix gradient;
    RC_ASSERT(test::relative_error(problem.loss<double>().evaluate(w, gradient), expected) < 1e-10);
    Eigen::MatrixXf float_gradient;
    const double rounded = problem.loss<float>().evaluate(w.cast<float>(), float_gradient);
    RC_ASSERT(test::relative_error(rounded, expected) < 1e-3);  // single precision, beta up to 10
    RC_ASSERT((float_gradient.cast<double>() - gradient).norm() <= 1e-3 * (1 + gradient.norm()));
}

TEST(AttentionLoss, HasTheSameBitsForAnyThreads) {
    const Problem problem("softmax", 2, 1, 30, 2000);
    const auto loss = problem.loss<float>();
    const Eigen::MatrixXf w = normal_matrix(30, 15, 1).cast<float>();
    Eigen::MatrixXf alone, together;
    ThreadPool pool(3);
    EXPECT_EQ(loss.evaluate(w, alone), loss.evaluate(w, together, &pool));
    EXPECT_EQ(alone, together);
    EXPECT_GT(alone.norm(), 0);
}

TEST(AttentionLoss, OfSubsetsAveragesToTheWhole) {
    const Problem problem("softmax", 3, 1, 8, 300);
    const auto loss = problem.loss<double>();
    const Matrix w = normal_matrix(8, 4, 1);
    Matrix whole, part, sum = Matrix::Zero(8, 4);
    const double expected = loss.evaluate(w, whole);
    std::vector<Eigen::Index> order(300);
    std::iota(order.begin(), order.end(), Eigen::Index{0});
    std::reverse(order.begin(), order.end());
    double mean = 0;
    for (const Range range : {Range{0, 100}, Range{100, 130}, Range{130, 300}}) {
        const double share = static_cast<double>(range.size()) / 300;
        mean += share * loss.subset({order.data() + range.begin, range.size()}).evaluate(w, part);
        sum += share * part;
    }
    EXPECT_LT(test::relative_error(mean, expected), 1e-13);
    EXPECT_LT((sum - whole).norm(), 1e-12 * whole.norm());
}

TEST(AttentionLoss, RefusesChannelsWithoutGradient) {
    const Problem problem("hardmax", 2, 1, 4, 10);
    test::expect_invalid([&] { problem.loss<float>(); },
                         "channel must be one with a gradient, such as softmax or linear");
}

}  // namespace
}  // namespace bayesaim::estimators
