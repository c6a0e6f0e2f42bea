// SPDX-License-Identifier: MIT
#pragma once
#include <span>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/data/linear_terms.hpp"
#include "bayesaim/data/tokens.hpp"

namespace bayesaim::estimators {

/// Predicted outputs of new samples, n x T^2.
struct Prediction {
    channels::Rows bayes_optimal;  ///< E[g(htilde)], htilde ~ N(omega, V), V = v error
    channels::Rows plug_in;        ///< g(omega)
};

/// Predicts from the estimates Shat_l of all layers and their error C (as AMP predicts it), L x L:
///   omega^l_ab = tau_ab (x_a' Shat_l x_b - delta_ab Tr Shat_l) / sqrt(d).
/// Pinned by: Prediction.MeasuredErrorIsThatOfTheory,
/// AmpOfSeveralLayers.PosteriorPredictionBeatsThePlugInRule.
Prediction predict(const data::TokenSource& tokens, std::span<const linalg::Matrix> estimates,
                   const linalg::Overlap& error, const channels::Channel& channel, ThreadPool& pool);
/// With the keys of cross-attention; they are the tokens themselves in other geometries. `terms` are added to omega.
Prediction predict(const data::TokenSource& tokens, const data::TokenSource& keys,
                   std::span<const linalg::Matrix> estimates, const linalg::Overlap& error,
                   const channels::Channel& channel, ThreadPool& pool, const data::LinearTerms& terms = {});
/// One layer.
Prediction predict(const data::TokenSource& tokens, const linalg::Matrix& estimate, double error,
                   const channels::Channel& channel, ThreadPool& pool);

/// From omega itself.
Prediction predict(const channels::ConstRowsRef& omega, const linalg::Overlap& error,
                   const channels::Channel& channel, ThreadPool& pool);

/// omega of the samples: htilde of the estimates, and the linear terms.
channels::Rows predicted_indices(const data::Dataset& data, std::span<const linalg::Matrix> estimates,
                                 const data::LinearTerms& terms, const channels::Channel& channel,
                                 ThreadPool& pool);

/// The posterior standard deviation of each output without its label noise, n x T^2: that of g(htilde) over
/// htilde ~ N(omega, V), by 128 draws.
channels::Rows prediction_deviation(const channels::ConstRowsRef& omega, const linalg::Overlap& error,
                                    const channels::Channel& channel, ThreadPool& pool);

/// A draw of htilde ~ N(omega, V) for samples first_sample, first_sample + 1, ..; `root` is Cholesky's of V. The same
/// number of a draw gives the same bits; with `opposite` the other side of omega.
void draw_indices(const channels::ConstRowsRef& omega, const linalg::Overlap& root, std::uint64_t draw,
                  bool opposite, Eigen::Index first_sample, channels::Rows& index);

/// Mean over the samples of the squared distance to the targets, a row of T^2 for each sample.
double mean_squared_distance(const channels::Rows& prediction, const channels::Rows& targets,
                             const Shares& shares, ThreadPool& pool);
double mean_squared_distance(const channels::Rows& prediction,
                             const channels::Rows& targets);  ///< one process

}  // namespace bayesaim::estimators
