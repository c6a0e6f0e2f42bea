// SPDX-License-Identifier: MIT
#include "bayesaim/linalg/matrix_sum.hpp"

namespace bayesaim::linalg {

void MatrixSum::add(const MatrixSum& other) {
    matrix += other.matrix;
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += other.numbers[i];
}

void MatrixSum::for_parts(const std::function<void(std::span<std::byte>)>& use) {
    use(bytes_of_matrix(matrix));
    use(bytes_of(numbers.data(), numbers.size()));
}

MatrixSum sum_over_samples(ThreadPool& pool, const Shares& shares, Eigen::Index rows, Eigen::Index columns,
                           std::size_t numbers, const std::function<void(Range, MatrixSum&)>& leaf) {
    std::vector<MatrixSum> spare;
    return TreeSum<MatrixSum>(&pool, shares, spare)([&](Range samples, MatrixSum& sum) {
        sum.matrix.setZero(rows, columns);
        sum.numbers.assign(numbers, 0);
        leaf(samples, sum);
    });
}

}  // namespace bayesaim::linalg
