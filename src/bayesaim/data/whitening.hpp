// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <span>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/data/token_statistics.hpp"
#include "bayesaim/data/tokens.hpp"
#include "bayesaim/linalg/blas.hpp"

/// Tokens made as the theory assumes them, and back. With z = C^{-1/2} (x - m), C and m the covariance and
/// the mean, and a symmetric S,
///   x_a' S x_b = z_a' S' z_b + b.z_a + b.z_b + m' S m,     S' = C^{1/2} S C^{1/2},  b = C^{1/2} S m,
/// so S' is learned from the white tokens z and S = C^{-1/2} S' C^{-1/2}.
namespace bayesaim::data {

/// z = inverse_root (x - mean), symmetric roots. Roots without entries are the identity: z = x - mean.
struct Whitening {
    linalg::Vector mean;
    linalg::Matrix root, inverse_root;
    double condition = 1;  ///< largest over smallest eigenvalue of the covariance

    bool identity() const { return root.size() == 0; }  ///< whether it subtracts the mean only
};

/// Roots of the covariance. Throws InvalidArgument unless N >= 10 d (fewer tokens do not know their
/// covariance) and the tokens span R^d: no eigenvalue below 1e-10 of the largest.
Whitening whitening_of(const TokenStatistics& statistics);

/// Subtracts the mean only.
Whitening centring_of(const TokenStatistics& statistics);

/// A copy of the tokens after whitening, in memory, of the same precision.
std::shared_ptr<const TokenSource> whitened(const TokenSource& source, const Whitening& whitening,
                                            ThreadPool& pool);

/// S' = root_q S root_k, and S = inverse_root_q S' inverse_root_k. Queries and keys have one whitening
/// unless keys are other tokens.
linalg::Matrix whitened_weights(const linalg::ConstMatrixRef& weights, const Whitening& queries,
                                const Whitening& keys);
linalg::Matrix unwhitened_weights(const linalg::ConstMatrixRef& weights, const Whitening& queries,
                                  const Whitening& keys);

/// A copy of the tokens at one length, x/sqrt(s) with s = |x|^2/d, in memory, of the same precision. The N
/// values of s are written to `squared_lengths`, in the order of TokenSource::block. Throws InvalidArgument
/// for a token that is 0.
std::shared_ptr<const TokenSource> length_normalised(const TokenSource& source,
                                                     linalg::Vector& squared_lengths, ThreadPool& pool);

/// The tokens of these samples, in this order; a sample may come twice. Blocks are copied when they are
/// asked for, and those of neighbouring samples are not copied at all.
std::shared_ptr<const TokenSource> token_subset(std::shared_ptr<const TokenSource> source,
                                                std::span<const Eigen::Index> samples);

}  // namespace bayesaim::data
