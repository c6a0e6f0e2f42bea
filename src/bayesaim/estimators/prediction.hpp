// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/tokens.hpp"

namespace bayesaim::estimators {

/// Predicted outputs of new samples, n x T^2.
struct Prediction {
    channels::Rows bayes_optimal;  ///< E[g(htilde)], htilde ~ N(omega, V), V = 2 error
    channels::Rows plug_in;        ///< g(omega)
};

/// From an estimate Shat of the weights and its error C per dimension (as AMP predicts it):
///   omega_ab = tau_ab (x_a' Shat x_b - delta_ab Tr Shat) / sqrt(d).
/// Pinned by: Prediction.MeasuredErrorIsThatOfTheory.
Prediction predict(const data::TokenSource& tokens, const linalg::Matrix& estimate, double error,
                   const channels::Channel& channel, ThreadPool& pool);

/// Mean over the samples of the squared distance to the targets, a row of T^2 for each sample.
double mean_squared_distance(const channels::Rows& prediction, const channels::Rows& targets);

}  // namespace bayesaim::estimators
