// SPDX-License-Identifier: MIT
// Training agrees with its theory: with exactly Gaussian sensing matrices by a plain loop that is written here, and with
// tokens by the solver of the library.
#include "bayesaim/estimators/erm.hpp"

#include <cmath>
#include <tuple>

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/estimators/gradient_descent.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/losses/table.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/theory/erm.hpp"

namespace bayesaim {
namespace {

using linalg::Matrix;
using losses::Penalty;

struct Setting {
    std::string channel, loss;
    double alpha, lambda;
    Penalty penalty = Penalty::trace;

    friend std::ostream& operator<<(std::ostream& out, const Setting& setting) {
        return out << setting.channel << ' ' << setting.loss << ' ' << to_string(setting.penalty);
    }
};

std::unique_ptr<channels::Channel> channel_of(const Setting& setting) {
    channels::ChannelOptions options;
    if (setting.channel == "linear") options.label_noise = 0.5;
    return channels::make_channel(setting.channel, options);
}

struct Measured {
    std::vector<double> error, training, zeros;
};

/// The minimum for n samples whose htilde are Tr(S Z), Z ~ GOE, by proximal gradient steps of fixed length with momentum.
void minimise(const Setting& setting, Eigen::Index d, std::uint64_t seed, Measured& measured) {
    ThreadPool pool(1);
    const auto channel = channel_of(setting);
    const auto loss = losses::make_loss(setting.loss, *channel);
    const auto n = static_cast<Eigen::Index>(std::llround(setting.alpha * static_cast<double>(d * d)));
    const Eigen::Index pairs = channel->pairs(), size = d * d;
    const Matrix truth = priors::Wishart(0.5).sample(d, seed, 0, pool);
    Matrix sensing(size, n * pairs);  // one Z in each column
    for (Eigen::Index k = 0; k < n * pairs; ++k) {
        const Matrix z = linalg::gaussian_orthogonal_ensemble(
            d, RandomStream(seed, Purpose::tokens, static_cast<std::uint64_t>(k)), pool);
        sensing.col(k) = z.reshaped();
    }
    const auto indices = [&](const Matrix& s) {
        const Eigen::VectorXd h = sensing.transpose() * s.reshaped();
        channels::Rows rows(n, pairs);
        for (Eigen::Index k = 0; k < n * pairs; ++k) rows(k / pairs, k % pairs) = h[k];
        return rows;
    };
    channels::Rows y(n, channel->outputs());
    channel->draw(indices(truth), seed, 0, y);
    const linalg::Overlap none = linalg::zero_overlap(1);
    double value = 0;
    const auto pulled = [&](const Matrix& s) {  // minus the gradient
        channels::Rows g(n, pairs);
        Eigen::VectorXd log_z(n);
        loss->score(y, indices(s), none, g, log_z);
        value = -log_z.sum();
        Eigen::VectorXd flat(n * pairs);
        for (Eigen::Index k = 0; k < n * pairs; ++k) flat[k] = g(k / pairs, k % pairs);
        return Matrix((sensing * flat).reshaped(d, d));
    };
    // ||sum Z Z'|| is about (1 + sqrt(2 pairs alpha))^2 d; softmax has a curvature of at most beta^2/4 a row.
    const double dim = static_cast<double>(d),
                 lipschitz = 2.2 * dim *
                             std::pow(1 + std::sqrt(2 * static_cast<double>(pairs) * setting.alpha), 2) *
                             (setting.loss == "cross-entropy" ? 0.5 : 1);
    Matrix s = Matrix::Zero(d, d), previous = s, point = s;
    double momentum = 1, zeros = 0;
    for (int step = 0; step < 400; ++step) {
        const Matrix r = point + pulled(point) / lipschitz;
        previous = s;
        if (setting.penalty == Penalty::frobenius) {
            s = r / (1 + setting.lambda * dim / lipschitz);
        } else {
            const auto [values, vectors] = linalg::symmetric_eigen(r);
            const Eigen::VectorXd kept = (values.array() - setting.lambda * dim / lipschitz).max(0);
            zeros = static_cast<double>((kept.array() == 0).count()) / dim;
            s = vectors * kept.asDiagonal() * vectors.transpose();
        }
        if ((s - previous).norm() < 1e-7 * (1e-9 + s.norm())) break;
        const bool against = (point - s).cwiseProduct(s - previous).sum() > 0;
        const double next = against ? 1 : 0.5 * (1 + std::sqrt(1 + 4 * momentum * momentum));
        point = s + (against ? 0 : (momentum - 1) / next) * (s - previous);
        momentum = next;
    }
    pulled(s);
    measured.error.push_back((s - truth).squaredNorm() / dim);
    measured.training.push_back(value / static_cast<double>(n));
    measured.zeros.push_back(zeros);
}

void expect_within(const std::vector<double>& values, double expected, double allowed, const char* what) {
    const numerics::Mean mean = numerics::mean_of(values).value();
    EXPECT_NEAR(mean.value, expected, allowed * expected + 3 * mean.standard_error.value()) << what;
}

class SensingMatrices : public testing::TestWithParam<Setting> {};

/// d(d+1)/2 coordinates instead of d^2/2: alpha and lambda times d/(d+1) in the theory.
TEST_P(SensingMatrices, TrainingAgreesWithTheory) {
    const Setting& setting = GetParam();
    constexpr Eigen::Index d = 54;
    constexpr int seeds = 12;
    Measured measured;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) minimise(setting, d, seed, measured);
    const double factor = static_cast<double>(d) / (d + 1);
    theory::ErmOptions options;
    options.penalty = setting.penalty;
    const auto point =
        theory::solve_erm(priors::Wishart(0.5).law(), *losses::make_loss(setting.loss, *channel_of(setting)),
                          factor * setting.alpha, factor * setting.lambda, options);
    expect_within(measured.error, point.error, 0, "error");
    expect_within(measured.training, point.training_loss, 0, "training loss");
    if (setting.penalty == Penalty::trace)
        expect_within(measured.zeros, point.zero_fraction, 0, "zero fraction");
}

INSTANTIATE_TEST_SUITE_P(Erm, SensingMatrices,
                         testing::Values(Setting{"linear", "square", 0.1, 0.2},
                                         Setting{"softmax", "logit", 0.12, 0.05},
                                         Setting{"softmax", "cross-entropy", 0.12, 0.05},
                                         Setting{"linear", "square", 0.1, 0.2, Penalty::frobenius}));

class TrainedOnTokens : public testing::TestWithParam<Setting> {};

/// 3% for what is left of finite d; a wrong factor anywhere is 10% and more.
TEST_P(TrainedOnTokens, AgreesWithTheoryAtLargeDimension) {
    const Setting& setting = GetParam();
    const auto channel = channel_of(setting);
    const auto loss = losses::make_loss(setting.loss, *channel);
    const priors::Wishart prior(0.5);
    ThreadPool pool(0);
    estimators::ErmOptions options;
    options.regularization = setting.lambda;
    options.penalty = setting.penalty;
    options.tolerance = 1e-5;
    Measured measured;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const data::Synthetic problem =
            data::make_synthetic(prior, *channel, {.dim = 200, .alpha = setting.alpha, .seed = seed}, pool);
        const auto result = estimators::run_erm(problem.data, *loss, options, pool);
        EXPECT_EQ(result.status, Termination::converged);
        measured.error.push_back(data::estimation_error(result.estimate, problem.weights[0]));
        measured.training.push_back(result.training_loss);
        measured.zeros.push_back(result.zero_fraction);
    }
    theory::ErmOptions theory_options;
    theory_options.penalty = setting.penalty;
    const auto point = theory::solve_erm(prior.law(), *loss, setting.alpha, setting.lambda, theory_options);
    expect_within(measured.error, point.error, 0.03, "error");
    // Tokens leave more loss than sensing matrices do: 4% at this dimension, 8% at d = 100.
    expect_within(measured.training, point.training_loss, 0.05, "training loss");
    if (setting.penalty == Penalty::trace)
        expect_within(measured.zeros, point.zero_fraction, 0.03, "zero fraction");
}

