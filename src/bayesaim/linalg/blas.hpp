// SPDX-License-Identifier: MIT
#pragma once
#include <Eigen/Core>

/// The large products, on OpenBLAS. Each call runs BLAS on one thread. The library runs calls in parallel
/// itself (core/parallel), because OpenBLAS with several threads does not give the same bits.
namespace bayesaim::linalg {

using Matrix = Eigen::MatrixXd;  ///< column-major
using Vector = Eigen::VectorXd;
using ConstMatrixRef = Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>;
using MatrixRef = Eigen::Ref<Matrix, 0, Eigen::OuterStride<>>;
using FloatMatrix = Eigen::MatrixXf;
using ConstFloatMatrixRef = Eigen::Ref<const FloatMatrix, 0, Eigen::OuterStride<>>;
using FloatMatrixRef = Eigen::Ref<FloatMatrix, 0, Eigen::OuterStride<>>;

enum class Transpose { no, yes };

/// C = alpha op(A) op(B) + beta C
void multiply(double alpha, const ConstMatrixRef& a, Transpose transpose_a, const ConstMatrixRef& b,
              Transpose transpose_b, double beta, MatrixRef c);
void multiply(float alpha, const ConstFloatMatrixRef& a, Transpose transpose_a, const ConstFloatMatrixRef& b,
              Transpose transpose_b, float beta, FloatMatrixRef c);

/// The product A B.
Matrix product(const ConstMatrixRef& a, const ConstMatrixRef& b);

/// A^T B
Matrix transposed_product(const ConstMatrixRef& a, const ConstMatrixRef& b);

/// X <- op(L)^-1 X for a lower triangle L. Entries above the diagonal are not read.
void solve_lower(const ConstMatrixRef& lower, Transpose transpose, MatrixRef x);

/// lower += alpha A A^T on the lower triangle: half a product.
void add_gram(double alpha, const ConstMatrixRef& a, MatrixRef lower);
void add_gram(float alpha, const ConstFloatMatrixRef& a, FloatMatrixRef lower);

/// alpha A A^T, both triangles filled.
Matrix gram(double alpha, const ConstMatrixRef& a);

/// The number of threads that OpenBLAS uses outside the functions of this header, which do not change it.
int blas_threads();

/// The kernels that OpenBLAS should have chosen, as a value of the environment variable OPENBLAS_CORETYPE, or
/// null if its own choice is fine. OpenBLAS takes a processor newer than itself for the oldest one, at a
/// third of the speed. It reads the variable when it is loaded, so a program has to set it and start again.
const char* better_blas_kernels();

/// What rounding depends on: the kernels of OpenBLAS, and the instructions that the C library chooses by.
std::string kernels();

/// BLAS runs on one thread while an object of this class exists. Scopes may be nested and concurrent.
class SerialBlas {
  public:
    SerialBlas();
    ~SerialBlas();
    SerialBlas(const SerialBlas&) = delete;
    SerialBlas& operator=(const SerialBlas&) = delete;

  private:
    bool first_ = false;  // of so many at a time
};

}  // namespace bayesaim::linalg
