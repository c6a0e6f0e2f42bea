// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/linalg/blas.hpp"

namespace bayesaim::linalg {

/// A = vectors * diag(values) * vectors^T, values ascending.
struct SymmetricEigen {
    Vector values;
    Matrix vectors;
};

/// Eigendecomposition of a symmetric matrix by divide and conquer (the steps of LAPACK's dsyevd, with smaller
/// blocks). Reads the lower triangle.
SymmetricEigen symmetric_eigen(Matrix a);

/// The eigenvalues alone, ascending.
Vector symmetric_eigenvalues(Matrix a);

/// vectors * diag(values) * vectors^T, exactly symmetric. Computes the lower triangle only: half a product.
Matrix from_eigen(const ConstMatrixRef& vectors, const Vector& values, ThreadPool& pool);

/// Throws InvalidArgument unless the matrix is square, finite and symmetric to 1e-10 of its largest entry.
void check_symmetric(const char* name, const ConstMatrixRef& matrix);

/// The orthogonal factor Q of `gaussian` = Q R with positive diagonal of R (LAPACK dgeqrf, dorgqr). Q is Haar
/// distributed if `gaussian` has independent standard normal entries.
Matrix haar_orthogonal(Matrix gaussian);

}  // namespace bayesaim::linalg
