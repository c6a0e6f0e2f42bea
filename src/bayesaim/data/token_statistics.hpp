// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/data/tokens.hpp"
#include "bayesaim/linalg/blas.hpp"

namespace bayesaim::data {

/// What the law of the tokens must be for the theory to hold, measured on all N = n T tokens x in R^d.
/// Theory assumes white tokens of mean 0; beyond that only gamma matters, unless few entries dominate (f4).
struct TokenStatistics {
    Eigen::Index count = 0;     ///< N
    linalg::Vector mean;        ///< m
    linalg::Matrix covariance;  ///< (1/N) sum (x - m)(x - m)', both triangles

    /// z = (N W - d - 1)/2 with the statistic of Ledoit and Wolf (2002), M = (1/N) sum x x' and tr =
    /// Trace/d:
    ///   W = tr (M - I)^2 - (d/N)(tr M)^2 + d/N.
    /// Standard normal for white Gaussian tokens of mean 0, for any d/N.
    double whiteness = 0;
    /// (N |m|^2 - d)/sqrt(2 d): standard normal for the same tokens, if d is large.
    double mean_score = 0;
    /// gamma = d Var(|x - m|^2) / (2 (E |x - m|^2)^2): 1 +- sqrt(2/N) for white Gaussian tokens, 0 if all
    /// lengths are equal. It does not depend on the scale of the tokens. 0 if all tokens are the same.
    double length_spread = 0;
    /// f4, the mean of d sum_i x_i^4 / |x|^4 over the tokens that are not 0: 3 for Gaussian tokens, d/k for
    /// k equal entries. 0 if all tokens are 0.
    double concentration = 0;
};

/// Two passes over the tokens, in double precision. The same bits for any number of threads and any storage.
TokenStatistics token_statistics(const TokenSource& source, ThreadPool& pool);

}  // namespace bayesaim::data
