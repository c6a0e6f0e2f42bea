// SPDX-License-Identifier: MIT
#include "bayesaim/data/attention.hpp"

#include <cmath>
#include <numbers>

namespace bayesaim::data {

using channels::pair_index;
using linalg::Matrix;
using linalg::Transpose;

void attention_indices(const TokenSource::Block& block, Eigen::Index tokens,
                       const linalg::ConstMatrixRef& weights, Matrix& projected, channels::RowsRef index) {
    projected.resize(block.rows(), block.cols());
    linalg::multiply(1, weights, Transpose::no, block, Transpose::no, 0, projected);
    const double scale = 1 / std::sqrt(static_cast<double>(block.rows())), trace = weights.trace();
    const int count = static_cast<int>(tokens);
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        for (int a = 0; a < count; ++a) {
            for (int b = a; b < count; ++b) {
                const double product = block.col(i * tokens + a).dot(projected.col(i * tokens + b));
                index(i, pair_index(a, b, count)) =
                    scale * (a == b ? product - trace : std::numbers::sqrt2 * product);
            }
        }
    }
}

void mix_tokens(const TokenSource::Block& block, Eigen::Index tokens, const channels::ConstRowsRef& g,
                Matrix& mixed) {
    mixed.resize(block.rows(), block.cols());
    const int count = static_cast<int>(tokens);
    for (Eigen::Index i = 0; i < g.rows(); ++i) {
        for (int a = 0; a < count; ++a) {
            auto column = mixed.col(i * tokens + a);
            column = g(i, pair_index(a, a, count)) * block.col(i * tokens + a);
            for (int b = 0; b < count; ++b) {
                if (b == a) continue;
                const double weight =
                    g(i, pair_index(std::min(a, b), std::max(a, b), count)) / std::numbers::sqrt2;
                column += weight * block.col(i * tokens + b);
            }
        }
    }
}

void accumulate_symmetric(const TokenSource::Block& x, const Matrix& y, Matrix& lower) {
    constexpr Eigen::Index strip = 96;
    const Eigen::Index d = x.rows();
    for (Eigen::Index first = 0; first < d; first += strip) {
        const Eigen::Index width = std::min(strip, d - first);
        linalg::multiply(1, x.bottomRows(d - first), Transpose::no, y.middleRows(first, width),
                         Transpose::yes, 1, lower.block(first, first, d - first, width));
    }
}

channels::Rows all_attention_indices(const TokenSource& source, const linalg::ConstMatrixRef& weights,
                                     ThreadPool& pool) {
    channels::Rows index(source.samples(), source.tokens() * (source.tokens() + 1) / 2);
    parallel_for(pool, static_cast<std::size_t>(source.samples()), samples_per_block(source),
                 [&](Range range) {
                     Matrix scratch, projected;
                     const auto block = source.block(range, scratch);
                     attention_indices(block, source.tokens(), weights, projected,
                                       index.middleRows(static_cast<Eigen::Index>(range.begin),
                                                        static_cast<Eigen::Index>(range.size())));
                 });
    return index;
}

}  // namespace bayesaim::data
