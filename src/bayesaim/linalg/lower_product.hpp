// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/linalg/blas.hpp"

namespace bayesaim::linalg {

/// A lower triangle L that multiplies many columns: L X costs half a product. Scalar is double or float.
/// Up to 400 rows our own kernel does it where OpenBLAS is slower (see docs/performance.md).
template <class Scalar>
class LowerFactor {
  public:
    using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

    /// The entries above the diagonal must be 0.
    explicit LowerFactor(Matrix lower);

    void multiply(const Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>& x,
                  Eigen::Ref<Matrix, 0, Eigen::OuterStride<>> product) const;

    /// With our own kernel the bits of a column of L X depend on L and on that column of X alone; with OpenBLAS
    /// also on the number of columns.
    bool uses_own_kernel() const { return panels_.size() > 0; }

  private:
    Matrix lower_;
    Eigen::VectorX<Scalar> panels_;  // groups of rows, column after column; empty without our own kernel
};

}  // namespace bayesaim::linalg
