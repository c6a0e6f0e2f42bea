// SPDX-License-Identifier: MIT
#pragma once
#include <span>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/dataset.hpp"

namespace bayesaim::estimators {

/// The squared loss of a tied-attention student W (d x r) and its gradient, in float or double:
///   L(W) = sum_samples sum_ab (y_ab - g(h)_ab)^2,   h_ab = c (p_a . p_b - delta_ab ||W||_F^2)
///   P = X W,  c = 1 / (sqrt(r) d),  g = softmax of beta h row by row, or h itself (linear channel)
///   dL/dW = c [X' (Gamma P) - 2 Tr(G) W],   G = dL/dh,  Gamma = G + G'
/// Two products per evaluation; the T x T part works in place on P while a block of it is in the cache. Token
/// a of all samples of a block lies together, so that everything between the products runs over samples.
/// Blocks and the order of their sums are fixed: the bits depend neither on threads nor on other descents.
/// Pinned by: AttentionLoss.GradientIsThatOfFiniteDifferences.
template <class Scalar>
class AttentionLoss {
  public:
    using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

    /// Copies tokens and outputs. The channel must have a smooth output.
    AttentionLoss(const data::Dataset& data, const channels::Channel& channel, ThreadPool& pool);

    /// The loss of a mini-batch times n/(samples of the batch): an estimate of the loss of all samples.
    AttentionLoss subset(std::span<const Eigen::Index> samples) const;

    Eigen::Index samples() const { return samples_; }
    Eigen::Index dim() const { return dim_; }

    /// The loss at W, and its gradient. Without a pool the calling thread works alone.
    double evaluate(const Matrix& weights, Matrix& gradient, ThreadPool* pool = nullptr) const;

  private:
    struct Block {
        Matrix tokens;   ///< (T padded) x d: row a padded + i is token a of sample i, zeros behind the last
        Matrix outputs;  ///< padded x (T^2 + 1): y row by row, then 1 for a sample and 0 for padding
    };
    struct Sums {
        Matrix pulled;  ///< X' (Gamma P)
        double loss = 0, trace = 0;
    };

    AttentionLoss(const AttentionLoss& all, Eigen::Index samples);
    Block empty_block(Eigen::Index count) const;
    std::size_t block_size() const;
    Sums sum_blocks(Range blocks, const Matrix& weights, double squared_norm) const;
    void between_products(const Block& block, double index_scale, double squared_norm, Matrix& projected,
                          Sums& sums) const;

    Eigen::Index samples_, tokens_, dim_;
    bool softmax_ = false;
    double beta_ = 1, weight_ = 1;
    std::vector<Block> blocks_;
};

extern template class AttentionLoss<float>;
extern template class AttentionLoss<double>;

/// ||matrix||_F^2 in double, in an order that depends on the size only.
template <class Scalar>
double squared_norm(const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>& matrix) {
    constexpr Eigen::Index lanes = 8;
    double partial[lanes] = {};
    const Scalar* entry = matrix.data();
    const Eigen::Index size = matrix.size(), whole = size / lanes * lanes;
    for (Eigen::Index i = 0; i < whole; i += lanes) {
        for (Eigen::Index j = 0; j < lanes; ++j) {
            const double x = entry[i + j];
            partial[j] += x * x;
        }
    }
    double sum = 0;
    for (Eigen::Index i = whole; i < size; ++i) sum += static_cast<double>(entry[i]) * entry[i];
    for (const double part : partial) sum += part;
    return sum;
}

}  // namespace bayesaim::estimators
