// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <optional>

#include "bayesaim/linalg/blas.hpp"

/// Decompositions of small and medium matrices, compiled once: each file that instantiates Eigen's takes some
/// ten seconds longer. symmetric_eigen.hpp is for large symmetric matrices, overlap.hpp for order parameters.
namespace bayesaim::linalg {

/// Cholesky's lower triangle L with L L' = A, 0 above the diagonal. Reads the lower triangle of A;
/// std::nullopt if A is not positive definite.
std::optional<Matrix> cholesky(Matrix symmetric);

/// X with A X = B for a positive definite A, or by LU; NaN if A is singular.
Matrix solve_positive(Matrix positive, Matrix right_side);
Matrix solve_general(Matrix matrix, Matrix right_side);

/// Eigenvalues and eigenvectors of symmetric matrices of one size, one after the other in the same memory:
/// for loops over samples. Eigenvalues are ascending, except for 2 x 2 matrices (one Jacobi rotation).
class SmallEigen {
  public:
    explicit SmallEigen(Eigen::Index size);
    ~SmallEigen();

    void compute(const Matrix& symmetric);
    const Vector& values() const { return values_; }
    const Matrix& vectors() const { return vectors_; }

  private:
    struct Solver;
    std::unique_ptr<Solver> solver_;
    Vector values_;
    Matrix vectors_;
};

/// A small matrix; no heap memory. Its layout depends on -march, so only the library itself may use it.
inline constexpr int max_small = 8;
using SmallMatrix =
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, max_small, max_small>;

/// M <- B^-1 M B^-T. Returns det B.
double divide_both_sides(SmallMatrix b, SmallMatrix& matrix);

}  // namespace bayesaim::linalg
