// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/random_matrix.hpp"

#include <cmath>

namespace bayesaim::linalg {
namespace {
constexpr std::size_t columns_per_block = 16;
}

Matrix gaussian_matrix(Eigen::Index rows, Eigen::Index cols, const RandomStream& stream, ThreadPool& pool) {
    Matrix result(rows, cols);
    parallel_for(pool, static_cast<std::size_t>(cols), columns_per_block, [&](Range columns) {
        const auto height = static_cast<std::size_t>(rows);
        stream.fill_normal({result.data() + columns.begin * height, columns.size() * height},
                           columns.begin * height);
    });
    return result;
}

Matrix gaussian_orthogonal_ensemble(Eigen::Index dim, const RandomStream& stream, ThreadPool& pool) {
    const Matrix a = gaussian_matrix(dim, dim, stream, pool);
    // Var((a_ij + a_ji)/sqrt(2 d)) = 1/d for i != j, 2/d for i = j.
    return (a + a.transpose()) / std::sqrt(2 * static_cast<double>(dim));
}

}  // namespace bayesaim::linalg
