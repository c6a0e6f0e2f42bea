// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/symmetric_eigen.hpp"

#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

// LAPACK's Fortran interface, as OpenBLAS exports it (Debian's OpenBLAS carries no LAPACKE header).
extern "C" {
void dsyevd_(const char* job, const char* triangle, const int* n, double* a, const int* lda, double* values,
             double* work, const int* work_size, int* iwork, const int* iwork_size, int* info);
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

Vector eigen_in_place(Matrix& a, char job) {
    check_size("columns of a symmetric matrix", a.cols(), a.rows());
    Vector values(a.rows());
    if (a.rows() == 0) return values;
    const SerialBlas serial;
    const int n = static_cast<int>(a.rows());
    double best_size = 0;
    int best_isize = 0, info = 0;
    const int ask = -1;  // a workspace size of -1 asks LAPACK for the best size
    dsyevd_(&job, "L", &n, a.data(), &n, values.data(), &best_size, &ask, &best_isize, &ask, &info);
    check_info("dsyevd (workspace)", info);
    std::vector<double> work(static_cast<std::size_t>(best_size));
    std::vector<int> iwork(static_cast<std::size_t>(best_isize));
    const int size = static_cast<int>(work.size()), isize = static_cast<int>(iwork.size());
    dsyevd_(&job, "L", &n, a.data(), &n, values.data(), work.data(), &size, iwork.data(), &isize, &info);
    check_info("dsyevd", info);
    return values;
}

}  // namespace

SymmetricEigen symmetric_eigen(Matrix a) {
    Vector values = eigen_in_place(a, 'V');
    return {std::move(values), std::move(a)};
}

Vector symmetric_eigenvalues(Matrix a) { return eigen_in_place(a, 'N'); }

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
