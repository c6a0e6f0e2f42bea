// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/data/whitening.hpp"
#include "bayesaim/estimators/fit.hpp"

/// The tokens of a fit: made as the theory wants them, and back.
namespace bayesaim::estimators {

constexpr double significant = 4;       ///< standard errors
constexpr double not_white = 5;         ///< whiteness of tokens, in standard errors
constexpr double spread_lengths = 1.3;  ///< gamma beyond which lengths count as unequal

struct Prepared {
    data::Dataset data;  ///< at one length the outputs have the lengths beside them (UnequalLengths)
    data::Whitening queries, keys;
    TokenReport report;
};

/// Throws InvalidArgument for data that no fit can use.
void check_data(const data::Dataset& data, const channels::Channel& channel, Communicator& ranks);

/// White tokens of mean 0, at one length if lengths differ much; as they are where the prior is given.
Prepared prepare(const data::Dataset& data, const channels::Channel& channel, const FitOptions& options,
                 ThreadPool& pool);

/// Estimate and terms for the tokens as they were given: with z = W (x - m) and S = W_q S' W_k,
///   z_a' S' z_b = x_a' S x_b - x_a' S m_k - m_q' S x_b + m_q' S m_k.
void undo_whitening(const Prepared& prepared, const channels::Geometry& geometry, FitResult& result);

}  // namespace bayesaim::estimators
