// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/attention_loss.hpp"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/priors/bilinear.hpp"
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

// ---- untied attention -----------------------------------------------------------------------------------

/// Data of a teacher S that is not symmetric, for any pairs of queries and keys. Outputs that are not seen
/// are NaN: a loss that reads them is NaN.
struct UntiedProblem {
    channels::SmoothOutput output;
    LossGeometry geometry;
    data::Dataset data;

    /// `sees(a, b)` says whether query a sees key b. `keys` is ignored unless they are another set of tokens.
    template <class Sees>
    UntiedProblem(channels::SmoothOutput out, bool separate_keys, Eigen::Index queries, Eigen::Index keys,
                  Eigen::Index dim, Eigen::Index samples, Sees sees)
        : output(out) {
        geometry.tied = false;
        geometry.separate_keys = separate_keys;
        geometry.queries = queries;
        geometry.keys = separate_keys ? keys : queries;
        for (Eigen::Index a = 0; a < queries; ++a) {
            for (Eigen::Index b = 0; b < geometry.keys; ++b) {
                if (sees(a, b)) geometry.pairs.emplace_back(a, b);
            }
        }
        data.tokens = data::given_tokens(normal_matrix(dim, samples * queries, 100), queries);
        if (separate_keys)
            data.key_tokens = data::given_tokens(normal_matrix(dim, samples * keys, 101), keys);
        data.outputs = channels::Rows::Constant(samples, queries * geometry.keys, std::nan(""));
        const Matrix teacher = normal_matrix(dim, 2 * dim, 102);
        for_each_output(teacher, [&](Eigen::Index i, Eigen::Index ab, double value) {
            data.outputs(i, ab) = output.softmax ? std::log(value) : value;
        });
    }

    template <class Scalar>
    AttentionLoss<Scalar> loss() const {
        ThreadPool pool(1);
        return AttentionLoss<Scalar>(data, output, geometry, pool);
    }

    double obvious_loss(const Matrix& w) const {
        double loss = 0;
        for_each_output(w, [&](Eigen::Index i, Eigen::Index ab, double value) {
            const double y = data.outputs(i, ab);
            loss += std::pow((output.softmax ? std::exp(y) : y) - value, 2);
        });
        return loss;
    }

    /// The formula with S = W_Q W_K'/sqrt(r d) itself, sample by sample: visit(i, a keys + b, output).
    template <class Visit>
    void for_each_output(const Matrix& w, Visit visit) const {
        const double d = static_cast<double>(w.rows()), r = static_cast<double>(w.cols()) / 2;
        const Matrix s = w.leftCols(w.cols() / 2) * w.rightCols(w.cols() / 2).transpose() / std::sqrt(r * d);
        Matrix one, two;
        for (std::size_t i = 0; i < static_cast<std::size_t>(data.tokens->samples()); ++i) {
            const Matrix x = data.tokens->block({i, i + 1}, one), z = data.keys().block({i, i + 1}, two);
            Matrix h = x.transpose() * s * z / std::sqrt(d);
            if (!geometry.separate_keys) h.diagonal().array() -= s.trace() / std::sqrt(d);
            Eigen::VectorXd sums = Eigen::VectorXd::Zero(h.rows());
            for (const auto& [a, b] : geometry.pairs) sums[a] += std::exp(output.beta * h(a, b));
            for (const auto& [a, b] : geometry.pairs)
                visit(static_cast<Eigen::Index>(i), a * geometry.keys + b,
                      output.softmax ? std::exp(output.beta * h(a, b)) / sums[a] : h(a, b));
        }
    }
};

/// Cross with any number of queries and keys, masked, self with the diagonal, and causal.
UntiedProblem any_untied_problem() {
    const bool softmax = test::integer(0, 2) > 0;
    const channels::SmoothOutput output{softmax, softmax ? test::log_uniform(0.1, 10) : 1};
    const Eigen::Index queries = test::integer(2, 5), keys = test::integer(2, 5), dim = test::integer(2, 9),
                       samples = test::integer(1, 140);
    const int kind = test::integer(0, 3);
    return UntiedProblem(output, kind == 0, queries, keys, dim, samples, [&](Eigen::Index a, Eigen::Index b) {
        return kind == 1 ? a != b : kind == 3 ? b <= a : true;
    });
}

/// As above. A swap of the factors, G for G', or a trace of W_Q W_Q' is off by more than 1e-2.
RC_GTEST_PROP(AttentionLoss, UntiedGradientIsThatOfFiniteDifferences, ()) {
    const UntiedProblem problem = any_untied_problem();
    const auto loss = problem.loss<double>();
    const Eigen::Index columns = 2 * test::integer(1, 6);
    const Matrix w = normal_matrix(loss.dim(), columns, 1);
    Matrix gradient, ignored;
    const double value = loss.evaluate(w, gradient);
    for (std::uint64_t direction = 2; direction < 5; ++direction) {
        const Matrix along = normal_matrix(loss.dim(), columns, direction);
        constexpr double h = 1e-5;
        const double slope =
            (loss.evaluate(w + h * along, ignored) - loss.evaluate(w - h * along, ignored)) / (2 * h);
        const double scale = 1 + value + gradient.norm() * along.norm();
        RC_ASSERT(test::scaled_error((gradient.array() * along.array()).sum(), slope, scale) < 1e-6);
    }
}

