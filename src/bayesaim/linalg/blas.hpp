// SPDX-License-Identifier: MIT
#pragma once
#include <Eigen/Core>

/// The large products, on OpenBLAS. Each call runs BLAS on one thread: parallelism is ours (core/parallel),
/// because OpenBLAS with several threads does not give the same bits.
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

/// A B
Matrix product(const ConstMatrixRef& a, const ConstMatrixRef& b);

/// L X for a lower triangle L: half a product. What is above the diagonal has to be 0.
void multiply_by_lower(const ConstMatrixRef& lower, const ConstMatrixRef& x, MatrixRef product);
void multiply_by_lower(const ConstFloatMatrixRef& lower, const ConstFloatMatrixRef& x,
                       FloatMatrixRef product);

/// lower += alpha A A^T on the lower triangle: half a product.
void add_gram(double alpha, const ConstMatrixRef& a, MatrixRef lower);
void add_gram(float alpha, const ConstFloatMatrixRef& a, FloatMatrixRef lower);

/// alpha A A^T, both triangles filled.
Matrix gram(double alpha, const ConstMatrixRef& a);

/// The number of threads that OpenBLAS uses outside our calls (ours leave it as it was).
int blas_threads();

/// The kernels OpenBLAS should have chosen, by the name that the environment variable OPENBLAS_CORETYPE
/// takes, or null if its own choice is fine. A processor newer than OpenBLAS is taken for the oldest one, at
/// a third of the speed; the variable is read when OpenBLAS is loaded, so a program has to set it and start
/// again.
const char* better_blas_kernels();

/// While one of these lives BLAS runs on one thread. Nested and concurrent scopes count.
class SerialBlas {
  public:
    SerialBlas();
    ~SerialBlas();
    SerialBlas(const SerialBlas&) = delete;
    SerialBlas& operator=(const SerialBlas&) = delete;
};

}  // namespace bayesaim::linalg
