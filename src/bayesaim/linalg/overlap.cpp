// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/overlap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bayesaim/core/record.hpp"
#include "bayesaim/linalg/decompositions.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::linalg {

Overlap symmetric_part(const Overlap& matrix) { return 0.5 * (matrix + matrix.transpose()); }

Overlap diagonal_part(const Overlap& matrix) { return matrix.diagonal().asDiagonal(); }

Overlap inverse(const Overlap& matrix) {
    if (matrix.rows() == 1) return scalar_overlap(1 / matrix(0, 0));
    return solve_general(matrix, Matrix::Identity(matrix.rows(), matrix.rows()));
}

double determinant(const Overlap& symmetric) { return symmetric_eigenvalues(symmetric).prod(); }

bool positive_definite(const Overlap& symmetric) {
    return symmetric.allFinite() && cholesky(symmetric).has_value();
}

double smallest_eigenvalue(const Overlap& symmetric) {
    if (!symmetric.allFinite()) return std::numeric_limits<double>::quiet_NaN();
    return symmetric_eigenvalues(symmetric)[0];
}

Overlap with_eigenvalues_above(const Overlap& symmetric, double bound) {
    if (symmetric.rows() == 1) return scalar_overlap(std::max(symmetric(0, 0), bound));
    if (!symmetric.allFinite()) return symmetric;
    const auto [values, vectors] = symmetric_eigen(symmetric);
    if (values[0] >= bound) return symmetric;
    return (vectors * values.cwiseMax(bound).asDiagonal()).lazyProduct(vectors.transpose());
}

Overlap lower_root(const Overlap& symmetric) {
    Overlap root = Overlap::Zero(symmetric.rows(), symmetric.cols());
    for (Eigen::Index j = 0; j < symmetric.cols(); ++j) {
        const double rest = symmetric(j, j) - root.row(j).head(j).squaredNorm();
        if (rest <= 1e-14 * symmetric(j, j)) continue;
        root(j, j) = std::sqrt(rest);
        for (Eigen::Index i = j + 1; i < symmetric.rows(); ++i) {
            const double largest =
                std::sqrt(std::max(symmetric(i, i) - root.row(i).head(j).squaredNorm(), 0.0));
            const double entry =
                (symmetric(i, j) - root.row(i).head(j).dot(root.row(j).head(j))) / root(j, j);
            root(i, j) = std::clamp(entry, -largest, largest);
        }
    }
    return root;
}

Value to_value(const Overlap& matrix) {
    if (matrix.size() == 1) return matrix(0, 0);
    Value::List rows;
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
        Value::List row;
        for (Eigen::Index j = 0; j < matrix.cols(); ++j) row.emplace_back(matrix(i, j));
        rows.emplace_back(std::move(row));
    }
    return rows;
}

Value diagonal_value(const Overlap& matrix) {
    Value::List values;
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) values.emplace_back(matrix(i, i));
    return values;
}

}  // namespace bayesaim::linalg
