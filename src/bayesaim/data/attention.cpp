// SPDX-License-Identifier: MIT
#include "bayesaim/data/attention.hpp"

#include <cmath>
#include <numbers>

#include <Eigen/Eigenvalues>

namespace bayesaim::data {

using channels::pair_index;
using linalg::Matrix;

namespace {

/// Eigenvalues and eigenvectors of small symmetric matrices, one after the other.
class SmallEigen {
  public:
    explicit SmallEigen(Eigen::Index size) : solver_(size), values_(size), vectors_(size, size) {}

    void compute(const Matrix& g) {
        switch (g.rows()) {
            case 1:
                values_ = g.col(0);
                vectors_(0, 0) = 1;
                break;
            case 2: {
                // One rotation does it: V' G V is diagonal.
                Eigen::JacobiRotation<double> rotation;
                rotation.makeJacobi(g(0, 0), g(0, 1), g(1, 1));
                const double c = rotation.c(), s = rotation.s(), tangent = s / c;
                vectors_ << c, s, -s, c;
                values_ << g(0, 0) - tangent * g(0, 1), g(1, 1) + tangent * g(0, 1);
                break;
            }
            default:
                solver_.compute(g);
                values_ = solver_.eigenvalues();
                vectors_ = solver_.eigenvectors();
        }
    }
    const Eigen::VectorXd& values() const { return values_; }
    const Matrix& vectors() const { return vectors_; }

  private:
    Eigen::SelfAdjointEigenSolver<Matrix> solver_;
    Eigen::VectorXd values_;
    Matrix vectors_;
};

}  // namespace

AttentionMap::AttentionMap(const linalg::ConstMatrixRef& weights)
    : half_(weights.triangularView<Eigen::Lower>()), trace_(weights.trace()) {
    half_.diagonal() *= 0.5;
}

void AttentionMap::indices(const TokenSource::Block& block, Eigen::Index tokens, Matrix& projected,
                           channels::RowsRef index) const {
    projected.resize(block.rows(), block.cols());
    linalg::multiply_by_lower(half_, block, projected);
    const double scale = 1 / std::sqrt(static_cast<double>(block.rows()));
    const int count = static_cast<int>(tokens);
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        for (int a = 0; a < count; ++a) {
            const auto x = block.col(i * tokens + a);
            const auto lx = projected.col(i * tokens + a);
            index(i, pair_index(a, a, count)) = scale * (2 * x.dot(lx) - trace_);
            for (int b = a + 1; b < count; ++b) {
                const double product = (x.cwiseProduct(projected.col(i * tokens + b)) +
                                        lx.cwiseProduct(block.col(i * tokens + b)))
                                           .sum();
                index(i, pair_index(a, b, count)) = scale * std::numbers::sqrt2 * product;
            }
        }
    }
}

void accumulate_transpose(const TokenSource::Block& block, Eigen::Index tokens,
                          const channels::ConstRowsRef& g, Matrix& mixed, Matrix& lower) {
    const int count = static_cast<int>(tokens);
    mixed.resize(block.rows(), block.cols());
    Matrix weights(tokens, tokens);
    SmallEigen eigen(tokens);
    Eigen::VectorXd direction(tokens);
    Eigen::Index positive = 0, negative = mixed.cols();  // columns before and from these are filled
    for (Eigen::Index i = 0; i < g.rows(); ++i) {
        for (int a = 0; a < count; ++a) {
            weights(a, a) = g(i, pair_index(a, a, count));
            for (int b = a + 1; b < count; ++b) {
                weights(a, b) = weights(b, a) = g(i, pair_index(a, b, count)) / std::numbers::sqrt2;
            }
        }
        eigen.compute(weights);
        for (int k = 0; k < count; ++k) {
            const double value = eigen.values()[k];
            direction = std::sqrt(std::abs(value)) * eigen.vectors().col(k);
            mixed.col(value >= 0 ? positive++ : --negative) =
                block.middleCols(i * tokens, tokens).lazyProduct(direction);
        }
    }
    linalg::add_gram(1, mixed.leftCols(positive), lower);
    linalg::add_gram(-1, mixed.rightCols(mixed.cols() - negative), lower);
}

channels::Rows all_attention_indices(const TokenSource& source, const linalg::ConstMatrixRef& weights,
                                     ThreadPool& pool) {
    channels::Rows index(source.samples(), source.tokens() * (source.tokens() + 1) / 2);
    const AttentionMap map(weights);
    parallel_for(pool, static_cast<std::size_t>(source.samples()), samples_per_block(source),
                 [&](Range range) {
                     Matrix scratch, projected;
                     const auto block = source.block(range, scratch);
                     map.indices(block, source.tokens(), projected,
                                 index.middleRows(static_cast<Eigen::Index>(range.begin),
                                                  static_cast<Eigen::Index>(range.size())));
                 });
    return index;
}

}  // namespace bayesaim::data
