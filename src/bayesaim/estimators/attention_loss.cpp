// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/attention_loss.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/tree_sum.hpp"
#include "bayesaim/linalg/matrix_sum.hpp"

namespace bayesaim::estimators {
namespace {

/// Samples per vector operation. The size is fixed: for arrays of dynamic size Eigen treats the entries at
/// the ends differently, and the position of the ends depends on addresses.
constexpr Eigen::Index lanes = 32;
template <class Scalar>
using Lane = Eigen::Array<Scalar, lanes, 1>;

/// Replaces h by G = dL/dh for rows softmax(beta h) of these lengths, and returns the losses of the samples.
template <class Scalar>
Lane<Scalar> softmax_gradient(std::span<Lane<Scalar>> h, std::span<const Eigen::Index> lengths, Scalar beta,
                              const Scalar* outputs, Eigen::Index stride) {
    const Lane<Scalar> mask =
        Eigen::Map<const Lane<Scalar>>(outputs + static_cast<Eigen::Index>(h.size()) * stride);
    Lane<Scalar> loss = Lane<Scalar>::Zero();
    Lane<Scalar>* row = h.data();
    for (const Eigen::Index tokens : lengths) {
        Lane<Scalar> largest = row[0], sum = Lane<Scalar>::Zero(), along = Lane<Scalar>::Zero();
        for (Eigen::Index b = 1; b < tokens; ++b) largest = largest.max(row[b]);
        for (Eigen::Index b = 0; b < tokens; ++b) {
            row[b] = (beta * (row[b] - largest)).exp();
            sum += row[b];
        }
        sum = sum.inverse();
        for (Eigen::Index b = 0; b < tokens; ++b) {
            row[b] *= sum;
            const Eigen::Map<const Lane<Scalar>> y(outputs + b * stride);
            const Lane<Scalar> residual = mask * (row[b] - y);
            loss += residual * residual;
            along += residual * row[b];
        }
        for (Eigen::Index b = 0; b < tokens; ++b) {
            const Eigen::Map<const Lane<Scalar>> y(outputs + b * stride);
            row[b] = 2 * beta * row[b] * (mask * (row[b] - y) - along);
        }
        row += tokens;
        outputs += tokens * stride;
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

/// [M W_K | M' W_Q]
template <class Matrix>
Matrix split(const Matrix& m, const Matrix& weights) {
    using linalg::Transpose;
    using Scalar = typename Matrix::Scalar;
    const Eigen::Index width = weights.cols() / 2;
    Matrix result(weights.rows(), weights.cols());
    linalg::multiply(Scalar(1), m, Transpose::no, weights.rightCols(width), Transpose::no, Scalar(0),
                     result.leftCols(width));
    linalg::multiply(Scalar(1), m, Transpose::yes, weights.leftCols(width), Transpose::no, Scalar(0),
                     result.rightCols(width));
    return result;
}

/// Throws InvalidArgument unless the channel has a gradient and the data fit it.
channels::SmoothOutput checked_output(const data::Dataset& data, const channels::Channel& channel,
                                      const Communicator& ranks) {
    const auto output = channel.smooth_output();
    if (!output) throw_invalid("channel", "one with a gradient, such as softmax or linear", channel.name());
    check_outputs(channel, data, ranks);
    if (data.keys().dim() != data.tokens->dim())
        throw_unavailable("gradient descent", "for keys of another dimension than the queries");
    return *output;
}

}  // namespace

LossGeometry::LossGeometry(const channels::Geometry& geometry)
    : tied(geometry.symmetric()),
      separate_keys(geometry.separate_keys()),
      queries(geometry.queries),
      keys(geometry.keys) {
    for (int a = 0; a < geometry.queries; ++a) {
        for (int b = 0; b < geometry.keys; ++b) {
            if (geometry.sees(a, b)) pairs.emplace_back(a, b);
        }
    }
}

template <class Scalar>
AttentionLoss<Scalar>::AttentionLoss(const data::Dataset& data, const channels::Channel& channel,
                                     ThreadPool& pool)
    : AttentionLoss(data, checked_output(data, channel, pool.ranks()), LossGeometry(channel.geometry()),
                    pool) {}

template <class Scalar>
AttentionLoss<Scalar>::AttentionLoss(const data::Dataset& data, const channels::SmoothOutput& output,
                                     LossGeometry geometry, ThreadPool& pool)
    : samples_(data.tokens->samples()),
      dim_(data.tokens->dim()),
      shares_(data.shares()),
      geometry_(std::move(geometry)),
      by_query_(static_cast<std::size_t>(geometry_.queries)),
      by_key_(static_cast<std::size_t>(geometry_.keys)),
      softmax_(output.softmax),
      beta_(output.beta) {
    for (std::size_t p = 0; p < geometry_.pairs.size(); ++p) {
        const auto a = static_cast<std::size_t>(geometry_.pairs[p].first),
                   b = static_cast<std::size_t>(geometry_.pairs[p].second);
        by_query_[a].push_back({p, b});
        by_key_[b].push_back({p, a});
        if (a == b && !geometry_.separate_keys) diagonal_.push_back(p);
    }
    for (const auto& row : by_query_) {
        if (!row.empty()) row_lengths_.push_back(static_cast<Eigen::Index>(row.size()));
    }
    std::mutex mutex;  // of the blocks
    for_own_blocks(pool, shares_, block_size(), [&](Range range) {
        const auto begin = static_cast<Eigen::Index>(range.begin),
                   size = static_cast<Eigen::Index>(range.size());
        Block block = empty_block(size);
        copy_tokens(*data.tokens, range, 0, block);
        if (geometry_.separate_keys) copy_tokens(data.keys(), range, geometry_.queries, block);
        const auto y = data.outputs.middleRows(begin, size);
        for (std::size_t p = 0; p < geometry_.pairs.size(); ++p) {
            const auto [a, b] = geometry_.pairs[p];
            for (Eigen::Index i = 0; i < size; ++i) {
                const double value = y(i, a * geometry_.keys + b);
                block.outputs(i, static_cast<Eigen::Index>(p)) =
                    static_cast<Scalar>(softmax_ ? std::exp(value) : value);
            }
        }
        const std::lock_guard lock(mutex);
        blocks_.emplace(range.begin, std::move(block));
    });
}

template <class Scalar>
void AttentionLoss<Scalar>::copy_tokens(const data::TokenSource& source, Range range, Eigen::Index first,
                                        Block& block) const {
    const Eigen::Index tokens = source.tokens(), padded = block.outputs.rows(),
                       size = static_cast<Eigen::Index>(range.size());
    linalg::Matrix scratch;
    const auto columns = source.block(range, scratch);
    using Strided = Eigen::Map<const linalg::Matrix, 0, Eigen::OuterStride<>>;
    for (Eigen::Index a = 0; a < tokens; ++a) {
        const Strided token(columns.data() + a * dim_, dim_, size, Eigen::OuterStride<>(tokens * dim_));
        block.tokens.middleRows((first + a) * padded, size) = token.transpose().template cast<Scalar>();
    }
}

template <class Scalar>
AttentionLoss<Scalar>::AttentionLoss(const AttentionLoss& all, std::size_t samples)
    : samples_(static_cast<Eigen::Index>(samples)),
      dim_(all.dim_),
      shares_(samples),
      geometry_(all.geometry_),
      by_query_(all.by_query_),
      by_key_(all.by_key_),
      diagonal_(all.diagonal_),
      row_lengths_(all.row_lengths_),
      softmax_(all.softmax_),
      beta_(all.beta_),
      weight_(all.weight_ * static_cast<double>(all.samples_) / static_cast<double>(samples)) {}

template <class Scalar>
AttentionLoss<Scalar> AttentionLoss<Scalar>::subset(std::span<const Eigen::Index> samples) const {
    AttentionLoss result(*this, samples.size());
    ThreadPool alone;
    for_own_blocks(alone, result.shares_, block_size(), [&](Range range) {
        Block block = empty_block(static_cast<Eigen::Index>(range.size()));
        const Eigen::Index padded = block.outputs.rows();
        for (std::size_t j = range.begin; j < range.end; ++j) {
            const auto i = static_cast<Eigen::Index>(j - range.begin);
            const auto& [first, from] = *std::prev(blocks_.upper_bound(static_cast<std::size_t>(samples[j])));
            const Eigen::Index row = samples[j] - static_cast<Eigen::Index>(first),
                               from_padded = from.outputs.rows();
            block.outputs.row(i) = from.outputs.row(row);
            for (Eigen::Index a = 0; a < token_rows(); ++a)
                block.tokens.row(a * padded + i) = from.tokens.row(a * from_padded + row);
        }
        result.blocks_.emplace(range.begin, std::move(block));
    });
    return result;
}

template <class Scalar>
typename AttentionLoss<Scalar>::Block AttentionLoss<Scalar>::empty_block(Eigen::Index count) const {
    const Eigen::Index padded = (count + lanes - 1) / lanes * lanes,
                       outputs = static_cast<Eigen::Index>(geometry_.pairs.size());
    Block block{Matrix::Zero(token_rows() * padded, dim_), Matrix::Zero(padded, outputs + 1)};
    block.outputs.col(outputs).head(count).setOnes();
    return block;
}

/// About 256 rows of tokens: products of that height run at full speed, and P stays in the cache.
template <class Scalar>
std::size_t AttentionLoss<Scalar>::block_size() const {
    const Eigen::Index tokens = std::max(geometry_.queries, geometry_.keys);
    return static_cast<std::size_t>(std::max<Eigen::Index>(1, 256 / (tokens * lanes)) * lanes);
}

template <class Scalar>
double AttentionLoss<Scalar>::evaluate(const Matrix& weights, Matrix& gradient, ThreadPool* pool) const {
    check_size("rows of the student", weights.rows(), dim_);
    const Student student = this->student(weights);
    std::vector<Sums> spare;
    Sums total = TreeSum<Sums>(pool, shares_,
                               spare)([&](Range samples, Sums& sums) { sum_blocks(samples, student, sums); });
    const double d = static_cast<double>(dim_), r = static_cast<double>(student.width);
    const double scale = weight_ / (std::sqrt(r) * d);
    if (student.merged) total.pulled = split(total.pulled, weights);
    const auto pulled_scale = static_cast<Scalar>(scale);
    gradient.resizeLike(weights);
    const Scalar *pulled = total.pulled.data(), *w = weights.data();
    Scalar* out = gradient.data();
    if (geometry_.tied) {
        const auto weight_scale = static_cast<Scalar>(2 * scale * total.trace);
        for (Eigen::Index i = 0; i < gradient.size(); ++i)
            out[i] = pulled_scale * pulled[i] - weight_scale * w[i];
    } else {  // the other factor
        const auto weight_scale = static_cast<Scalar>(scale * total.trace);
        const Eigen::Index half = weights.size() / 2;
        for (Eigen::Index i = 0; i < half; ++i) {
            out[i] = pulled_scale * pulled[i] - weight_scale * w[half + i];
            out[half + i] = pulled_scale * pulled[half + i] - weight_scale * w[i];
        }
    }
    return weight_ * total.loss;
}

template <class Scalar>
typename AttentionLoss<Scalar>::Student AttentionLoss<Scalar>::student(const Matrix& weights) const {
    using linalg::Transpose;
    const Eigen::Index width = weights.cols() / geometry_.factors(), half = weights.size() / 2;
    check_size("columns of the student", weights.cols(), width * geometry_.factors());
    if (geometry_.tied) return {weights, width, false, squared_norm(weights)};
    const double trace = ordered_dot(weights.data(), weights.data() + half, half);
    if (geometry_.queries * dim_ > (geometry_.queries + geometry_.keys) * width)
        return {weights, width, false, trace};
    Matrix product(dim_, dim_);
    linalg::multiply(Scalar(1), weights.leftCols(width), Transpose::no, weights.rightCols(width),
                     Transpose::yes, Scalar(0), product);
    return {std::move(product), width, true, trace};
}

template <class Scalar>
void AttentionLoss<Scalar>::Sums::add(const Sums& other) {
    pulled += other.pulled;
    loss += other.loss;
    trace += other.trace;
}

template <class Scalar>
void AttentionLoss<Scalar>::Sums::for_parts(const std::function<void(std::span<std::byte>)>& use) {
    use(linalg::bytes_of_matrix(pulled));
    use(bytes_of(loss));
    use(bytes_of(trace));
}

template <class Scalar>
void AttentionLoss<Scalar>::sum_blocks(Range samples, const Student& student, Sums& sums) const {
    sums.pulled.setZero(dim_, student.map.cols());
    sums.loss = sums.trace = 0;
    Matrix projected;
    for (std::size_t b = 0; b < block_count(samples.size(), block_size()); ++b) {
        const Block& block = blocks_.at(block_within(samples, block_size(), b).begin);
        project(block, student, projected);
        between_products(block, student, projected, sums);
        pull(block, student, projected, sums.pulled);
    }
}

/// P = X W, or X [W_Q | W_K], or X A. With separate keys P stands above K.
template <class Scalar>
void AttentionLoss<Scalar>::project(const Block& block, const Student& student, Matrix& projected) const {
    const auto multiply = [](const auto& tokens, const auto& factor, auto&& result) {
        using linalg::Transpose;
        linalg::multiply(Scalar(1), tokens, Transpose::no, factor, Transpose::no, Scalar(0), result);
    };
    const Matrix& map = student.map;
    const Eigen::Index rows = block.tokens.rows(), queries = geometry_.queries * block.outputs.rows();
    if (student.merged || !geometry_.separate_keys) {
        projected.resize(queries, map.cols());
        return multiply(block.tokens.topRows(queries), map, projected);
    }
    projected.resize(rows, student.width);
    multiply(block.tokens.topRows(queries), map.leftCols(student.width), projected.topRows(queries));
    multiply(block.tokens.bottomRows(rows - queries), map.rightCols(student.width),
             projected.bottomRows(rows - queries));
}

/// Its transpose, added to `pulled`.
template <class Scalar>
void AttentionLoss<Scalar>::pull(const Block& block, const Student& student, const Matrix& projected,
                                 Matrix& pulled) const {
    const auto add_product = [](const auto& tokens, const auto& mixed, auto&& sum) {
        using linalg::Transpose;
        linalg::multiply(Scalar(1), tokens, Transpose::yes, mixed, Transpose::no, Scalar(1), sum);
    };
    const Eigen::Index rows = block.tokens.rows(), queries = geometry_.queries * block.outputs.rows();
    if (student.merged || !geometry_.separate_keys)
        return add_product(block.tokens.topRows(queries), projected, pulled);
    add_product(block.tokens.topRows(queries), projected.topRows(queries), pulled.leftCols(student.width));
    add_product(block.tokens.bottomRows(rows - queries), projected.bottomRows(rows - queries),
                pulled.rightCols(student.width));
}

template <class Scalar>
struct AttentionLoss<Scalar>::Panel {
    Scalar* queries;                                // P: token 0, column 0
    const Scalar* keys;                             // K
    Scalar* mixed_keys;                             // where G' P goes: K, or nowhere
    Eigen::Index width;                             // columns of P and K
    Eigen::Index query_column, key_column, padded;  // from one column, and one token, to the next

    Scalar* query(Eigen::Index k) const { return queries + k * query_column; }
    const Scalar* key(Eigen::Index k) const { return keys + k * key_column; }
};

template <class Scalar>
struct AttentionLoss<Scalar>::Scratch {
    std::vector<Lane<Scalar>> h;           // of the pairs: p_a . k_b, then h, then G
    std::vector<Lane<Scalar>> query, key;  // one column of P and K
    Scalar scale, shift;                   // c, and c times the trace

    static void load(const Scalar* column, Eigen::Index padded, std::vector<Lane<Scalar>>& tokens) {
        for (Lane<Scalar>& token : tokens) {
            token = Eigen::Map<const Lane<Scalar>>(column);
            column += padded;
        }
    }
};

/// h of all pairs, of which those with a <= b are computed.
template <class Scalar>
void AttentionLoss<Scalar>::tied_indices(const Panel& panel, Scratch& scratch) const {
    const auto tokens = static_cast<std::size_t>(geometry_.queries);
    const auto at = [&](std::size_t a, std::size_t b) -> Lane<Scalar>& { return scratch.h[a * tokens + b]; };
    for (Lane<Scalar>& entry : scratch.h) entry.setZero();
    for (Eigen::Index k = 0; k < panel.width; ++k) {
        Scratch::load(panel.query(k), panel.padded, scratch.query);
        for (std::size_t a = 0; a < tokens; ++a) {
            for (std::size_t b = a; b < tokens; ++b) at(a, b) += scratch.query[a] * scratch.query[b];
        }
    }
    for (std::size_t a = 0; a < tokens; ++a) {
        at(a, a) = scratch.scale * at(a, a) - scratch.shift;
        for (std::size_t b = a + 1; b < tokens; ++b) at(b, a) = at(a, b) = scratch.scale * at(a, b);
    }
}

/// P becomes Gamma P.
template <class Scalar>
void AttentionLoss<Scalar>::tied_mix(const Panel& panel, Scratch& scratch) const {
    const auto tokens = static_cast<std::size_t>(geometry_.queries);
    const auto at = [&](std::size_t a, std::size_t b) -> Lane<Scalar>& { return scratch.h[a * tokens + b]; };
    for (std::size_t a = 0; a < tokens; ++a) {
        for (std::size_t b = a; b < tokens; ++b) at(a, b) = at(b, a) = at(a, b) + Lane<Scalar>(at(b, a));
    }
    for (Eigen::Index k = 0; k < panel.width; ++k) {
        Scalar* column = panel.query(k);
        Scratch::load(column, panel.padded, scratch.query);
        for (std::size_t a = 0; a < tokens; ++a) {
            Lane<Scalar> mixed = at(a, 0) * scratch.query[0];
            for (std::size_t b = 1; b < tokens; ++b) mixed += at(a, b) * scratch.query[b];
            Eigen::Map<Lane<Scalar>>(column + static_cast<Eigen::Index>(a) * panel.padded) = mixed;
        }
    }
}

template <class Scalar>
void AttentionLoss<Scalar>::untied_indices(const Panel& panel, Scratch& scratch) const {
    for (Lane<Scalar>& entry : scratch.h) entry.setZero();
    for (Eigen::Index k = 0; k < panel.width; ++k) {
        Scratch::load(panel.key(k), panel.padded, scratch.key);
        const Scalar* column = panel.query(k);
        for (const auto& row : by_query_) {
            const Lane<Scalar> query = Eigen::Map<const Lane<Scalar>>(column);
            for (const Link& link : row) scratch.h[link.pair] += query * scratch.key[link.other];
            column += panel.padded;
        }
    }
    for (Lane<Scalar>& entry : scratch.h) entry *= scratch.scale;
    for (const std::size_t pair : diagonal_) scratch.h[pair] -= scratch.shift;
}

/// P becomes G K, and K, unless it is Z, becomes G' P.
template <class Scalar>
void AttentionLoss<Scalar>::untied_mix(const Panel& panel, Scratch& scratch) const {
    const auto mix = [&](const Links& links, const std::vector<Lane<Scalar>>& others, Scalar* column) {
        for (const auto& one : links) {
            Lane<Scalar> mixed = Lane<Scalar>::Zero();
            for (const Link& link : one) mixed += scratch.h[link.pair] * others[link.other];
            std::copy_n(mixed.data(), lanes, column);
            column += panel.padded;
        }
    };
    for (Eigen::Index k = 0; k < panel.width; ++k) {
        Scratch::load(panel.query(k), panel.padded, scratch.query);
        Scratch::load(panel.key(k), panel.padded, scratch.key);
        mix(by_query_, scratch.key, panel.query(k));
        if (panel.mixed_keys != nullptr) mix(by_key_, scratch.query, panel.mixed_keys + k * panel.key_column);
    }
}

/// Replaces P by Gamma P, or P and K by G K and G' P, and adds loss and Tr(G) to the sums.
template <class Scalar>
void AttentionLoss<Scalar>::between_products(const Block& block, const Student& student, Matrix& projected,
                                             Sums& sums) const {
    const double index_scale =
        1 / (std::sqrt(static_cast<double>(student.width)) * static_cast<double>(dim_));
    const Eigen::Index padded = block.outputs.rows(), column = projected.rows(),
                       key_row = geometry_.separate_keys ? geometry_.queries * padded : 0;
    Panel panel{projected.data(), nullptr, nullptr, student.width, column, column, padded};
    if (student.merged) {
        panel.keys = block.tokens.data() + key_row;
        panel.width = dim_;
        panel.key_column = block.tokens.rows();
    } else if (!geometry_.tied) {
        panel.mixed_keys = projected.data() + (geometry_.separate_keys ? key_row : student.width * column);
        panel.keys = panel.mixed_keys;
    }
    Scratch scratch{std::vector<Lane<Scalar>>(geometry_.pairs.size()),
                    std::vector<Lane<Scalar>>(by_query_.size()), std::vector<Lane<Scalar>>(by_key_.size()),
                    static_cast<Scalar>(index_scale), static_cast<Scalar>(index_scale * student.trace)};
    Lane<double> loss = Lane<double>::Zero(), trace = Lane<double>::Zero();
    for (Eigen::Index first = 0; first < padded; first += lanes) {
        geometry_.tied ? tied_indices(panel, scratch) : untied_indices(panel, scratch);
        const Scalar* y = block.outputs.data() + first;
        loss += (softmax_ ? softmax_gradient<Scalar>(scratch.h, row_lengths_, static_cast<Scalar>(beta_), y,
                                                     padded)
                          : linear_gradient<Scalar>(scratch.h, y, padded))
                    .template cast<double>();
        for (const std::size_t pair : diagonal_) trace += scratch.h[pair].template cast<double>();
        geometry_.tied ? tied_mix(panel, scratch) : untied_mix(panel, scratch);
        panel.queries += lanes;
        if (!geometry_.tied) panel.keys += lanes;
        if (panel.mixed_keys != nullptr) panel.mixed_keys += lanes;
    }
    for (const double part : loss) sums.loss += part;
    for (const double part : trace) sums.trace += part;
}

template class AttentionLoss<float>;
template class AttentionLoss<double>;

}  // namespace bayesaim::estimators
