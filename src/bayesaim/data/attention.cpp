// SPDX-License-Identifier: MIT
#include "bayesaim/data/attention.hpp"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/decompositions.hpp"

namespace bayesaim::data {

using channels::pair_index;
using linalg::Matrix;

namespace {

Matrix half_of(const linalg::ConstMatrixRef& weights) {
    Matrix lower = weights.triangularView<Eigen::Lower>();
    lower.diagonal() *= 0.5;
    return lower;
}

/// x' lx, or x' ly + lx' y for two tokens. The order of the sum depends on the dimension alone; that of
/// Eigen's sums depends on addresses too.
template <class Scalar>
class Dots {
  public:
    explicit Dots(Eigen::Index dim) : dim_(dim) {}

    Scalar one(const Scalar* x, const Scalar* lx) const {
        return sum([=](auto at, Eigen::Index k) { return at(x + k) * at(lx + k); });
    }
    Scalar two(const Scalar* x, const Scalar* lx, const Scalar* y, const Scalar* ly) const {
        return sum([=](auto at, Eigen::Index k) { return at(x + k) * at(ly + k) + at(lx + k) * at(y + k); });
    }

  private:
    static constexpr Eigen::Index lanes_ = 16;
    using Lanes = Eigen::Array<Scalar, lanes_, 1>;

    template <class Term>
    Scalar sum(const Term& term) const {
        Lanes lanes = Lanes::Zero();
        Eigen::Index k = 0;
        for (; k + lanes_ <= dim_; k += lanes_)
            lanes += term([](const Scalar* p) { return Eigen::Map<const Lanes>(p); }, k);
        Scalar rest = 0;
        for (; k < dim_; ++k) rest += term([](const Scalar* p) { return *p; }, k);
        return lanes.sum() + rest;
    }

    Eigen::Index dim_;
};

}  // namespace

template <class Scalar>
AttentionMap<Scalar>::AttentionMap(const linalg::ConstMatrixRef& weights)
    : half_(half_of(weights).cast<Scalar>()), trace_(weights.trace()) {}

template <class Scalar>
void AttentionMap<Scalar>::indices(const TokenSource::BlockOf<Scalar>& block, Eigen::Index tokens,
                                   Matrix& projected, channels::RowsRef index) const {
    projected.resize(block.rows(), block.cols());
    half_.multiply(block, projected);
    const double scale = 1 / std::sqrt(static_cast<double>(block.rows()));
    const int count = static_cast<int>(tokens);
    const Dots<Scalar> dots(block.rows());
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        for (int a = 0; a < count; ++a) {
            const Scalar* x = block.col(i * tokens + a).data();
            const Scalar* lx = projected.col(i * tokens + a).data();
            index(i, pair_index(a, a, count)) = scale * (2.0 * dots.one(x, lx) - trace_);
            for (int b = a + 1; b < count; ++b) {
                const double product =
                    dots.two(x, lx, block.col(i * tokens + b).data(), projected.col(i * tokens + b).data());
                index(i, pair_index(a, b, count)) = scale * std::numbers::sqrt2 * product;
            }
        }
    }
}

template <class Scalar>
void accumulate_transpose(const TokenSource::BlockOf<Scalar>& block, Eigen::Index tokens,
                          const channels::ConstRowsRef& g,
                          Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>& mixed, Matrix& lower) {
    const int count = static_cast<int>(tokens);
    mixed.resize(block.rows(), block.cols());
    Matrix weights(tokens, tokens);
    linalg::SmallEigen eigen(tokens);
    Eigen::Matrix<Scalar, Eigen::Dynamic, 1> direction(tokens);
    Eigen::Index positive = 0, negative = mixed.cols();  // filled: [0, positive) and [negative, end)
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
            direction = (std::sqrt(std::abs(value)) * eigen.vectors().col(k)).template cast<Scalar>();
            mixed.col(value >= 0 ? positive++ : --negative) =
                block.middleCols(i * tokens, tokens).lazyProduct(direction);
        }
    }
    const auto add_both = [&](auto& sum) {
        linalg::add_gram(Scalar(1), mixed.leftCols(positive), sum);
        linalg::add_gram(Scalar(-1), mixed.rightCols(mixed.cols() - negative), sum);
    };
    if constexpr (std::is_same_v<Scalar, double>) {
        add_both(lower);
    } else {
        linalg::FloatMatrix sum = linalg::FloatMatrix::Zero(lower.rows(), lower.cols());  // of one block
        add_both(sum);
        lower.triangularView<Eigen::Lower>() += sum.cast<double>();
    }
}

template <class Scalar>
BilinearMap<Scalar>::BilinearMap(const linalg::ConstMatrixRef& weights, const channels::Geometry& geometry)
    : weights_(weights.cast<Scalar>()), geometry_(geometry) {}

template <class Scalar>
void BilinearMap<Scalar>::indices(const TokenSource::BlockOf<Scalar>& queries,
                                  const TokenSource::BlockOf<Scalar>& keys, Matrix& projected,
                                  channels::RowsRef index) const {
    projected.resize(weights_.cols(), queries.cols());
    linalg::multiply(Scalar(1), weights_, linalg::Transpose::yes, queries, linalg::Transpose::no, Scalar(0),
                     projected);
    // sqrt(sqrt(d^2)) is sqrt(d) to the last bit.
    const double scale =
        1 / std::sqrt(std::sqrt(static_cast<double>(queries.rows()) * static_cast<double>(keys.rows())));
    const Dots<Scalar> dots(keys.rows());
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        Eigen::Index pair = 0;
        for (int a = 0; a < geometry_.queries; ++a) {
            for (int b = 0; b < geometry_.keys; ++b) {
                if (!geometry_.sees(a, b)) continue;
                index(i, pair++) = scale * dots.one(projected.col(i * geometry_.queries + a).data(),
                                                    keys.col(i * geometry_.keys + b).data());
            }
        }
    }
}

