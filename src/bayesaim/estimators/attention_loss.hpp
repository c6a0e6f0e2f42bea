// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/dataset.hpp"

namespace bayesaim::estimators {

/// The part of a geometry that the loss depends on.
struct LossGeometry {
    bool tied = true;            ///< one factor W for queries and keys
    bool separate_keys = false;  ///< keys are another set of tokens
    Eigen::Index queries = 2, keys = 2;
    std::vector<std::pair<Eigen::Index, Eigen::Index>> pairs{};  ///< (a, b) that are seen, row by row

    explicit LossGeometry(const channels::Geometry& geometry);
    LossGeometry() = default;
    Eigen::Index factors() const { return tied ? 1 : 2; }
};

/// The squared loss of an attention student and its gradient, in float or double. Tied attention, W d x r:
///   L(W) = sum_samples sum_ab (y_ab - g(h)_ab)^2,   h_ab = c (p_a . p_b - delta_ab ||W||_F^2)
///   P = X W,  c = 1 / (sqrt(r) d),  g = softmax of beta h row by row, or h itself (linear channel)
///   dL/dW = c [X' (Gamma P) - 2 Tr(G) W],   G = dL/dh,  Gamma = G + G'
/// Untied attention, W = [W_Q | W_K] d x 2r, tokens X of the queries and Z, which may be X, of the keys:
///   h_ab = c (p_a . k_b - delta_ab Tr W_Q W_K'),   P = X W_Q,  K = Z W_K
///   dL/dW_Q = c [X' (G K) - Tr(G) W_K],   dL/dW_K = c [Z' (G' P) - Tr(G) W_Q]
/// The traces belong to tokens that attend to themselves: where Z is not X, or the diagonal is not seen,
/// there are none. Pairs that are not seen are in neither softmax nor loss. A wide student is multiplied
/// out: with A = W_Q W_K',
///   P = X A,  K = Z,   dL/dW_Q = c [M W_K - Tr(G) W_K],   dL/dW_K = c [M' W_Q - Tr(G) W_Q],   M = X' (G Z),
/// which takes T_q d instead of (T_q + T_k) r multiplications for each sample and row of W.
///
/// Two products with W per evaluation; the T x T part works in place on P while a block of it is in the
/// cache. Token a of all samples of a block lies together, so that everything between the products runs
/// over samples. Blocks and the tree of their sums are fixed: the bits depend neither on threads and ranks nor on
/// other descents.
/// Pinned by: AttentionLoss.GradientIsThatOfFiniteDifferences, UntiedGradientIsThatOfFiniteDifferences.
template <class Scalar>
class AttentionLoss {
  public:
    using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

    /// Copies tokens and outputs, those of this rank. The channel must have a smooth output.
    AttentionLoss(const data::Dataset& data, const channels::Channel& channel, ThreadPool& pool);
    /// The same for any pairs. Outputs are queries x keys; those that are not seen are not read.
    AttentionLoss(const data::Dataset& data, const channels::SmoothOutput& output, LossGeometry geometry,
                  ThreadPool& pool);

    /// The loss of a mini-batch times n/(samples of the batch): an estimate of the loss of all samples. One process
    /// must have all samples.
    AttentionLoss subset(std::span<const Eigen::Index> samples) const;

    Eigen::Index samples() const { return samples_; }
    Eigen::Index dim() const { return dim_; }
    int factors() const { return static_cast<int>(geometry_.factors()); }  ///< of W: 1, or 2 for [W_Q | W_K]

    /// The loss at W, and its gradient. Without a pool the calling thread works alone, and must have all samples.
    double evaluate(const Matrix& weights, Matrix& gradient, ThreadPool* pool = nullptr) const;

  private:
    struct Block {
        /// Row a padded + i is token a of sample i, zeros behind the last; separate keys follow the queries.
        Matrix tokens;
        Matrix outputs;  ///< padded x (pairs + 1): y of the pairs seen, then 1 for a sample and 0 for padding
    };
    struct Sums {
        Matrix pulled;  ///< X' (Gamma P), or [X' (G K) | Z' (G' P)], or M
        double loss = 0, trace = 0;

        void add(const Sums& other);
        void for_parts(const std::function<void(std::span<std::byte>)>& use);
    };
    /// A pair that is seen, as its query or its key sees it: its place among the pairs, and the other token.
    struct Link {
        std::size_t pair, other;
    };
    using Links = std::vector<std::vector<Link>>;
    struct Student {
        Matrix map;          // what tokens are multiplied with: W, or A
        Eigen::Index width;  // r
        bool merged;         // the map is A
        double trace;        // ||W||_F^2, or Tr W_Q W_K'
    };
    struct Panel;    // lanes of samples of one projected block
    struct Scratch;  // of between_products

    AttentionLoss(const AttentionLoss& all, std::size_t samples);
    Block empty_block(Eigen::Index count) const;
    void copy_tokens(const data::TokenSource& source, Range range, Eigen::Index first, Block& block) const;
    std::size_t block_size() const;
    Eigen::Index token_rows() const {
        return geometry_.queries + (geometry_.separate_keys ? geometry_.keys : 0);
    }
    Student student(const Matrix& weights) const;
    void sum_blocks(Range samples, const Student& student, Sums& sums) const;
    void project(const Block& block, const Student& student, Matrix& projected) const;
    void pull(const Block& block, const Student& student, const Matrix& projected, Matrix& pulled) const;
    void between_products(const Block& block, const Student& student, Matrix& projected, Sums& sums) const;
    void tied_indices(const Panel& panel, Scratch& scratch) const;
    void tied_mix(const Panel& panel, Scratch& scratch) const;
    void untied_indices(const Panel& panel, Scratch& scratch) const;
    void untied_mix(const Panel& panel, Scratch& scratch) const;

    Eigen::Index samples_, dim_;
    Shares shares_;
    LossGeometry geometry_;
    Links by_query_, by_key_;
    std::vector<std::size_t> diagonal_;      // pairs of a token with itself
    std::vector<Eigen::Index> row_lengths_;  // of the rows with pairs
    bool softmax_ = false;
    double beta_ = 1, weight_ = 1;
    std::map<std::size_t, Block> blocks_;  // by their first sample
};

extern template class AttentionLoss<float>;
extern template class AttentionLoss<double>;

/// sum_i a_i b_i in double, in an order that depends on the size only.
template <class Scalar>
double ordered_dot(const Scalar* a, const Scalar* b, Eigen::Index size) {
    constexpr Eigen::Index lanes = 8;
    double partial[lanes] = {};
    const Eigen::Index whole = size / lanes * lanes;
    for (Eigen::Index i = 0; i < whole; i += lanes) {
        for (Eigen::Index j = 0; j < lanes; ++j)
            partial[j] += static_cast<double>(a[i + j]) * static_cast<double>(b[i + j]);
    }
    double sum = 0;
    for (Eigen::Index i = whole; i < size; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    for (const double part : partial) sum += part;
    return sum;
}

/// ||matrix||_F^2
template <class Scalar>
double squared_norm(const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>& matrix) {
    return ordered_dot(matrix.data(), matrix.data(), matrix.size());
}

}  // namespace bayesaim::estimators
