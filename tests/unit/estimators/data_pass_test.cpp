// SPDX-License-Identifier: MIT
// One pass over the data, against sums over sensing matrices that are written out.
#include "bayesaim/estimators/data_pass.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/linalg/random_matrix.hpp"

namespace bayesaim::estimators {
namespace {

using channels::Attention;
using linalg::Matrix;

struct Problem {
    static constexpr Eigen::Index dim = 9, samples = 30;
    ThreadPool pool{1};
    std::unique_ptr<channels::Channel> channel;
    data::Dataset data;
    Matrix estimate;

    explicit Problem(Attention attention)
        : channel(
              channels::make_channel("linear", {.tokens = 2, .label_noise = 0.3, .attention = attention})) {
        const channels::Geometry geometry = channel->geometry();
        data.tokens = data::gaussian_tokens(samples, geometry.queries, dim, 1, data::TokenStorage::memory,
                                            data::Precision::double_precision, pool);
        if (geometry.separate_keys())
            data.key_tokens =
                data::gaussian_tokens(samples, geometry.keys, dim, 1, data::TokenStorage::memory,
                                      data::Precision::double_precision, pool, Purpose::key_tokens);
        estimate = linalg::gaussian_matrix(dim, dim, RandomStream(1, Purpose::weights), pool);
        if (geometry.symmetric()) estimate = Matrix(estimate + estimate.transpose());
        const Matrix index =
            linalg::gaussian_matrix(samples, channel->pairs(), RandomStream(2, Purpose::noise), pool);
        data.outputs.resize(samples, channel->outputs());
        channel->draw(index, 1, 0, data.outputs);
    }

    /// Z of each pair of a sample, htilde = Tr Z'S: x_a z_b'/sqrt(d), and for tied attention
    /// (x_a x_b' + x_b x_a')/sqrt(2 d) or (x_a x_a' - 1)/sqrt(d).
    std::vector<Matrix> sensing(Eigen::Index i) const {
        const channels::Geometry geometry = channel->geometry();
        Matrix scratch, key_scratch;
        const Range one{static_cast<std::size_t>(i), static_cast<std::size_t>(i) + 1};
        const Matrix x = data.tokens->block(one, scratch), z = data.keys().block(one, key_scratch);
        std::vector<Matrix> result(static_cast<std::size_t>(geometry.pairs()), Matrix::Zero(dim, dim));
        for (int a = 0; a < geometry.queries; ++a) {
            for (int b = geometry.symmetric() ? a : 0; b < geometry.keys; ++b) {
                if (!geometry.sees(a, b)) continue;
                Matrix outer = x.col(a) * z.col(b).transpose();
                if (geometry.symmetric() && a != b)
                    outer = (outer + outer.transpose()).eval() / std::sqrt(2.0);
                if (geometry.symmetric() && a == b) outer -= Matrix::Identity(dim, dim);
                result[static_cast<std::size_t>(geometry.pair(a, b))] = outer / 3;  // sqrt(d)
            }
        }
        return result;
    }

    channels::Rows indices() const {
        channels::Rows index(samples, channel->pairs());
        for (Eigen::Index i = 0; i < samples; ++i) {
            const auto z = sensing(i);
            for (std::size_t p = 0; p < z.size(); ++p)
                index(i, static_cast<Eigen::Index>(p)) = z[p].cwiseProduct(estimate).sum();
        }
        return index;
    }

    channels::Rows score(const channels::Rows& omega, double variance) const {
        channels::Rows g(omega.rows(), omega.cols());
        Eigen::VectorXd none(0);
        channel->score(data.outputs, omega, linalg::scalar_overlap(variance), g, none);
        return g;
    }
};

class DataPass : public ::testing::TestWithParam<Attention> {};
INSTANTIATE_TEST_SUITE_P(Every, DataPass,
                         ::testing::Values(Attention::tied, Attention::cross, Attention::masked),
                         [](const auto& one) { return std::string(channels::to_string(one.param)); });

/// omega = Tr Z'S, and the pull sum g Z. Without - 1 in Z_aa, or with S' for S, both are other numbers.
TEST_P(DataPass, SumsScoresTimesSensingMatrices) {
    Problem problem(GetParam());
    Messages messages;
    const std::vector<Matrix> estimates{problem.estimate};
    const Pass pass = pass_over_data(problem.data, *problem.channel,
                                     {.estimates = estimates,
                                      .variance = linalg::scalar_overlap(0.7),
                                      .onsager = linalg::scalar_overlap(5)},
                                     messages, problem.pool);
    const channels::Rows omega = problem.indices(), g = problem.score(omega, 0.7);
    EXPECT_LT((messages.omega - omega).norm(), 1e-12 * omega.norm());  // no Onsager term before the first g
    EXPECT_LT((messages.g - g).norm(), 1e-12 * g.norm());
    EXPECT_NEAR(pass.power(0, 0), g.squaredNorm(), 1e-12 * g.squaredNorm());
    Matrix pulled = Matrix::Zero(Problem::dim, Problem::dim);
    for (Eigen::Index i = 0; i < Problem::samples; ++i) {
        const auto z = problem.sensing(i);
        for (std::size_t p = 0; p < z.size(); ++p) pulled += g(i, static_cast<Eigen::Index>(p)) * z[p];
    }
    EXPECT_LT((pass.pulled[0] - pulled).norm(), 1e-12 * pulled.norm());
}

/// omega and V keep `damping` of what they were, 0.3 and not 0.7, and the new omega is Tr Z'S less Onsager's term O g.
TEST_P(DataPass, DampsMessagesAndSubtractsOnsagersTerm) {
    Problem problem(GetParam());
    Messages messages;
    const std::vector<Matrix> estimates{problem.estimate};
    PassInput input{.estimates = estimates,
                    .variance = linalg::scalar_overlap(0.7),
                    .onsager = linalg::scalar_overlap(0.4),
                    .damping = 0.3};
    pass_over_data(problem.data, *problem.channel, input, messages, problem.pool);
    input.variance = linalg::scalar_overlap(0.2);
    const channels::Rows before = problem.indices(),
                         after = 0.3 * before + 0.7 * (before - 0.4 * problem.score(before, 0.7));
    pass_over_data(problem.data, *problem.channel, input, messages, problem.pool);
    EXPECT_LT((messages.omega - after).norm(), 1e-12 * after.norm());
    EXPECT_NEAR(messages.variance(0, 0), 0.3 * 0.7 + 0.7 * 0.2, 1e-15);
    const channels::Rows g = problem.score(after, 0.3 * 0.7 + 0.7 * 0.2);
    EXPECT_LT((messages.g - g).norm(), 1e-12 * g.norm());
}

}  // namespace
}  // namespace bayesaim::estimators
