// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <vector>

#include "bayesaim/core/tree_sum.hpp"
#include "bayesaim/linalg/blas.hpp"

namespace bayesaim::linalg {

/// A sum over samples that is a matrix and some numbers (core/tree_sum.hpp).
struct MatrixSum {
    Matrix matrix;
    std::vector<double> numbers{};

    void add(const MatrixSum& other);
    void for_parts(const std::function<void(std::span<std::byte>)>& use);
};

/// The bytes of a matrix of any kind.
template <class AnyMatrix>
std::span<std::byte> bytes_of_matrix(AnyMatrix& matrix) {
    return bytes_of(matrix.data(), static_cast<std::size_t>(matrix.size()));
}

/// The sum over the samples of all ranks. `leaf` adds those of some samples to zeros of this shape.
MatrixSum sum_over_samples(ThreadPool& pool, const Shares& shares, Eigen::Index rows, Eigen::Index columns,
                           std::size_t numbers,
                           const std::function<void(Range samples, MatrixSum& sum)>& leaf);

}  // namespace bayesaim::linalg
