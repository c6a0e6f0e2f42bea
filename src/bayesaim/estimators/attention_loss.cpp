// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/attention_loss.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::estimators {
namespace {

/// Samples per vector operation. The size is fixed: for arrays of dynamic size Eigen treats the entries at
/// the ends differently, and the position of the ends depends on addresses.
constexpr Eigen::Index lanes = 32;
template <class Scalar>
using Lane = Eigen::Array<Scalar, lanes, 1>;

/// Number of partial matrices for sums over blocks; they are added in order.
constexpr std::size_t shares = 8;

/// Replaces h by G = dL/dh for rows softmax(beta h), and returns the losses of the samples.
template <class Scalar>
Lane<Scalar> softmax_gradient(std::span<Lane<Scalar>> h, Eigen::Index tokens, Scalar beta,
                              const Scalar* outputs, Eigen::Index stride) {
    const Lane<Scalar> mask = Eigen::Map<const Lane<Scalar>>(outputs + tokens * tokens * stride);
    Lane<Scalar> loss = Lane<Scalar>::Zero();
    for (Eigen::Index a = 0; a < tokens; ++a) {
        Lane<Scalar>* row = h.data() + a * tokens;
        Lane<Scalar> largest = row[0], sum = Lane<Scalar>::Zero(), along = Lane<Scalar>::Zero();
        for (Eigen::Index b = 1; b < tokens; ++b) largest = largest.max(row[b]);
        for (Eigen::Index b = 0; b < tokens; ++b) {
            row[b] = (beta * (row[b] - largest)).exp();
            sum += row[b];
        }
        sum = sum.inverse();
        for (Eigen::Index b = 0; b < tokens; ++b) {
            row[b] *= sum;
            const Eigen::Map<const Lane<Scalar>> y(outputs + (a * tokens + b) * stride);
            const Lane<Scalar> residual = mask * (row[b] - y);
            loss += residual * residual;
            along += residual * row[b];
        }
        for (Eigen::Index b = 0; b < tokens; ++b) {
            const Eigen::Map<const Lane<Scalar>> y(outputs + (a * tokens + b) * stride);
            row[b] = 2 * beta * row[b] * (mask * (row[b] - y) - along);
        }
    }
    return loss;
}

template <class Scalar>
Lane<Scalar> linear_gradient(std::span<Lane<Scalar>> h, const Scalar* outputs, Eigen::Index stride) {
    const Lane<Scalar> mask =
        Eigen::Map<const Lane<Scalar>>(outputs + static_cast<Eigen::Index>(h.size()) * stride);
    Lane<Scalar> loss = Lane<Scalar>::Zero();
    for (Lane<Scalar>& entry : h) {
        const Lane<Scalar> residual = mask * (entry - Eigen::Map<const Lane<Scalar>>(outputs));
        loss += residual * residual;
        entry = 2 * residual;
        outputs += stride;
    }
    return loss;
}

}  // namespace

template <class Scalar>
AttentionLoss<Scalar>::AttentionLoss(const data::Dataset& data, const channels::Channel& channel,
                                     ThreadPool& pool)
    : samples_(data.tokens->samples()), tokens_(data.tokens->tokens()), dim_(data.tokens->dim()) {
    const auto output = channel.smooth_output();
    if (!channel.geometry().symmetric())
        throw_unavailable("gradient descent",
                          fmt::format("for {} attention", to_string(channel.geometry().attention)));
    if (!output) throw_invalid("channel", "one with a gradient, such as softmax or linear", channel.name());
    softmax_ = output->softmax;
    beta_ = output->beta;
    check_outputs(channel, data);
    const auto count = static_cast<std::size_t>(samples_);
    blocks_.resize(block_count(count, block_size()));
    parallel_for(pool, count, block_size(), [&](Range range) {
        const auto begin = static_cast<Eigen::Index>(range.begin),
                   size = static_cast<Eigen::Index>(range.size());
        Block block = empty_block(size);
        const Eigen::Index padded = block.outputs.rows();
        linalg::Matrix scratch;
        const auto columns = data.tokens->block(range, scratch);
        using Strided = Eigen::Map<const linalg::Matrix, 0, Eigen::OuterStride<>>;
        for (Eigen::Index a = 0; a < tokens_; ++a) {
            const Strided token(columns.data() + a * dim_, dim_, size, Eigen::OuterStride<>(tokens_ * dim_));
            block.tokens.middleRows(a * padded, size) = token.transpose().template cast<Scalar>();
        }
        const auto y = data.outputs.middleRows(begin, size);
        for (Eigen::Index i = 0; i < size; ++i) {
            for (Eigen::Index ab = 0; ab < tokens_ * tokens_; ++ab)
                block.outputs(i, ab) = static_cast<Scalar>(softmax_ ? std::exp(y(i, ab)) : y(i, ab));
        }
        blocks_[range.begin / block_size()] = std::move(block);
    });
}

