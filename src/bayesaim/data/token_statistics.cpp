// SPDX-License-Identifier: MIT
#include "bayesaim/data/token_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "bayesaim/linalg/matrix_sum.hpp"

namespace bayesaim::data {
namespace {

using linalg::Matrix;
using linalg::Vector;

using Sums = linalg::MatrixSum;
constexpr std::size_t concentration = 0, nonzero = 1, squared_length = 2;  // the numbers of a sum

/// Adds all tokens up. `add(first, tokens, sums)` gets a copy of some tokens, of which the first has number
/// `first`. A copy, because sums of Eigen depend on how the numbers are aligned.
Sums sum_tokens(const TokenSource& source, Eigen::Index columns, ThreadPool& pool,
                const std::function<void(Eigen::Index, Matrix&, Sums&)>& add) {
    const std::size_t block_size = samples_per_block(source);
    return linalg::sum_over_samples(
        pool, source.shares(), source.dim(), columns, 3, [&](Range samples, Sums& sums) {
            Matrix scratch, tokens;
            for (std::size_t b = 0; b < block_count(samples.size(), block_size); ++b) {
                const Range range = block_within(samples, block_size, b);
                tokens = source.block(range, scratch);
                add(static_cast<Eigen::Index>(range.begin) * source.tokens(), tokens, sums);
            }
        });
}

/// d sum_i u_i^4 / |u|^4 of u = x/max|x_i|, which cannot overflow.
void add_concentration(const Matrix& tokens, Sums& sums) {
    for (Eigen::Index i = 0; i < tokens.cols(); ++i) {
        const double largest = tokens.col(i).cwiseAbs().maxCoeff();
        if (!(largest > 0)) continue;
        double squares = 0, fourth_powers = 0;
        for (const double x : tokens.col(i)) {
            const double square = (x / largest) * (x / largest);
            squares += square;
            fourth_powers += square * square;
        }
        sums.numbers[concentration] +=
            static_cast<double>(tokens.rows()) * fourth_powers / (squares * squares);
        ++sums.numbers[nonzero];
    }
}

}  // namespace

TokenStatistics token_statistics(const TokenSource& source, ThreadPool& pool) {
    TokenStatistics result;
    result.count = source.samples() * source.tokens();
    const auto n = static_cast<double>(result.count), d = static_cast<double>(source.dim());
    result.mean = sum_tokens(source, 1, pool,
                             [](Eigen::Index, const Matrix& tokens, Sums& sums) {
                                 for (Eigen::Index i = 0; i < tokens.cols(); ++i)
                                     sums.matrix += tokens.col(i);
                             })
                      .matrix /
                  n;

    Vector squared_lengths(result.count);
    Sums sums =
        sum_tokens(source, source.dim(), pool, [&](Eigen::Index first, Matrix& tokens, Sums& share_sums) {
            add_concentration(tokens, share_sums);
            tokens.colwise() -= result.mean;
            for (Eigen::Index i = 0; i < tokens.cols(); ++i) {
                squared_lengths[first + i] = tokens.col(i).squaredNorm();
                share_sums.numbers[squared_length] += squared_lengths[first + i];
            }
            linalg::add_gram(1.0, tokens, share_sums.matrix);
        });
    if (sums.numbers[nonzero] > 0) result.concentration = sums.numbers[concentration] / sums.numbers[nonzero];
    result.covariance = std::move(sums.matrix);
    result.covariance.triangularView<Eigen::StrictlyUpper>() = result.covariance.transpose();
    result.covariance /= n;

    Matrix moment = result.covariance + result.mean * result.mean.transpose();
    const double trace = moment.trace() / d;
    moment.diagonal().array() -= 1;
    const double w = moment.squaredNorm() / d - d / n * trace * trace + d / n;
    result.whiteness = (n * w - d - 1) / 2;
    result.mean_score = (n * result.mean.squaredNorm() - d) / std::sqrt(2 * d);

    const double mean_square = sums.numbers[squared_length] / n;
    if (mean_square > 0) {
        const auto tokens = static_cast<std::size_t>(source.tokens());
        const double spread = sum_over_samples(pool, source.shares(), [&](Range samples) {
            double sum = 0;
            for (std::size_t i = samples.begin * tokens; i < samples.end * tokens; ++i) {
                const double above = squared_lengths[static_cast<Eigen::Index>(i)] / mean_square - 1;
                sum += above * above;
            }
            return sum;
        });
        result.length_spread = d / 2 * spread / n;
    }
    return result;
}

}  // namespace bayesaim::data