template <class Scalar>
void accumulate_bilinear(const channels::Geometry& geometry, const TokenSource::BlockOf<Scalar>& queries,
                         const TokenSource::BlockOf<Scalar>& keys, const channels::ConstRowsRef& g,
                         Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>& mixed, Matrix& sum) {
    mixed.resize(keys.rows(), queries.cols());
    Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> weights =
        Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>::Zero(geometry.keys, geometry.queries);
    for (Eigen::Index i = 0; i < g.rows(); ++i) {
        Eigen::Index pair = 0;
        for (int a = 0; a < geometry.queries; ++a) {
            for (int b = 0; b < geometry.keys; ++b) {
                if (geometry.sees(a, b)) weights(b, a) = static_cast<Scalar>(g(i, pair++));
            }
        }
        mixed.middleCols(i * geometry.queries, geometry.queries) =
            keys.middleCols(i * geometry.keys, geometry.keys).lazyProduct(weights);
    }
    const auto add = [&](auto& to) {
        linalg::multiply(Scalar(1), queries, linalg::Transpose::no, mixed, linalg::Transpose::yes, Scalar(1),
                         to);
    };
    if constexpr (std::is_same_v<Scalar, double>) {
        add(sum);
    } else {
        linalg::FloatMatrix block_sum = linalg::FloatMatrix::Zero(sum.rows(), sum.cols());
        add(block_sum);
        sum += block_sum.cast<double>();
    }
}

template class BilinearMap<double>;
template class BilinearMap<float>;
template void accumulate_bilinear<double>(const channels::Geometry&, const TokenSource::Block&,
                                          const TokenSource::Block&, const channels::ConstRowsRef&, Matrix&,
                                          Matrix&);
template void accumulate_bilinear<float>(const channels::Geometry&, const TokenSource::BlockOf<float>&,
                                         const TokenSource::BlockOf<float>&, const channels::ConstRowsRef&,
                                         linalg::FloatMatrix&, Matrix&);
template class AttentionMap<double>;
template class AttentionMap<float>;
template void accumulate_transpose<double>(const TokenSource::Block&, Eigen::Index,
                                           const channels::ConstRowsRef&, Matrix&, Matrix&);
template void accumulate_transpose<float>(const TokenSource::BlockOf<float>&, Eigen::Index,
                                          const channels::ConstRowsRef&, linalg::FloatMatrix&, Matrix&);

channels::Rows attention_indices(const TokenSource& source, std::span<const Matrix> weights,
                                 ThreadPool& pool) {
    check_weights("weights", weights, source.dim());
    const Eigen::Index pairs = source.tokens() * (source.tokens() + 1) / 2;
    std::vector<AttentionMap<double>> maps;
    for (const Matrix& layer : weights) maps.emplace_back(layer);
    channels::Rows index(source.samples(), static_cast<Eigen::Index>(weights.size()) * pairs);
    parallel_for(pool, static_cast<std::size_t>(source.samples()), samples_per_block(source),
                 [&](Range range) {
                     Matrix scratch, projected;
                     const auto block = source.block(range, scratch);
                     auto rows = index.middleRows(static_cast<Eigen::Index>(range.begin),
                                                  static_cast<Eigen::Index>(range.size()));
                     for (std::size_t l = 0; l < maps.size(); ++l) {
                         maps[l].indices(block, source.tokens(), projected,
                                         rows.middleCols(static_cast<Eigen::Index>(l) * pairs, pairs));
                     }
                 });
    return index;
}

channels::Rows attention_indices(const channels::Geometry& geometry, const TokenSource& queries,
                                 const TokenSource& keys, std::span<const Matrix> weights, ThreadPool& pool) {
    if (geometry.symmetric()) return attention_indices(queries, weights, pool);
    check_weights("weights", weights, queries.dim(), keys.dim());
    check_size("number of weights", static_cast<long long>(weights.size()), 1);
    const BilinearMap<double> map(weights[0], geometry);
    channels::Rows index(queries.samples(), geometry.pairs());
    parallel_for(pool, static_cast<std::size_t>(queries.samples()), samples_per_block(queries),
                 [&](Range range) {
                     Matrix scratch, key_scratch, projected;
                     const auto block = queries.block(range, scratch);
                     const bool same = &keys == &queries;
                     map.indices(block, same ? block : keys.block(range, key_scratch), projected,
                                 index.middleRows(static_cast<Eigen::Index>(range.begin),
                                                  static_cast<Eigen::Index>(range.size())));
                 });
    return index;
}

void check_weights(std::string_view name, std::span<const Matrix> weights, Eigen::Index dim) {
    check_weights(name, weights, dim, dim);
}

void check_weights(std::string_view name, std::span<const Matrix> weights, Eigen::Index rows,
                   Eigen::Index columns) {
    if (weights.empty()) throw_invalid(name, "at least one matrix", "none");
    for (const Matrix& s : weights) {
        if (s.rows() != rows || s.cols() != columns)
            throw_invalid(name, fmt::format("{} x {}", rows, columns),
                          fmt::format("{} x {}", s.rows(), s.cols()));
    }
}

}  // namespace bayesaim::data