template <class Scalar>
AttentionLoss<Scalar>::AttentionLoss(const AttentionLoss& all, Eigen::Index samples)
    : samples_(samples),
      tokens_(all.tokens_),
      dim_(all.dim_),
      softmax_(all.softmax_),
      beta_(all.beta_),
      weight_(all.weight_ * static_cast<double>(all.samples_) / static_cast<double>(samples)) {}

template <class Scalar>
AttentionLoss<Scalar> AttentionLoss<Scalar>::subset(std::span<const Eigen::Index> samples) const {
    AttentionLoss result(*this, static_cast<Eigen::Index>(samples.size()));
    const auto whole = static_cast<Eigen::Index>(block_size());
    for (std::size_t b = 0; b < block_count(samples.size(), block_size()); ++b) {
        const Range range = block_range(samples.size(), block_size(), b);
        Block block = empty_block(static_cast<Eigen::Index>(range.size()));
        const Eigen::Index padded = block.outputs.rows();
        for (std::size_t j = range.begin; j < range.end; ++j) {
            const auto i = static_cast<Eigen::Index>(j - range.begin);
            const Block& from = blocks_[static_cast<std::size_t>(samples[j] / whole)];
            const Eigen::Index row = samples[j] % whole, from_padded = from.outputs.rows();
            block.outputs.row(i) = from.outputs.row(row);
            for (Eigen::Index a = 0; a < tokens_; ++a)
                block.tokens.row(a * padded + i) = from.tokens.row(a * from_padded + row);
        }
        result.blocks_.push_back(std::move(block));
    }
    return result;
}

template <class Scalar>
typename AttentionLoss<Scalar>::Block AttentionLoss<Scalar>::empty_block(Eigen::Index count) const {
    const Eigen::Index padded = (count + lanes - 1) / lanes * lanes, outputs = tokens_ * tokens_;
    Block block{Matrix::Zero(tokens_ * padded, dim_), Matrix::Zero(padded, outputs + 1)};
    block.outputs.col(outputs).head(count).setOnes();
    return block;
}

/// About 256 rows of tokens: products of that height run at full speed, and P stays in the cache.
template <class Scalar>
std::size_t AttentionLoss<Scalar>::block_size() const {
    return static_cast<std::size_t>(std::max<Eigen::Index>(1, 256 / (tokens_ * lanes)) * lanes);
}

template <class Scalar>
double AttentionLoss<Scalar>::evaluate(const Matrix& weights, Matrix& gradient, ThreadPool* pool) const {
    check_size("rows of the student", weights.rows(), dim_);
    const double norm = squared_norm(weights);
    const std::size_t share_count = std::min(shares, blocks_.size());
    const auto share = [&](std::size_t i) {
        return Range{i * blocks_.size() / share_count, (i + 1) * blocks_.size() / share_count};
    };
    Sums total;
    const auto add = [&](Sums part) {
        total.loss += part.loss;
        total.trace += part.trace;
        if (total.pulled.size() == 0) {
            total.pulled = std::move(part.pulled);
        } else {
            total.pulled += part.pulled;
        }
    };
    if (pool != nullptr && pool->threads() > 1) {
        std::vector<Sums> parts(share_count);
        pool->for_each(share_count, [&](std::size_t i) { parts[i] = sum_blocks(share(i), weights, norm); });
        for (Sums& part : parts) add(std::move(part));
    } else {
        for (std::size_t i = 0; i < share_count; ++i) add(sum_blocks(share(i), weights, norm));
    }
    const double d = static_cast<double>(dim_), r = static_cast<double>(weights.cols());
    const double scale = weight_ / (std::sqrt(r) * d);
    const auto pulled_scale = static_cast<Scalar>(scale),
               weight_scale = static_cast<Scalar>(2 * scale * total.trace);
    gradient.resizeLike(weights);
    const Scalar *pulled = total.pulled.data(), *w = weights.data();
    Scalar* out = gradient.data();
    for (Eigen::Index i = 0; i < gradient.size(); ++i)
        out[i] = pulled_scale * pulled[i] - weight_scale * w[i];
    return weight_ * total.loss;
}

