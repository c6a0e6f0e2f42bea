// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/decompositions.hpp"

#include <limits>
#include <vector>

#include <Eigen/Eigenvalues>

#include "bayesaim/core/checks.hpp"

extern "C" {
void dpotrf_(const char* triangle, const int* n, double* a, const int* lda, int* info);
void dposv_(const char* triangle, const int* n, const int* columns, double* a, const int* lda, double* b,
            const int* ldb, int* info);
void dgesv_(const int* n, const int* columns, double* a, const int* lda, int* pivots, double* b,
            const int* ldb, int* info);
}

namespace bayesaim::linalg {

std::optional<Matrix> cholesky(Matrix symmetric) {
    check_size("columns of a symmetric matrix", symmetric.cols(), symmetric.rows());
    const int n = static_cast<int>(symmetric.rows());
    int info = 0;
    const SerialBlas serial;
    dpotrf_("L", &n, symmetric.data(), &n, &info);
    if (info != 0) return std::nullopt;
    symmetric.triangularView<Eigen::StrictlyUpper>().setZero();
    return symmetric;
}

Matrix solve_positive(Matrix positive, Matrix right_side) {
    check_size("columns of a symmetric matrix", positive.cols(), positive.rows());
    check_size("rows of the right side", right_side.rows(), positive.rows());
    const int n = static_cast<int>(positive.rows()), columns = static_cast<int>(right_side.cols());
    int info = 0;
    const SerialBlas serial;
    dposv_("L", &n, &columns, positive.data(), &n, right_side.data(), &n, &info);
    if (info != 0) right_side.setConstant(std::numeric_limits<double>::quiet_NaN());
    return right_side;
}

Matrix solve_general(Matrix matrix, Matrix right_side) {
    check_size("columns of a square matrix", matrix.cols(), matrix.rows());
    check_size("rows of the right side", right_side.rows(), matrix.rows());
    const int n = static_cast<int>(matrix.rows()), columns = static_cast<int>(right_side.cols());
    std::vector<int> pivots(static_cast<std::size_t>(n));
    int info = 0;
    const SerialBlas serial;
    dgesv_(&n, &columns, matrix.data(), &n, pivots.data(), right_side.data(), &n, &info);
    if (info != 0) right_side.setConstant(std::numeric_limits<double>::quiet_NaN());
    return right_side;
}

struct SmallEigen::Solver : Eigen::SelfAdjointEigenSolver<Matrix> {
    using Eigen::SelfAdjointEigenSolver<Matrix>::SelfAdjointEigenSolver;
};

SmallEigen::SmallEigen(Eigen::Index size)
    : solver_(size == 2 ? nullptr : std::make_unique<Solver>(size)), values_(size), vectors_(size, size) {}

SmallEigen::~SmallEigen() = default;

void SmallEigen::compute(const Matrix& symmetric) {
    if (solver_) {
        solver_->compute(symmetric);
        values_ = solver_->eigenvalues();
        vectors_ = solver_->eigenvectors();
        return;
    }
    // One rotation V makes V' A V diagonal.
    Eigen::JacobiRotation<double> rotation;
    rotation.makeJacobi(symmetric(0, 0), symmetric(0, 1), symmetric(1, 1));
    const double c = rotation.c(), s = rotation.s(), tangent = s / c;
    vectors_ << c, s, -s, c;
    values_ << symmetric(0, 0) - tangent * symmetric(0, 1), symmetric(1, 1) + tangent * symmetric(0, 1);
}

/// Gauss-Jordan elimination; each step acts on the rows and on the columns of M. For such small matrices it is
/// up to five times faster than Eigen's decompositions.
double divide_both_sides(SmallMatrix b, SmallMatrix& matrix) {
    double determinant = 1;
    for (Eigen::Index k = 0; k < b.rows(); ++k) {
        Eigen::Index below = 0;  // rows from k down to the pivot
        b.col(k).tail(b.rows() - k).cwiseAbs().maxCoeff(&below);
        if (below > 0) {
            b.row(k).swap(b.row(k + below));
            matrix.row(k).swap(matrix.row(k + below));
            matrix.col(k).swap(matrix.col(k + below));
            determinant = -determinant;
        }
        determinant *= b(k, k);
        for (Eigen::Index i = 0; i < b.rows(); ++i) {
            if (i == k) continue;
            const double factor = b(i, k) / b(k, k);
            b.row(i) -= factor * b.row(k);
            matrix.row(i) -= factor * matrix.row(k);
            matrix.col(i) -= factor * matrix.col(k);
        }
    }
    const SmallMatrix scale = b.diagonal().cwiseInverse();
    matrix.array() *= scale.lazyProduct(scale.transpose()).array();
    return determinant;
}

}  // namespace bayesaim::linalg
