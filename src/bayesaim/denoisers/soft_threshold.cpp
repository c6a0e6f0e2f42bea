// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/soft_threshold.hpp"

#include <algorithm>

#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::denoisers {

Thresholded soft_threshold(const linalg::ConstMatrixRef& noisy, double threshold, ThreadPool& pool) {
    auto [values, vectors] = linalg::symmetric_eigen(noisy);
    const Eigen::Index d = values.size();
    Thresholded result;
    while (result.zeros < d && values[result.zeros] <= threshold) ++result.zeros;
    const Eigen::Index zeros = result.zeros;
    // Pairs above count 1, pairs below 0.
    double sum = static_cast<double>((d - zeros) * (d - zeros + 1));
    for (Eigen::Index i = zeros; i < d; ++i) {
        for (Eigen::Index j = 0; j < zeros; ++j) sum += 2 * (values[i] - threshold) / (values[i] - values[j]);
    }
    result.divergence = sum / static_cast<double>(d * d);
    result.eigenvalues = (values.array() - threshold).max(0);
    // Only the eigenvectors above the threshold count.
    result.estimate = zeros == d ? linalg::Matrix(linalg::Matrix::Zero(d, d))
                                 : linalg::from_eigen(vectors.rightCols(d - zeros),
                                                      result.eigenvalues.tail(d - zeros), pool);
    return result;
}

}  // namespace bayesaim::denoisers