template <class Scalar>
typename AttentionLoss<Scalar>::Sums AttentionLoss<Scalar>::sum_blocks(Range blocks, const Matrix& weights,
                                                                       double squared_norm) const {
    using linalg::Transpose;
    const double index_scale =
        1 / (std::sqrt(static_cast<double>(weights.cols())) * static_cast<double>(dim_));
    Sums sums{Matrix::Zero(dim_, weights.cols())};
    Matrix projected;
    for (std::size_t b = blocks.begin; b < blocks.end; ++b) {
        const Block& block = blocks_[b];
        projected.resize(block.tokens.rows(), weights.cols());
        linalg::multiply(Scalar(1), block.tokens, Transpose::no, weights, Transpose::no, Scalar(0),
                         projected);
        between_products(block, index_scale, squared_norm, projected, sums);
        linalg::multiply(Scalar(1), block.tokens, Transpose::yes, projected, Transpose::no, Scalar(1),
                         sums.pulled);
    }
    return sums;
}

/// Replaces P by Gamma P, and adds loss and Tr(G) to the sums.
template <class Scalar>
void AttentionLoss<Scalar>::between_products(const Block& block, double index_scale, double squared_norm,
                                             Matrix& projected, Sums& sums) const {
    const Eigen::Index tokens = tokens_, padded = block.outputs.rows(), width = projected.cols();
    const auto c = static_cast<Scalar>(index_scale), shift = static_cast<Scalar>(index_scale * squared_norm);
    std::vector<Lane<Scalar>> h(static_cast<std::size_t>(tokens * tokens)),
        p(static_cast<std::size_t>(tokens));
    const auto at = [&](Eigen::Index a, Eigen::Index b) -> Lane<Scalar>& {
        return h[static_cast<std::size_t>(a * tokens + b)];
    };
    const auto token = [&](Eigen::Index a) -> Lane<Scalar>& { return p[static_cast<std::size_t>(a)]; };
    Lane<double> loss = Lane<double>::Zero(), trace = Lane<double>::Zero();
    for (Eigen::Index first = 0; first < padded; first += lanes) {
        for (Lane<Scalar>& entry : h) entry.setZero();
        for (Eigen::Index k = 0; k < width; ++k) {
            const Scalar* column = projected.col(k).data() + first;
            for (Eigen::Index a = 0; a < tokens; ++a)
                token(a) = Eigen::Map<const Lane<Scalar>>(column + a * padded);
            for (Eigen::Index a = 0; a < tokens; ++a) {
                for (Eigen::Index b = a; b < tokens; ++b) at(a, b) += token(a) * token(b);
            }
        }
        for (Eigen::Index a = 0; a < tokens; ++a) {
            at(a, a) = c * at(a, a) - shift;
            for (Eigen::Index b = a + 1; b < tokens; ++b) at(b, a) = at(a, b) = c * at(a, b);
        }
        const Scalar* y = block.outputs.data() + first;
        loss += (softmax_ ? softmax_gradient<Scalar>(h, tokens, static_cast<Scalar>(beta_), y, padded)
                          : linear_gradient<Scalar>(h, y, padded))
                    .template cast<double>();
        for (Eigen::Index a = 0; a < tokens; ++a) {
            trace += at(a, a).template cast<double>();
            for (Eigen::Index b = a; b < tokens; ++b) at(a, b) = at(b, a) = at(a, b) + Lane<Scalar>(at(b, a));
        }
        for (Eigen::Index k = 0; k < width; ++k) {
            Scalar* column = projected.col(k).data() + first;
            for (Eigen::Index a = 0; a < tokens; ++a)
                token(a) = Eigen::Map<const Lane<Scalar>>(column + a * padded);
            for (Eigen::Index a = 0; a < tokens; ++a) {
                Lane<Scalar> mixed = at(a, 0) * token(0);
                for (Eigen::Index b = 1; b < tokens; ++b) mixed += at(a, b) * token(b);
                Eigen::Map<Lane<Scalar>>(column + a * padded) = mixed;
            }
        }
    }
    for (const double part : loss) sums.loss += part;
    for (const double part : trace) sums.trace += part;
}

template class AttentionLoss<float>;
template class AttentionLoss<double>;

}  // namespace bayesaim::estimators
