// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/tokens.hpp"
#include "bayesaim/priors/prior.hpp"

namespace bayesaim::data {

/// The input of an estimator: tokens, and outputs as the channel draws them, n x T^2. Outputs of softmax are
/// log-probabilities. Among several ranks each has the rows of its own samples (Shares::own_samples); others are not
/// set, and as nobody touches them they take no memory.
struct Dataset {
    std::shared_ptr<const TokenSource> tokens;
    channels::Rows outputs;
    std::shared_ptr<const TokenSource> key_tokens{};  ///< of cross-attention; otherwise none

    const TokenSource& keys() const { return key_tokens ? *key_tokens : *tokens; }
    const Shares& shares() const { return tokens->shares(); }

    /// n/d^2; if keys have another dimension, n/(d1 d2).
    double alpha() const {
        return static_cast<double>(tokens->samples()) /
               (static_cast<double>(tokens->dim()) * static_cast<double>(keys().dim()));
    }
};

struct SyntheticOptions {
    Eigen::Index dim = 100;  ///< d; rows d1 of rectangular weights, whose prior fixes d2
    double alpha = 0.1;      ///< n = alpha d^2 or alpha d1 d2, rounded, at least 1
    std::uint64_t seed = 0;
    TokenStorage storage = TokenStorage::memory;
    Precision precision = Precision::double_precision;
    bool test = false;  ///< new samples of the teacher that this seed gives
};

/// A teacher and the data it labelled.
struct Synthetic {
    std::vector<linalg::Matrix> weights;  ///< S_1 .. S_L, the truth
    Dataset data;
};

/// Draws each S_l from its prior (stream l), standard normal tokens, and outputs from the channel. The seed
/// fixes every number.
Synthetic make_synthetic(std::span<const priors::Prior* const> priors, const channels::Channel& channel,
                         const SyntheticOptions& options, ThreadPool& pool);
/// One layer.
Synthetic make_synthetic(const priors::Prior& prior, const channels::Channel& channel,
                         const SyntheticOptions& options, ThreadPool& pool);

/// New samples of the same teacher, and the targets of their predictions.
struct TestSet {
    std::shared_ptr<const TokenSource> tokens;
    channels::Rows targets;  ///< outputs as Channel::predict gives them, without label noise
    std::shared_ptr<const TokenSource> key_tokens{};  ///< of cross-attention; otherwise none

    const TokenSource& keys() const { return key_tokens ? *key_tokens : *tokens; }
};
TestSet make_test_set(std::span<const linalg::Matrix> weights, const channels::Channel& channel,
                      Eigen::Index samples, std::uint64_t seed, ThreadPool& pool);

/// Throws InvalidArgument unless there are tokens, and key tokens, as the channel's geometry needs them. The keys of
/// cross-attention may have another dimension.
void check_tokens(const channels::Geometry& geometry, const TokenSource& tokens, const TokenSource& keys);

/// Throws InvalidArgument unless the outputs, those of this rank, fit the tokens and pass Channel::check_outputs.
void check_outputs(const channels::Channel& channel, const Dataset& data,
                   const Communicator& ranks = one_process());

/// The rows of these samples.
template <class Rows>
auto rows_of(Rows& rows, Range samples) {
    return rows.middleRows(static_cast<Eigen::Index>(samples.begin),
                           static_cast<Eigen::Index>(samples.size()));
}

/// Tr(S_l^T S_k) / d, L x L; d is sqrt(d1 d2) for weights of d1 x d2, here and below.
linalg::Overlap self_overlaps(std::span<const linalg::Matrix> weights);

/// Tr((estimate_l - S_l)'(estimate_k - S_k)) / d, L x L; with two parts of S that of the parts, diag(E_s, E_a).
linalg::Overlap estimation_errors(const channels::Geometry& geometry,
                                  std::span<const linalg::Matrix> estimates,
                                  std::span<const linalg::Matrix> weights);

linalg::Overlap estimation_errors(std::span<const linalg::Matrix> estimates,
                                  std::span<const linalg::Matrix> weights);  ///< each S as a whole

/// ||estimate - weights||_F^2 / d
double estimation_error(const linalg::Matrix& estimate, const linalg::Matrix& weights);

}  // namespace bayesaim::data
