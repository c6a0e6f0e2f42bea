// SPDX-License-Identifier: MIT
#include "bayesaim/priors/rotated.hpp"

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::priors {
namespace {

linalg::Matrix rotation(Eigen::Index dim, std::uint64_t seed, std::uint64_t index, ThreadPool& pool) {
    const RandomStream stream(seed, Purpose::rotation, index);
    return linalg::haar_orthogonal(linalg::gaussian_matrix(dim, dim, stream, pool));
}

}  // namespace

linalg::Vector quantiles(Eigen::Index dim, const std::function<double(double)>& quantile) {
    check_at_least("dimension", dim, 1);
    linalg::Vector values(dim);
    for (Eigen::Index i = 0; i < dim; ++i)
        values[i] = quantile((static_cast<double>(i) + 0.5) / static_cast<double>(dim));
    return values;
}

linalg::Matrix rotated(const linalg::Vector& values, std::uint64_t seed, std::uint64_t index,
                       ThreadPool& pool) {
    return linalg::from_eigen(rotation(values.size(), seed, index, pool), values, pool);
}

linalg::Matrix rotated_on_both_sides(const linalg::Vector& values, std::uint64_t seed, std::uint64_t index,
                                     ThreadPool& pool) {
    const Eigen::Index dim = values.size();
    const linalg::Matrix left = rotation(dim, seed, 2 * index, pool),
                         right = rotation(dim, seed, 2 * index + 1, pool);
    linalg::Matrix result(dim, dim);
    linalg::multiply(1.0, left * values.asDiagonal(), linalg::Transpose::no, right, linalg::Transpose::yes,
                     0.0, result);
    return result;
}

}  // namespace bayesaim::priors
