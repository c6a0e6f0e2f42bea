// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/erm.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/data/attention.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/losses/table.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::estimators {
namespace {

using linalg::Matrix;
using losses::Penalty;

struct Case {
    std::string channel, loss;
    int tokens = 2;
    double beta = 1, alpha = 0.12, lambda = 0.05;
    Penalty penalty = Penalty::trace;
    int dim = 40;
};

struct Problem {
    std::unique_ptr<channels::Channel> channel;
    std::unique_ptr<losses::Loss> loss;
    data::Synthetic synthetic;
};

Problem make(const Case& setting, data::TokenStorage storage = data::TokenStorage::memory) {
    channels::ChannelOptions options;
    options.tokens = setting.tokens;
    options.beta = setting.beta;
    if (setting.channel == "linear") options.label_noise = 0.5;
    Problem problem;
    problem.channel = channels::make_channel(setting.channel, options);
    problem.loss = losses::make_loss(setting.loss, *problem.channel);
    ThreadPool pool(1);
    problem.synthetic = data::make_synthetic(
        priors::Wishart(0.5), *problem.channel,
        {.dim = setting.dim, .alpha = setting.alpha, .seed = 3, .storage = storage}, pool);
    return problem;
}

ErmOptions options_of(const Case& setting) {
    ErmOptions options;
    options.penalty = setting.penalty;
    options.regularization = setting.lambda;
    return options;
}

std::vector<Case> cases() {
    return {{"linear", "square", 2, 1, 0.1, 0.2},
            {"linear", "square", 3, 1, 0.1, 0.2, Penalty::frobenius},
            {"softmax", "logit"},
            {"softmax", "logit", 3, 1, 0.06, 0.2},
            {"softmax", "row-logit"},
            {"softmax", "cross-entropy"},
            {"softmax", "cross-entropy", 3, 1, 0.06},
            {"softmax", "cross-entropy", 2, 3, 0.12, 0.1},
            {"softmax", "cross-entropy", 2, 1, 0.12, 0.02, Penalty::frobenius},
            {"softmax", "square", 2, 1, 0.12, 0.02},
            {"softmax", "square", 3, 1, 0.06, 0.04}};
}

/// sum over samples of the gradient of ell with respect to S, by sensing matrices: Z_ab = (x_a x_b' + x_b x_a')/2 of h_ab,
/// and differences of ell in each htilde.
Matrix gradient_of(const Problem& problem, const Matrix& s) {
    const data::Dataset& data = problem.synthetic.data;
    const Eigen::Index d = s.rows(), tokens = data.tokens->tokens(), n = data.tokens->samples();
    Matrix scratch, gradient = Matrix::Zero(d, d);
    const auto x = data.tokens->block({0, static_cast<std::size_t>(n)}, scratch);
    const double root = std::sqrt(static_cast<double>(d));
    const linalg::Overlap none = linalg::zero_overlap(1);
    const auto value = [&](Eigen::Index i, const channels::Rows& index) {
        channels::Rows g(1, index.cols());
        Eigen::VectorXd log_z(1);
        problem.loss->score(data.outputs.middleRows(i, 1), index, none, g, log_z);
        return -log_z[0];
    };
    for (Eigen::Index i = 0; i < n; ++i) {
        channels::Rows index(1, tokens * (tokens + 1) / 2);
        std::vector<Matrix> sensing;
        for (Eigen::Index a = 0; a < tokens; ++a) {
            for (Eigen::Index b = a; b < tokens; ++b) {
                const auto u = x.col(i * tokens + a), v = x.col(i * tokens + b);
                Matrix z = (u * v.transpose() + v * u.transpose()) / (2 * root);
                if (a == b) z -= Matrix::Identity(d, d) / root;
                if (a != b) z *= std::sqrt(2.0);
                index(0, static_cast<Eigen::Index>(sensing.size())) = z.cwiseProduct(s).sum();
                sensing.push_back(z);
            }
        }
        for (std::size_t p = 0; p < sensing.size(); ++p) {
            constexpr double step = 1e-5;
            channels::Rows up = index, down = index;
            up(0, static_cast<Eigen::Index>(p)) += step;
            down(0, static_cast<Eigen::Index>(p)) -= step;
            gradient += (value(i, up) - value(i, down)) / (2 * step) * sensing[p];
        }
    }
    return gradient;
}

class EveryLoss : public testing::TestWithParam<Case> {};

TEST_P(EveryLoss, MinimumSatisfiesTheOptimalityConditions) {
    const Case& setting = GetParam();
    const Problem problem = make(setting);
    ThreadPool pool(1);
    const ErmResult result = run_erm(problem.synthetic.data, *problem.loss, options_of(setting), pool);
    EXPECT_EQ(result.status, Termination::converged);
    EXPECT_LE(result.kkt_residual, 1e-8);
    const Matrix& s = result.estimate;
    const Matrix gradient = gradient_of(problem, s) / setting.dim;
    constexpr double differences = 2e-6;  // of the finite differences here, and of the tolerance
    if (setting.penalty == Penalty::frobenius) {
        EXPECT_LT((gradient + setting.lambda * s).norm(), differences * s.norm());
        return;
    }
    // lambda + gradient >= 0, and 0 on the range of S.
    const Matrix slack = setting.lambda * Matrix::Identity(s.rows(), s.cols()) + gradient;
    EXPECT_GT(linalg::symmetric_eigenvalues(slack).minCoeff(), -differences);
    EXPECT_LT((slack * s).norm(), differences * s.norm());
    const linalg::Vector values = linalg::symmetric_eigenvalues(s);
    EXPECT_GT(values.minCoeff(), -1e-12);
    const auto zeros = std::count_if(values.begin(), values.end(), [](double x) { return x < 1e-10; });
    EXPECT_EQ(result.zero_fraction, static_cast<double>(zeros) / setting.dim);
}

TEST_P(EveryLoss, ProximalGradientFindsTheSameMinimum) {
    const Case& setting = GetParam();
    const Problem problem = make(setting);
    ThreadPool pool(2);
    ErmOptions options = options_of(setting);
    options.tolerance = 1e-10;
    options.solver = Solver::message_passing;
    const ErmResult fast = run_erm(problem.synthetic.data, *problem.loss, options, pool);
    options.solver = Solver::proximal_gradient;
    const ErmResult slow = run_erm(problem.synthetic.data, *problem.loss, options, pool);
    EXPECT_EQ(fast.status, Termination::converged);
    EXPECT_EQ(slow.status, Termination::converged);
    EXPECT_LT((fast.estimate - slow.estimate).norm(), 1e-6 * fast.estimate.norm());
    EXPECT_NEAR(fast.objective, slow.objective, 1e-10);
    EXPECT_LT(fast.record.size(), slow.record.size());
}

INSTANTIATE_TEST_SUITE_P(Training, EveryLoss, testing::ValuesIn(cases()), [](const auto& one) {
    std::string name = one.param.channel + "_" + one.param.loss + std::to_string(one.param.tokens) + "_" +
                       std::to_string(one.index);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

TEST(Training, HasTheSameBitsForAnyThreadsAndStorage) {
    for (const Case& setting : {Case{"softmax", "cross-entropy"}, Case{"linear", "square"}}) {
        std::vector<Matrix> estimates;
        for (const std::size_t threads : {1, 2, 3}) {
            const Problem problem =
                make(setting, threads == 3 ? data::TokenStorage::regenerate : data::TokenStorage::memory);
            ThreadPool pool(threads);
            estimates.push_back(
                run_erm(problem.synthetic.data, *problem.loss, options_of(setting), pool).estimate);
        }
        EXPECT_EQ(estimates[0], estimates[1]);
        EXPECT_EQ(estimates[0], estimates[2]);
    }
}

/// (sum ell + lambda d penalty(S))/d^2, at an estimate for which loss and penalty are of the same size.
TEST(Training, ObjectiveIsTheLossAndThePenalty) {
    ThreadPool pool(1);
    for (const Penalty penalty : {Penalty::trace, Penalty::frobenius}) {
        const Case setting{"linear", "square", 2, 1, 0.1, 0.2, penalty, 20};
        const Problem problem = make(setting);
        const ErmResult result = run_erm(problem.synthetic.data, *problem.loss, options_of(setting), pool);
        const Matrix& s = result.estimate;
        const channels::Rows index = data::attention_indices(*problem.synthetic.data.tokens, {&s, 1}, pool);
        channels::Rows g(index.rows(), index.cols());
        Eigen::VectorXd minus_loss(index.rows());
        problem.loss->score(problem.synthetic.data.outputs, index, linalg::zero_overlap(1), g, minus_loss);
        const double of_s = penalty == Penalty::trace ? s.trace() : 0.5 * (s * s).trace();
        EXPECT_NEAR(result.training_loss, -minus_loss.mean(), 1e-12);
        EXPECT_NEAR(result.objective, (-minus_loss.sum() + 0.2 * 20 * of_s) / 400, 1e-12);
        EXPECT_GT(0.2 * 20 * of_s / 400, 0.1 * result.objective);
    }
}

TEST(Training, EndsWithAStatus) {
    const Case setting{"softmax", "logit"};
    const Problem problem = make(setting);
    ThreadPool pool(1);
    ErmOptions options = options_of(setting);
    options.max_iterations = 5;
    const ErmResult few = run_erm(problem.synthetic.data, *problem.loss, options, pool);
    EXPECT_EQ(few.status, Termination::iteration_limit);
    EXPECT_EQ(few.record.size(), 5U);
    EXPECT_GT(few.kkt_residual, 1e-8);
    options.progress = [](const ErmIteration& now) { return now.iteration < 3; };
    EXPECT_EQ(run_erm(problem.synthetic.data, *problem.loss, options, pool).status, Termination::stopped);
    options = options_of(setting);
    options.regularization = 1e4;
    const ErmResult none = run_erm(problem.synthetic.data, *problem.loss, options, pool);
    EXPECT_EQ(none.status, Termination::converged);
    EXPECT_EQ(none.estimate.norm(), 0);
    EXPECT_EQ(none.zero_fraction, 1);
}

TEST(Training, NumbersThatOverflowAreAStatus) {
    for (const Penalty penalty : {Penalty::trace, Penalty::frobenius}) {
        const Case setting{"linear", "square", 2, 1, 0.12, 0.2, penalty};
        const Problem problem = make(setting);
        ThreadPool pool(1);
        ErmOptions options = options_of(setting);
        options.initial_estimate = Matrix::Constant(setting.dim, setting.dim, 1e307);
        for (const Solver solver : {Solver::proximal_gradient, Solver::automatic}) {
            options.solver = solver;
            const ErmResult result = run_erm(problem.synthetic.data, *problem.loss, options, pool);
            EXPECT_EQ(result.status, Termination::diverged);
            EXPECT_EQ(result.kkt_residual, std::numeric_limits<double>::infinity());
        }
    }
}

TEST(Training, StartsFromAnEstimate) {
    const Case setting{"softmax", "cross-entropy"};
    const Problem problem = make(setting);
    ThreadPool pool(1);
    ErmOptions options = options_of(setting);
    const ErmResult cold = run_erm(problem.synthetic.data, *problem.loss, options, pool);
    options.initial_estimate = cold.estimate;
    options.solver = Solver::proximal_gradient;
    const ErmResult warm = run_erm(problem.synthetic.data, *problem.loss, options, pool);
    EXPECT_LT(warm.record.size(), 20U);
    EXPECT_LT((warm.estimate - cold.estimate).norm(), 1e-5 * cold.estimate.norm());
    EXPECT_LT(kkt_residual(problem.synthetic.data, *problem.loss, cold.estimate, Penalty::trace,
                           setting.lambda, 0.05, pool),
              1e-7);
}

TEST(Training, RefusesWhatMakesNoSense) {
    const Problem problem = make({"softmax", "logit"});
    ThreadPool pool(1);
    const auto attempt = [&](auto change) {
        return [&, change] {
            ErmOptions options;
            change(options);
            run_erm(problem.synthetic.data, *problem.loss, options, pool);
        };
    };
    test::expect_invalid(attempt([](ErmOptions& o) { o.regularization = 0; }),
                         "regularization must be positive");
    test::expect_invalid(attempt([](ErmOptions& o) { o.regularization = -1; }),
                         "regularization must be positive");
    test::expect_invalid(attempt([](ErmOptions& o) { o.damping = 1; }), "damping must be below 1");
    test::expect_invalid(attempt([](ErmOptions& o) { o.tolerance = 0; }), "tolerance must be positive");
    test::expect_invalid(attempt([](ErmOptions& o) { o.initial_estimate = Matrix::Zero(3, 3); }),
                         "dimension of the initial estimate");
}

}  // namespace
}  // namespace bayesaim::estimators
