// SPDX-License-Identifier: MIT
#include "bayesaim/data/attention.hpp"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/denoisers/parts.hpp"
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
AttentionMap<Scalar>::AttentionMap(const linalg::ConstMatrixRef& weights, bool antisymmetric)
    : half_(half_of(weights).cast<Scalar>()), trace_(weights.trace()), antisymmetric_(antisymmetric) {}

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
            index(i, pair_index(a, a, count)) = antisymmetric_ ? 0 : scale * (2.0 * dots.one(x, lx) - trace_);
            for (int b = a + 1; b < count; ++b) {
                const Scalar* y = block.col(i * tokens + b).data();
                const Scalar* ly = projected.col(i * tokens + b).data();
                const double product = antisymmetric_ ? double(dots.one(x, ly)) - double(dots.one(y, lx))
                                                      : dots.two(x, lx, y, ly);
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
    const int pairs = geometry.pairs();
    for (Eigen::Index i = 0; i < g.rows(); ++i) {
        for (int a = 0; a < geometry.queries; ++a) {
            for (int b = 0; b < geometry.keys; ++b) {
                if (geometry.parts() == 2) {
                    const int p = geometry.pair(a, b);
                    const double entry =
                        a == b ? g(i, p)
                               : (g(i, p) + (a < b ? 1 : -1) * g(i, pairs + p)) / std::numbers::sqrt2;
                    weights(b, a) = static_cast<Scalar>(entry);
                } else if (geometry.sees(a, b)) {
                    weights(b, a) = static_cast<Scalar>(g(i, geometry.pair(a, b)));
                }
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

std::vector<Matrix> components_of(const channels::Geometry& geometry, std::span<const Matrix> weights) {
    if (geometry.parts() == 1 || weights.empty()) return {weights.begin(), weights.end()};
    check_size("number of weights", static_cast<long long>(weights.size()), 1);
    auto [symmetric, antisymmetric] = denoisers::parts_of(weights[0]);
    return {std::move(symmetric), std::move(antisymmetric)};
}

std::vector<Matrix> from_components(const channels::Geometry& geometry, std::vector<Matrix> components) {
    if (geometry.parts() == 1) return components;
    return {components[0] + components[1]};
}

template <class Scalar>
std::vector<AttentionMap<Scalar>> attention_maps(const channels::Geometry& geometry,
                                                 std::span<const Matrix> components) {
    std::vector<AttentionMap<Scalar>> maps;
    for (const Matrix& component : components)
        maps.emplace_back(component, geometry.parts() == 2 && maps.size() == 1);
    return maps;
}
template std::vector<AttentionMap<double>> attention_maps(const channels::Geometry&, std::span<const Matrix>);
template std::vector<AttentionMap<float>> attention_maps(const channels::Geometry&, std::span<const Matrix>);

channels::Rows attention_indices(const TokenSource& source, std::span<const Matrix> weights,
                                 ThreadPool& pool) {
    const auto tokens = static_cast<int>(source.tokens());
    return attention_indices({channels::Attention::tied, tokens, tokens}, source, source, weights, pool);
}

channels::Rows attention_indices(const channels::Geometry& geometry, const TokenSource& queries,
                                 const TokenSource& keys, std::span<const Matrix> weights, ThreadPool& pool) {
    check_weights("weights", weights, queries.dim(), keys.dim());
    const std::vector<Matrix> components = components_of(geometry, weights);
    const bool bilinear = geometry.variance_factor() == 1;
    if (bilinear) check_size("number of weights", static_cast<long long>(weights.size()), 1);
    const auto maps =
        bilinear ? std::vector<AttentionMap<double>>() : attention_maps<double>(geometry, components);
    const BilinearMap<double> bilinear_map(bilinear ? weights[0] : Matrix(), geometry);
    const Eigen::Index pairs = geometry.pairs();
    channels::Rows index(queries.samples(), static_cast<Eigen::Index>(components.size()) * pairs);
    for_own_blocks(pool, queries.shares(), samples_per_block(queries), [&](Range range) {
        Matrix scratch, key_scratch, projected;
        const auto block = queries.block(range, scratch);
        auto rows =
            index.middleRows(static_cast<Eigen::Index>(range.begin), static_cast<Eigen::Index>(range.size()));
        if (bilinear) {
            const bool same = &keys == &queries;
            bilinear_map.indices(block, same ? block : keys.block(range, key_scratch), projected, rows);
        }
        for (std::size_t l = 0; l < maps.size(); ++l) {
            maps[l].indices(block, queries.tokens(), projected,
                            rows.middleCols(static_cast<Eigen::Index>(l) * pairs, pairs));
        }
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
