// SPDX-License-Identifier: MIT
#include "bayesaim/data/linear_terms.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/matrix_sum.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;
using linalg::Vector;

/// The indices, layer by layer, of a sample with these h_ab.
Eigen::VectorXd indices_of(const channels::Geometry& geometry, const Eigen::MatrixXd& h) {
    const int pairs = geometry.pairs();
    Eigen::VectorXd index = Eigen::VectorXd::Zero(geometry.parts() * pairs);
    for (int a = 0; a < geometry.queries; ++a) {
        for (int b = 0; b < geometry.keys; ++b) {
            if (geometry.symmetric() || geometry.parts() == 2) {
                const int p = geometry.pair(a, b);
                if (a == b) {
                    index[p] = h(a, a);
                } else {
                    index[p] += h(a, b) / std::numbers::sqrt2;
                    if (geometry.parts() == 2)
                        index[pairs + p] += (a < b ? 1 : -1) * h(a, b) / std::numbers::sqrt2;
                }
            } else if (geometry.sees(a, b)) {
                index[geometry.pair(a, b)] = h(a, b);
            }
        }
    }
    return index;
}

double scale_of(Eigen::Index dim, Eigen::Index key_dim) {
    return std::sqrt(std::sqrt(static_cast<double>(dim) * static_cast<double>(key_dim)));
}

/// vector' tokens / s; the order of the sums depends on the sizes alone.
template <class Scalar>
Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> projections(const Vector& vector,
                                                                  const TokenSource::BlockOf<Scalar>& tokens,
                                                                  double scale) {
    Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> result(1, tokens.cols());
    const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> left = vector.template cast<Scalar>();
    linalg::multiply(static_cast<Scalar>(1 / scale), left, linalg::Transpose::yes, tokens,
                     linalg::Transpose::no, Scalar(0), result);
    return result;
}

}  // namespace

TermLayout::TermLayout(const channels::Geometry& geometry, const TermChoice& choice, Eigen::Index dim,
                       Eigen::Index key_dim)
    : geometry_(geometry), choice_(choice), dim_(dim), key_dim_(key_dim) {
    if (geometry.symmetric()) choice_.query = false;
    size_ = (choice_.query ? dim : 0) + (choice_.key ? key_dim : 0) + choice_.diagonal + choice_.constant;
    const int queries = geometry.queries, keys = geometry.keys;
    mixing_.resize(geometry.parts() * geometry.pairs(), queries + keys + 2);
    for (int k = 0; k < mixing_.cols(); ++k) {
        Eigen::MatrixXd h = Eigen::MatrixXd::Zero(queries, keys);
        if (k < queries) {
            h.row(k).setOnes();
        } else if (k < queries + keys) {
            h.col(k - queries).setOnes();
            if (geometry.symmetric()) h.row(k - queries).array() += 1;
        } else if (k == queries + keys) {
            h = Eigen::MatrixXd::Identity(queries, keys);
        } else {
            h.setOnes();
        }
        mixing_.col(k) = indices_of(geometry, h);
    }
}

LinearTerms TermLayout::terms(const Vector& parameters) const {
    check_size("parameters of the linear terms", parameters.size(), size_);
    LinearTerms result;
    Eigen::Index next = 0;
    if (choice_.query) result.query = parameters.segment(std::exchange(next, next + dim_), dim_);
    if (choice_.key) result.key = parameters.segment(std::exchange(next, next + key_dim_), key_dim_);
    if (choice_.diagonal) result.diagonal = parameters[next++];
    if (choice_.constant) result.constant = parameters[next++];
    return result;
}

Vector TermLayout::parameters(const LinearTerms& terms) const {
    Vector result = Vector::Zero(size_);
    Eigen::Index next = 0;
    if (choice_.query) {
        if (terms.query.size() > 0) result.segment(next, dim_) = terms.query;
        next += dim_;
    }
    if (choice_.key) {
        if (terms.key.size() > 0) result.segment(next, key_dim_) = terms.key;
        next += key_dim_;
    }
    if (choice_.diagonal) result[next++] = terms.diagonal;
    if (choice_.constant) result[next++] = terms.constant;
    return result;
}

template <class Scalar>
void TermLayout::add(const LinearTerms& terms, const TokenSource::BlockOf<Scalar>& queries,
                     const TokenSource::BlockOf<Scalar>& keys, channels::RowsRef index) const {
    const double scale = scale_of(dim_, key_dim_);
    const Eigen::Index of_queries = geometry_.queries, of_keys = geometry_.keys;
    Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> from_query, from_key;
    if (terms.query.size() > 0) from_query = projections<Scalar>(terms.query, queries, scale);
    if (terms.key.size() > 0) from_key = projections<Scalar>(terms.key, keys, scale);
    Eigen::VectorXd inputs = Eigen::VectorXd::Zero(mixing_.cols());
    inputs[of_queries + of_keys] = terms.diagonal;
    inputs[of_queries + of_keys + 1] = terms.constant;
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        if (from_query.size() > 0)
            inputs.head(of_queries) =
                from_query.middleCols(i * of_queries, of_queries).transpose().template cast<double>();
        if (from_key.size() > 0)
            inputs.segment(of_queries, of_keys) =
                from_key.middleCols(i * of_keys, of_keys).transpose().template cast<double>();
        index.row(i) += mixing_.lazyProduct(inputs).transpose();
    }
}

