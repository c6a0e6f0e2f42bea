// SPDX-License-Identifier: MIT
#include "bayesaim/data/linear_terms.hpp"

#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include "bayesaim/data/attention.hpp"
#include "bayesaim/linalg/random_matrix.hpp"

namespace bayesaim::data {
namespace {

using channels::Attention;
using channels::Geometry;
using linalg::Matrix;
using linalg::Vector;

Matrix normal(Eigen::Index rows, Eigen::Index columns, std::uint64_t seed) {
    ThreadPool pool;
    return linalg::gaussian_matrix(rows, columns, RandomStream(seed, Purpose::noise), pool);
}

std::vector<Geometry> geometries() {
    return {{Attention::tied, 3, 3},
            {Attention::cross, 2, 4},
            {Attention::masked, 3, 3},
            {Attention::self, 3, 3},
            {Attention::causal, 3, 3}};
}

struct Case {
    explicit Case(const Geometry& of)
        : geometry(of),
          layout(of, {true, true, true, true}, dim, dim),
          x(normal(dim, samples * of.queries, 1)),
          z(of.separate_keys() ? normal(dim, samples * of.keys, 2) : x) {}

    static constexpr Eigen::Index dim = 7, samples = 5;
    Geometry geometry;
    TermLayout layout;
    Matrix x, z;
    TokenSource::Block queries() const { return {x.data(), x.rows(), x.cols()}; }
    TokenSource::Block keys() const { return {z.data(), z.rows(), z.cols()}; }
    Eigen::Index columns() const { return geometry.parts() * geometry.pairs(); }
};

/// The indices are those of a matrix h that is written down entry by entry.
TEST(LinearTerms, AreAddedToTheIndicesOfEveryGeometry) {
    for (const Geometry& geometry : geometries()) {
        const Case one(geometry);
        const Vector parameters = normal(one.layout.size(), 1, 3);
        const LinearTerms terms = one.layout.terms(parameters);
        EXPECT_EQ(one.layout.parameters(terms), parameters);
        channels::Rows index = channels::Rows::Zero(Case::samples, one.columns());
        one.layout.add<double>(terms, one.queries(), one.keys(), index);
        const Vector query = geometry.symmetric() ? terms.key : terms.query;
        const double scale = std::sqrt(static_cast<double>(Case::dim));
        for (Eigen::Index i = 0; i < Case::samples; ++i) {
            const auto h = [&](int a, int b) {
                return (query.dot(one.x.col(i * geometry.queries + a)) +
                        terms.key.dot(one.z.col(i * geometry.keys + b))) /
                           scale +
                       (a == b ? terms.diagonal : 0) + terms.constant;
            };
            for (int a = 0; a < geometry.queries; ++a) {
                for (int b = 0; b < geometry.keys; ++b) {
                    if (geometry.separate_keys() && a == b) continue;  // its diagonal means nothing
                    if (!geometry.sees(a, b) && geometry.parts() == 1) continue;
                    const int p = geometry.pair(a, b);
                    double expected = h(a, b);
                    if (geometry.symmetric() && a != b) expected *= std::numbers::sqrt2;
                    if (geometry.parts() == 2 && a != b) expected = (h(a, b) + h(b, a)) / std::numbers::sqrt2;
                    EXPECT_NEAR(index(i, p), expected, 1e-12);
                    if (geometry.parts() == 2 && a < b) {
                        EXPECT_NEAR(index(i, geometry.pairs() + p), (h(a, b) - h(b, a)) / std::numbers::sqrt2,
                                    1e-12);
                    }
                }
            }
        }
    }
}

/// Rejects a transposed map with another sign or order of the tokens: <F b, g> = <b, F' g>, and the Gram matrix.
TEST(LinearTerms, TransposeAndGramBelongToTheMap) {
    for (const Geometry& geometry : geometries()) {
        const Case one(geometry);
        const Eigen::Index size = one.layout.size();
        const channels::Rows g = normal(Case::samples, one.columns(), 4);
        Vector pulled = Vector::Zero(size);
        one.layout.add_transpose<double>(one.queries(), one.keys(), g, pulled);
        const Matrix root = normal(one.columns(), one.columns(), 5);
        const Matrix h = root * root.transpose();
        ThreadPool one_thread(1), three(3);
        const auto queries = given_tokens(one.x, geometry.queries);
        const auto separate = given_tokens(one.z, geometry.keys);
        const TokenSource& keys = geometry.separate_keys() ? *separate : *queries;
        const Matrix gram = one.layout.gram(*queries, keys, h, one_thread);
        EXPECT_EQ(gram, one.layout.gram(*queries, keys, h, three));
        std::vector<channels::Rows> columns;
        for (Eigen::Index k = 0; k < size; ++k) {
            channels::Rows index = channels::Rows::Zero(Case::samples, one.columns());
            one.layout.add<double>(one.layout.terms(Vector::Unit(size, k)), one.queries(), one.keys(), index);
            EXPECT_NEAR(index.cwiseProduct(g).sum(), pulled[k], 1e-11);
            columns.push_back(index);
        }
        for (Eigen::Index k = 0; k < size; ++k) {
            for (Eigen::Index l = 0; l < size; ++l) {
                double sum = 0;
                for (Eigen::Index i = 0; i < Case::samples; ++i)
                    sum += columns[static_cast<std::size_t>(k)].row(i) * h *
                           columns[static_cast<std::size_t>(l)].row(i).transpose();
                EXPECT_NEAR(gram(k, l), sum, 1e-9 * (1 + std::abs(sum)));
            }
        }
    }
}

}  // namespace
}  // namespace bayesaim::data
