// SPDX-License-Identifier: MIT
#pragma once
#include <Eigen/Core>

namespace bayesaim {
class Value;
}

/// Small symmetric matrices between layers, and their decompositions.
namespace bayesaim::linalg {

/// Most layers that order parameters can have.
inline constexpr int max_layers = 8;

/// An L x L symmetric matrix of order parameters, 1 x 1 for one layer; no heap memory. DontAlign fixes its
/// layout: Eigen would align it as -march allows, and a program compiled for another processor than the
/// library would read other numbers. Pinned by: install.OutsideProgram*.
using Overlap = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor | Eigen::DontAlign,
                              max_layers, max_layers>;
static_assert(sizeof(Overlap) == sizeof(double) * max_layers * max_layers + 2 * sizeof(Eigen::Index));
static_assert(alignof(Overlap) == alignof(double));

/// The 1 x 1 order parameter.
inline Overlap scalar_overlap(double value) { return Overlap::Constant(1, 1, value); }

/// All zero, L x L.
inline Overlap zero_overlap(Eigen::Index layers) { return Overlap::Zero(layers, layers); }

/// (M + M')/2
Overlap symmetric_part(const Overlap& matrix);
/// The diagonal, zeros elsewhere.
Overlap diagonal_part(const Overlap& matrix);

Overlap inverse(const Overlap& matrix);

/// Determinant of a symmetric matrix.
double determinant(const Overlap& symmetric);

/// Whether all entries are finite and all eigenvalues positive.
bool positive_definite(const Overlap& symmetric);

/// The smallest eigenvalue of a symmetric matrix.
double smallest_eigenvalue(const Overlap& symmetric);

/// The symmetric matrix with eigenvalues below the bound raised to it. A sampled precision needs this: its
/// eigenvalues may be negative if there is next to no information.
Overlap with_eigenvalues_above(const Overlap& symmetric, double bound);

/// Cholesky's lower triangle R with R R' = the matrix, which may be singular. If the matrix is not quite
/// positive, its diagonal is kept and correlations are cut at 1. R is continuous in the matrix, so sampled
/// averages at fixed points are too; a root from eigenvectors is not, where eigenvalues cross.
Overlap lower_root(const Overlap& symmetric);

/// The matrix in a record: a number for one layer, rows of numbers for several; and its diagonal, a list.
Value to_value(const Overlap& matrix);
Value diagonal_value(const Overlap& matrix);

}  // namespace bayesaim::linalg
