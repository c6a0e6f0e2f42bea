// SPDX-License-Identifier: MIT
#include "bayesaim/channels/softmax.hpp"

#include <gtest/gtest.h>

#include "bayesaim/channels/linear.hpp"

namespace bayesaim::channels {
namespace {

/// At beta h = 5000 probabilities underflow; their logarithms and the score do not.
TEST(Softmax, ScoreIsFiniteWhereProbabilitiesUnderflow) {
    const Softmax channel(3, 1000);
    Rows index(1, 6), outputs(1, 9), omega = Rows::Zero(1, 6), g(1, 6);
    index << 5, -3, 1, 2, -4, 0.5;
    channel.draw(index, 0, 0, outputs);
    EXPECT_LT(outputs.minCoeff(), -745);  // exp of it is zero in double precision
    Eigen::VectorXd log_z(1);
    channel.score(outputs, omega, linalg::scalar_overlap(0.5), g, log_z);
    // g V is the part of htilde orthogonal to tau.
    const Eigen::VectorXd tau = pair_scales(3), h = index.row(0);
    const Eigen::VectorXd expected = (h - tau * tau.dot(h) / 9) / 0.5;
    EXPECT_LT((g.row(0).transpose() - expected).norm(), 1e-11 * expected.norm());
}

TEST(Softmax, ScoreDoesNotDependOnBeta) {
    Rows index(1, 6), outputs(1, 9), omega(1, 6), g(1, 6), reference(1, 6);
    index << 0.5, -0.3, 1, 0.2, -0.4, 0.7;
    omega << 0.1, 0.2, -0.3, 0.4, 0.5, -0.6;
    Eigen::VectorXd log_z(0);
    for (const double beta : {1.0, 1e-3, 1e3}) {
        const Softmax channel(3, beta);
        channel.draw(index, 0, 0, outputs);
        channel.score(outputs, omega, linalg::scalar_overlap(0.5), g, log_z);
        if (beta == 1) reference = g;
        EXPECT_LT((g - reference).norm(), 1e-11);  // log y / beta loses the digits of beta h
    }
}

TEST(Softmax, RejectsWhatHasNoMeaning) {
    EXPECT_THROW(Softmax(1), std::invalid_argument);
    EXPECT_THROW(Softmax(2, 0), std::invalid_argument);
    EXPECT_THROW(Softmax(2, -1), std::invalid_argument);
    EXPECT_THROW(Softmax(2, std::numeric_limits<double>::infinity()), std::invalid_argument);
    EXPECT_THROW(Linear(2, -0.1), std::invalid_argument);
    EXPECT_THROW(Linear(0), std::invalid_argument);
}

}  // namespace
}  // namespace bayesaim::channels
