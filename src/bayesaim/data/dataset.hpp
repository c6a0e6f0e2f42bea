// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/tokens.hpp"
#include "bayesaim/priors/prior.hpp"

namespace bayesaim::data {

/// What an estimator sees: tokens and outputs. Outputs are as the channel draws them, n x T^2
/// (log-probabilities for softmax).
struct Dataset {
    std::shared_ptr<const TokenSource> tokens;
    channels::Rows outputs;

    double alpha() const {
        const double d = static_cast<double>(tokens->dim());
        return static_cast<double>(tokens->samples()) / (d * d);
    }
};

struct SyntheticOptions {
    Eigen::Index dim = 100;  ///< d
    double alpha = 0.1;      ///< n = alpha d^2, rounded, at least 1
    std::uint64_t seed = 0;
    TokenStorage storage = TokenStorage::memory;
    Precision precision = Precision::double_precision;
    bool test = false;  ///< other samples, of the teacher that the same seed has without it
};

/// A teacher and the data it labelled.
struct Synthetic {
    linalg::Matrix weights;  ///< S, the truth
    Dataset data;
};

/// S from the prior, standard normal tokens, outputs from the channel; every part addressed by the seed.
Synthetic make_synthetic(const priors::Prior& prior, const channels::Channel& channel,
                         const SyntheticOptions& options, ThreadPool& pool);

/// New samples of the same teacher, with tokens of their own, and what predictions of them are compared with.
struct TestSet {
    std::shared_ptr<const TokenSource> tokens;
    channels::Rows targets;  ///< outputs as Channel::predict gives them, without label noise
};
TestSet make_test_set(const linalg::Matrix& weights, const channels::Channel& channel, Eigen::Index samples,
                      std::uint64_t seed, ThreadPool& pool);

/// Throws InvalidArgument unless the outputs have the shape and the values that the channel can produce:
/// finite numbers, symmetric (linear), rows of log-probabilities whose exponentials sum to 1 (softmax),
/// one-hot rows (hardmax), rows of numbers between 0 and their known sum (deep-seq2seq).
void check_outputs(const channels::Channel& channel, const Dataset& data);

/// ||estimate - weights||_F^2 / d
double estimation_error(const linalg::Matrix& estimate, const linalg::Matrix& weights);

}  // namespace bayesaim::data
