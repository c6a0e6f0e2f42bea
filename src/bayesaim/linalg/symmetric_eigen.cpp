// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/symmetric_eigen.hpp"

#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

// LAPACK's Fortran interface, as OpenBLAS exports it (Debian's OpenBLAS carries no LAPACKE header).
extern "C" {
void dsytrd_(const char* triangle, const int* n, double* a, const int* lda, double* diagonal,
             double* off_diagonal, double* tau, double* work, const int* work_size, int* info);
void dsterf_(const int* n, double* diagonal, double* off_diagonal, int* info);
void dstedc_(const char* job, const int* n, double* diagonal, double* off_diagonal, double* vectors,
             const int* ld_vectors, double* work, const int* work_size, int* iwork, const int* iwork_size,
             int* info);
void dormtr_(const char* side, const char* triangle, const char* transpose, const int* m, const int* n,
             const double* a, const int* lda, const double* tau, double* c, const int* ldc, double* work,
             const int* work_size, int* info);
void dgeqrf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work,
             const int* work_size, int* info);
void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau,
             double* work, const int* work_size, int* info);
}

namespace bayesaim::linalg {
namespace {

/// LAPACK's return value: negative means a wrong argument (a bug here), positive that the method failed.
void check_info(const char* routine, int info) {
    if (info != 0) throw std::runtime_error(fmt::format("LAPACK {} failed with info = {}", routine, info));
}

/// A = O T O' with a tridiagonal T: its diagonal, what is beside it, and the reflections that make up O.
struct Tridiagonal {
    Vector diagonal, beside, tau;
    double scale = 1;  // T belongs to A / scale
};

/// Replaces the lower triangle of A by the reflections. Blocks of 16 are up to a sixth faster than LAPACK's
/// own choice of 32. Entries whose squares overflow or vanish are scaled first.
Tridiagonal make_tridiagonal(Matrix& a) {
    // For processors that it does not know, OpenBLAS 0.3.21 has a dsymv that reads up to four numbers beyond its vectors.
    constexpr int spare = 8;
    const int n = static_cast<int>(a.rows()), size = 16 * n;
    Tridiagonal result{Vector(n), Vector(n), Vector(n + spare)};
    double largest = 0;
    for (int j = 0; j < n; ++j) largest = std::max(largest, a.col(j).tail(n - j).cwiseAbs().maxCoeff());
    if (largest > 1e140 || (largest > 0 && largest < 1e-140)) {
        result.scale = largest;
        a.triangularView<Eigen::Lower>() *= 1 / largest;
    }
    Vector work(size + spare);
    int info = 0;
    dsytrd_("L", &n, a.data(), &n, result.diagonal.data(), result.beside.data(), result.tau.data(),
            work.data(), &size, &info);
    check_info("dsytrd", info);
    return result;
}

}  // namespace

SymmetricEigen symmetric_eigen(Matrix a) {
    check_size("columns of a symmetric matrix", a.cols(), a.rows());
    if (a.rows() == 0) return {};
    const SerialBlas serial;
    Tridiagonal t = make_tridiagonal(a);
    const int n = static_cast<int>(a.rows()), size = std::max(1 + 4 * n + n * n, 32 * n + 65 * 64),
              isize = 3 + 5 * n;
    Matrix vectors(n, n);
    Vector work(size);
    std::vector<int> iwork(static_cast<std::size_t>(isize));
    int info = 0;
    dstedc_("I", &n, t.diagonal.data(), t.beside.data(), vectors.data(), &n, work.data(), &size, iwork.data(),
            &isize, &info);
    check_info("dstedc", info);
    dormtr_("L", "L", "N", &n, &n, a.data(), &n, t.tau.data(), vectors.data(), &n, work.data(), &size, &info);
    check_info("dormtr", info);
    return {t.scale * t.diagonal, std::move(vectors)};
}

Vector symmetric_eigenvalues(Matrix a) {
    check_size("columns of a symmetric matrix", a.cols(), a.rows());
    if (a.rows() == 0) return {};
    const SerialBlas serial;
    Tridiagonal t = make_tridiagonal(a);
    const int n = static_cast<int>(a.rows());
    int info = 0;
    dsterf_(&n, t.diagonal.data(), t.beside.data(), &info);
    check_info("dsterf", info);
    return t.scale * t.diagonal;
}

Matrix from_eigen(const ConstMatrixRef& vectors, const Vector& values, ThreadPool& pool) {
    constexpr std::size_t columns_per_block = 128;
    const Matrix scaled = vectors * values.asDiagonal();
    const Eigen::Index n = vectors.rows();
    Matrix result(n, n);
    parallel_for(pool, static_cast<std::size_t>(n), columns_per_block, [&](Range columns) {
        const auto first = static_cast<Eigen::Index>(columns.begin),
                   width = static_cast<Eigen::Index>(columns.size());
        multiply(1, scaled.bottomRows(n - first), Transpose::no, vectors.middleRows(first, width),
                 Transpose::yes, 0, result.block(first, first, n - first, width));
    });
    result.triangularView<Eigen::StrictlyUpper>() = result.transpose();
    return result;
}

void check_symmetric(const char* name, const ConstMatrixRef& matrix) {
    const std::string argument(name);
    if (matrix.rows() != matrix.cols() || matrix.rows() == 0) {
        throw_invalid(argument, "a square matrix", fmt::format("{} x {}", matrix.rows(), matrix.cols()));
    }
    double scale = 0, difference = 0;
    Eigen::Index row = 0, column = 0;
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
        for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
            const double value = matrix(i, j);
            if (!std::isfinite(value)) {
                throw_invalid(fmt::format("{}({}, {})", argument, i, j), "a finite number", value);
            }
            scale = std::max(scale, std::abs(value));
            if (const double gap = std::abs(value - matrix(j, i)); gap > difference) {
                difference = gap;
                row = i;
                column = j;
            }
        }
    }
    if (difference > 1e-10 * scale) {
        throw_invalid(argument, "symmetric",
                      fmt::format("{} at ({}, {}) and {} at ({}, {})", matrix(row, column), row, column,
                                  matrix(column, row), column, row));
    }
}

Matrix haar_orthogonal(Matrix gaussian) {
    check_size("columns of a square matrix", gaussian.cols(), gaussian.rows());
    const int n = static_cast<int>(gaussian.rows()), block = 64, size = block * n;
    int info = 0;
    Vector reflectors(n);
    std::vector<double> work(static_cast<std::size_t>(size));
    const SerialBlas serial;
    dgeqrf_(&n, &n, gaussian.data(), &n, reflectors.data(), work.data(), &size, &info);
    check_info("dgeqrf", info);
    const Vector diagonal = gaussian.diagonal();
    dorgqr_(&n, &n, &n, gaussian.data(), &n, reflectors.data(), work.data(), &size, &info);
    check_info("dorgqr", info);
    for (int j = 0; j < n; ++j) {
        if (diagonal[j] < 0) gaussian.col(j) = -gaussian.col(j);
    }
    return gaussian;
}

}  // namespace bayesaim::linalg