RC_GTEST_PROP(AttentionLoss, UntiedIsTheFormula, ()) {
    const UntiedProblem problem = any_untied_problem();
    const Matrix w = normal_matrix(problem.data.tokens->dim(), 2 * test::integer(1, 6), 1);
    const double expected = problem.obvious_loss(w);
    Matrix gradient;
    const double value = problem.loss<double>().evaluate(w, gradient);
    RC_ASSERT(test::scaled_error(value, expected, expected + 1e-6) < 1e-10);
    Eigen::MatrixXf float_gradient;
    const double rounded = problem.loss<float>().evaluate(w.cast<float>(), float_gradient);
    RC_ASSERT(test::scaled_error(rounded, expected, expected + 1e-3) <
              1e-3);  // single precision, beta up to 10
    RC_ASSERT((float_gradient.cast<double>() - gradient).norm() <= 1e-3 * (1 + gradient.norm()));
}

/// The channels' own outputs and indices, which the library computes elsewhere: data::attention_indices of
/// S = W_Q W_K'/sqrt(r d), and the channel's prediction without uncertainty. S' instead of S is off by more
/// than 1e-2.
TEST(AttentionLoss, OfUntiedChannelsIsThatOfTheirPredictions) {
    ThreadPool pool(1);
    for (const std::string name : {"softmax", "linear"}) {
        for (const channels::ChannelOptions& options :
             {channels::ChannelOptions{.tokens = 2, .attention = channels::Attention::cross, .key_tokens = 4},
              channels::ChannelOptions{.tokens = 3, .attention = channels::Attention::cross, .key_tokens = 2},
              channels::ChannelOptions{.tokens = 3, .attention = channels::Attention::masked}}) {
            const auto channel = channels::make_channel(name, options);
            const auto made =
                data::make_synthetic(priors::Bilinear(1), *channel, {.dim = 9, .alpha = 1.2}, pool);
            const Matrix w = normal_matrix(9, 8, 1);
            const Matrix s[] = {w.leftCols(4) * w.rightCols(4).transpose() / 6};  // sqrt(r d) = 6
            channels::Rows prediction(made.data.outputs.rows(), made.data.outputs.cols()),
                y = made.data.outputs;
            channel->predict(
                data::attention_indices(channel->geometry(), *made.data.tokens, made.data.keys(), s, pool),
                linalg::zero_overlap(1), prediction);
            if (name == "softmax") y = y.array().exp();
            const double expected = (y - prediction).squaredNorm();
            Matrix gradient;
            const AttentionLoss<double> loss(made.data, *channel, pool);
            EXPECT_EQ(loss.factors(), 2);
            EXPECT_LT(test::relative_error(loss.evaluate(w, gradient), expected), 1e-12) << name;
            Matrix swapped(9, 8);
            swapped << w.rightCols(4), w.leftCols(4);
            EXPECT_GT(test::relative_error(loss.evaluate(swapped, gradient), expected), 1e-2) << name;
        }
    }
}

TEST(AttentionLoss, UntiedHasTheSameBitsForAnyThreads) {
    for (const bool cross : {false, true}) {
        const UntiedProblem problem({true, 1}, cross, 3, 2, 30, 1500,
                                    [&](Eigen::Index a, Eigen::Index b) { return cross || a != b; });
        const auto loss = problem.loss<float>();
        const Eigen::MatrixXf w = normal_matrix(30, 30, 1).cast<float>();
        Eigen::MatrixXf alone, together;
        ThreadPool pool(3);
        EXPECT_EQ(loss.evaluate(w, alone), loss.evaluate(w, together, &pool));
        EXPECT_EQ(alone, together);
        EXPECT_GT(alone.norm(), 0);
    }
}

TEST(AttentionLoss, OfUntiedSubsetsAveragesToTheWhole) {
    const UntiedProblem problem({true, 1}, true, 2, 3, 8, 300,
                                [](Eigen::Index, Eigen::Index) { return true; });
    const auto loss = problem.loss<double>();
    const Matrix w = normal_matrix(8, 8, 1);
    Matrix whole, part, sum = Matrix::Zero(8, 8);
    const double expected = loss.evaluate(w, whole);
    std::vector<Eigen::Index> order(300);
    std::iota(order.rbegin(), order.rend(), Eigen::Index{0});
    double mean = 0;
    for (const Range range : {Range{0, 100}, Range{100, 130}, Range{130, 300}}) {
        const double share = static_cast<double>(range.size()) / 300;
        mean += share * loss.subset({order.data() + range.begin, range.size()}).evaluate(w, part);
        sum += share * part;
    }
    EXPECT_LT(test::relative_error(mean, expected), 1e-13);
    EXPECT_LT((sum - whole).norm(), 1e-12 * whole.norm());
}

TEST(AttentionLoss, UntiedNeedsTwoFactorsOfOneWidth) {
    const UntiedProblem problem({true, 1}, false, 3, 3, 4, 10,
                                [](Eigen::Index, Eigen::Index) { return true; });
    Matrix gradient;
    test::expect_invalid([&] { problem.loss<double>().evaluate(normal_matrix(4, 3, 1), gradient); },
                         "columns of the student must be of size 2, got 3");
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