INSTANTIATE_TEST_SUITE_P(Erm, TrainedOnTokens,
                         testing::Values(Setting{"linear", "square", 0.1, 0.2},
                                         Setting{"softmax", "logit", 0.12, 0.2},
                                         Setting{"softmax", "cross-entropy", 0.12, 0.05},
                                         Setting{"linear", "square", 0.1, 0.2, Penalty::frobenius}));

/// Half the loss of gradient descent with weight decay L on W, of width m >= d, is the training loss with
/// lambda = (L/2) sqrt(m/d): every start finds the minimum of the solver.
TEST(WeightDecay, EveryStartReachesTheMinimumOfTraining) {
    ThreadPool pool(1);
    for (const auto& [setting, decay, rate] : {std::tuple(Setting{"linear", "square", 0.15, 0.2}, 0.4, 0.02),
                                               {Setting{"softmax", "square", 0.15, 0.02}, 0.04, 0.2}}) {
        const auto channel = channel_of(setting);
        const auto loss = losses::make_loss(setting.loss, *channel);
        constexpr Eigen::Index d = 30;
        const data::Synthetic problem = data::make_synthetic(
            priors::Wishart(0.5), *channel, {.dim = d, .alpha = setting.alpha, .seed = 2}, pool);
        estimators::ErmOptions options;
        options.regularization = setting.lambda;
        const auto minimum = estimators::run_erm(problem.data, *loss, options, pool);
        ASSERT_EQ(minimum.status, Termination::converged);
        estimators::GradientDescentOptions descent;
        descent.width = d;
        descent.weight_decay = decay;
        descent.optimizer = estimators::Optimizer::gradient_descent;
        descent.learning_rate = rate;
        descent.max_steps = 4000;
        descent.precision = data::Precision::double_precision;
        const auto student = estimators::make_gradient_descent(problem.data, *channel, descent, pool);
        for (const std::uint64_t start : {0, 1, 2}) {
            estimators::Descent one = student->start(start);
            student->advance(one, 5000, &pool);
            const double objective = 0.5 * one.record.back().loss / (d * d);
            EXPECT_NEAR(objective, minimum.objective, 1e-4 * minimum.objective) << setting.channel << start;
            EXPECT_GT(objective, minimum.objective * (1 - 1e-9)) << "nothing is below the minimum";
            EXPECT_LT((one.estimate() - minimum.estimate).norm(), 0.02 * minimum.estimate.norm());
        }
    }
}

