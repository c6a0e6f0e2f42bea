// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/blas.hpp"

#include <mutex>
#include <string>
#include <string_view>

#include <cblas.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/memory.hpp"

namespace bayesaim::linalg {
namespace {

std::mutex scope_mutex;
int open_scopes = 0, threads_outside = 1;

/// OpenBLAS takes a buffer of this size for each call at a time, and keeps it.
constexpr std::size_t buffer_bytes = std::size_t{128} << 20;
int buffers = 0;         // for so many calls at a time there was memory
std::size_t unsure = 0;  // those of calls that have not ended: OpenBLAS may not have taken them yet

CBLAS_TRANSPOSE cblas_flag(Transpose t) { return t == Transpose::yes ? CblasTrans : CblasNoTrans; }

int as_int(Eigen::Index size) { return static_cast<int>(size); }

/// BLAS requires a leading dimension of at least one, also for empty matrices.
template <class M>
int leading_dimension(const M& matrix) {
    return as_int(std::max<Eigen::Index>(1, matrix.outerStride()));
}

/// C = alpha op(A) op(B) + beta C by the BLAS function of the scalar type.
template <class Gemm, class Scalar, class ConstRef, class Ref>
void multiply_with(Gemm gemm, Scalar alpha, const ConstRef& a, Transpose transpose_a, const ConstRef& b,
                   Transpose transpose_b, Scalar beta, Ref& c) {
    const bool at = transpose_a == Transpose::yes, bt = transpose_b == Transpose::yes;
    const Eigen::Index rows = at ? a.cols() : a.rows(), inner = at ? a.rows() : a.cols();
    const Eigen::Index cols = bt ? b.rows() : b.cols();
    check_size("rows of the second factor", bt ? b.cols() : b.rows(), inner);
    check_size("rows of the product", c.rows(), rows);
    check_size("columns of the product", c.cols(), cols);
    const SerialBlas serial;
    gemm(CblasColMajor, cblas_flag(transpose_a), cblas_flag(transpose_b), as_int(rows), as_int(cols),
         as_int(inner), alpha, a.data(), leading_dimension(a), b.data(), leading_dimension(b), beta, c.data(),
         leading_dimension(c));
}

template <class Syrk, class Scalar, class ConstRef, class Ref>
void add_gram_with(Syrk syrk, Scalar alpha, const ConstRef& a, Ref& lower) {
    check_size("rows of the product", lower.rows(), a.rows());
    check_size("columns of the product", lower.cols(), a.rows());
    const SerialBlas serial;
    syrk(CblasColMajor, CblasLower, CblasNoTrans, as_int(a.rows()), as_int(a.cols()), alpha, a.data(),
         leading_dimension(a), 1, lower.data(), leading_dimension(lower));
}

}  // namespace

int blas_threads() {
    const std::lock_guard lock(scope_mutex);
    return open_scopes > 0 ? threads_outside : openblas_get_num_threads();
}

const char* better_blas_kernels() {
#if defined(__x86_64__)
    // OpenBLAS takes a processor that it does not know for this one.
    if (std::string_view(openblas_get_corename()) != "Prescott") return nullptr;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        return "SkylakeX";
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
    return nullptr;
}

std::string kernels() {
    std::string text = openblas_get_corename();
#if defined(__x86_64__)
    for (const auto& [name, there] : {std::pair("fma", __builtin_cpu_supports("fma")),
                                      std::pair("avx2", __builtin_cpu_supports("avx2"))}) {
        if (there != 0) text += std::string(" ") + name;
    }
#endif
    return text;
}

SerialBlas::SerialBlas() {
    const std::lock_guard lock(scope_mutex);
    if (open_scopes == buffers) {
        check_memory((unsure + 1) * buffer_bytes);
        ++buffers;
        ++unsure;
        first_ = true;
    }
    if (open_scopes++ == 0) {
        threads_outside = openblas_get_num_threads();
        if (threads_outside != 1) openblas_set_num_threads(1);
    }
}

SerialBlas::~SerialBlas() {
    const std::lock_guard lock(scope_mutex);
    if (first_) --unsure;
    if (--open_scopes == 0 && threads_outside != 1) openblas_set_num_threads(threads_outside);
}

void multiply(double alpha, const ConstMatrixRef& a, Transpose transpose_a, const ConstMatrixRef& b,
              Transpose transpose_b, double beta, MatrixRef c) {
    multiply_with(cblas_dgemm, alpha, a, transpose_a, b, transpose_b, beta, c);
}

void multiply(float alpha, const ConstFloatMatrixRef& a, Transpose transpose_a, const ConstFloatMatrixRef& b,
              Transpose transpose_b, float beta, FloatMatrixRef c) {
    multiply_with(cblas_sgemm, alpha, a, transpose_a, b, transpose_b, beta, c);
}

void solve_lower(const ConstMatrixRef& lower, Transpose transpose, MatrixRef x) {
    check_size("columns of a triangle", lower.cols(), lower.rows());
    check_size("rows of the right side", x.rows(), lower.rows());
    const SerialBlas serial;
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, cblas_flag(transpose), CblasNonUnit, as_int(x.rows()),
                as_int(x.cols()), 1, lower.data(), leading_dimension(lower), x.data(), leading_dimension(x));
}

Matrix transposed_product(const ConstMatrixRef& a, const ConstMatrixRef& b) {
    Matrix c(a.cols(), b.cols());
    multiply(1, a, Transpose::yes, b, Transpose::no, 0, c);
    return c;
}

Matrix product(const ConstMatrixRef& a, const ConstMatrixRef& b) {
    Matrix c(a.rows(), b.cols());
    multiply(1, a, Transpose::no, b, Transpose::no, 0, c);
    return c;
}

void add_gram(double alpha, const ConstMatrixRef& a, MatrixRef lower) {
    add_gram_with(cblas_dsyrk, alpha, a, lower);
}

void add_gram(float alpha, const ConstFloatMatrixRef& a, FloatMatrixRef lower) {
    add_gram_with(cblas_ssyrk, alpha, a, lower);
}

Matrix gram(double alpha, const ConstMatrixRef& a) {
    Matrix c = Matrix::Zero(a.rows(), a.rows());
    add_gram(alpha, a, c);
    c.triangularView<Eigen::StrictlyUpper>() = c.transpose();
    return c;
}

}  // namespace bayesaim::linalg