template <class Scalar>
void TermLayout::add_transpose(const TokenSource::BlockOf<Scalar>& queries,
                               const TokenSource::BlockOf<Scalar>& keys, const channels::ConstRowsRef& g,
                               Vector& sum) const {
    const Eigen::MatrixXd weights = g * mixing_;  // one row per sample
    const Eigen::Index of_queries = geometry_.queries, of_keys = geometry_.keys;
    const double scale = scale_of(dim_, key_dim_);
    Eigen::Index next = 0;
    const auto add_vector = [&](const TokenSource::BlockOf<Scalar>& tokens, Eigen::Index first,
                                Eigen::Index count) {
        // row by row, the order of the tokens
        const channels::Rows ordered = weights.middleCols(first, count);
        const Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> column =
            Eigen::Map<const Eigen::VectorXd>(ordered.data(), ordered.size()).template cast<Scalar>();
        Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic> result(tokens.rows(), 1);
        linalg::multiply(static_cast<Scalar>(1 / scale), tokens, linalg::Transpose::no, column,
                         linalg::Transpose::no, Scalar(0), result);
        sum.segment(next, tokens.rows()) += result.template cast<double>();
        next += tokens.rows();
    };
    if (choice_.query) add_vector(queries, 0, of_queries);
    if (choice_.key) add_vector(keys, of_queries, of_keys);
    if (choice_.diagonal) sum[next++] += weights.col(of_queries + of_keys).sum();
    if (choice_.constant) sum[next++] += weights.col(of_queries + of_keys + 1).sum();
}

Matrix TermLayout::gram(const TokenSource& queries, const TokenSource& keys, const Eigen::MatrixXd& h,
                        ThreadPool& pool) const {
    constexpr std::size_t block_size = 64;
    const double scale = scale_of(dim_, key_dim_);
    const Eigen::Index indices = mixing_.rows();
    const auto add_samples = [&](Range samples, linalg::MatrixSum& sum) {
        Matrix scratch, key_scratch, features, weighted;
        for (std::size_t b = 0; b < block_count(samples.size(), block_size); ++b) {
            const Range range = block_within(samples, block_size, b);
            const auto count = static_cast<Eigen::Index>(range.size());
            const auto x = queries.block(range, scratch);
            const bool same = &keys == &queries;
            const auto z = same ? x : keys.block(range, key_scratch);
            features.setZero(size_, count * indices);  // F', sample by sample
            for (Eigen::Index i = 0; i < count; ++i) {
                auto f = features.middleCols(i * indices, indices);
                Eigen::Index next = 0;
                const auto vectors = [&](const TokenSource::Block& tokens, Eigen::Index first,
                                         Eigen::Index each) {
                    f.middleRows(next, tokens.rows()) =
                        tokens.middleCols(i * each, each)
                            .lazyProduct(mixing_.middleCols(first, each).transpose() / scale);
                    next += tokens.rows();
                };
                if (choice_.query) vectors(x, 0, geometry_.queries);
                if (choice_.key) vectors(z, geometry_.queries, geometry_.keys);
                if (choice_.diagonal) f.row(next++) = mixing_.col(mixing_.cols() - 2).transpose();
                if (choice_.constant) f.row(next++) = mixing_.col(mixing_.cols() - 1).transpose();
            }
            weighted.resize(features.rows(), features.cols());
            for (Eigen::Index i = 0; i < count; ++i)
                weighted.middleCols(i * indices, indices) =
                    features.middleCols(i * indices, indices).lazyProduct(h);
            linalg::multiply(1.0, features, linalg::Transpose::no, weighted, linalg::Transpose::yes, 1.0,
                             sum.matrix);
        }
    };
    const Matrix sum = linalg::sum_over_samples(pool, queries.shares(), size_, size_, 0, add_samples).matrix;
    return 0.5 * (sum + sum.transpose());
}

template void TermLayout::add<double>(const LinearTerms&, const TokenSource::Block&,
                                      const TokenSource::Block&, channels::RowsRef) const;
template void TermLayout::add<float>(const LinearTerms&, const TokenSource::BlockOf<float>&,
                                     const TokenSource::BlockOf<float>&, channels::RowsRef) const;
template void TermLayout::add_transpose<double>(const TokenSource::Block&, const TokenSource::Block&,
                                                const channels::ConstRowsRef&, Vector&) const;
template void TermLayout::add_transpose<float>(const TokenSource::BlockOf<float>&,
                                               const TokenSource::BlockOf<float>&,
                                               const channels::ConstRowsRef&, Vector&) const;

}  // namespace bayesaim::data