TEST(TrainedSpectrum, IsThatOfATrainedMatrix) {
    const Setting setting{"linear", "square", 0.1, 0.2};
    const auto channel = channel_of(setting);
    const auto loss = losses::make_loss(setting.loss, *channel);
    const priors::Wishart prior(0.5);
    ThreadPool pool(0);
    constexpr Eigen::Index d = 240;
    const data::Synthetic problem =
        data::make_synthetic(prior, *channel, {.dim = d, .alpha = setting.alpha, .seed = 5}, pool);
    estimators::ErmOptions options;
    options.regularization = setting.lambda;
    options.tolerance = 1e-5;
    const linalg::Vector values =
        linalg::symmetric_eigenvalues(estimators::run_erm(problem.data, *loss, options, pool).estimate);
    const auto point = theory::solve_erm(prior.law(), *loss, setting.alpha, setting.lambda);
    const theory::TrainedSpectrum spectrum(prior.law(), point, Penalty::trace);
    // The largest distance of the cumulatives: eigenvalues are rigid, so it is a few 1/d, and 3% of finite d.
    double cumulative = point.zero_fraction, x = 0, worst = 0;
    const double end = spectrum.edges().back().high, step = end / 4000;
    Eigen::Index next = 0;
    while (next < d && values[next] < 1e-9) ++next;
    for (; x < end; x += step) {
        cumulative += step * spectrum.density(x + 0.5 * step);
        while (next < d && values[next] <= x + step) ++next;
        worst = std::max(worst, std::abs(cumulative - static_cast<double>(next) / static_cast<double>(d)));
    }
    EXPECT_NEAR(cumulative, 1, 1e-4);
    EXPECT_LT(worst, 0.03);
    EXPECT_LT(values[d - 1], end * 1.05);
}

}  // namespace
}  // namespace bayesaim
