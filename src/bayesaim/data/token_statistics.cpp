// SPDX-License-Identifier: MIT
#include "bayesaim/data/token_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace bayesaim::data {
namespace {

using linalg::Matrix;
using linalg::Vector;

/// Number of partial sums, each over a fixed share of the blocks; they are added in order.
constexpr std::size_t most_shares = 8;

struct Sums {
    Matrix matrix;  // the sum of tokens, or the lower triangle of the sum of their squares
    double concentration = 0;
    Eigen::Index nonzero = 0;
};

/// Adds all tokens up. `add(first, tokens, sums)` gets a copy of some tokens, of which the first has number
/// `first`. A copy, because sums of Eigen depend on how the numbers are aligned.
Sums sum_tokens(const TokenSource& source, Eigen::Index columns, ThreadPool& pool,
                const std::function<void(Eigen::Index, Matrix&, Sums&)>& add) {
    const auto samples = static_cast<std::size_t>(source.samples());
    const std::size_t block_size = samples_per_block(source), blocks = block_count(samples, block_size),
                      shares = std::min(most_shares, blocks);
    std::vector<Sums> sums(shares);
    pool.for_each(shares, [&](std::size_t share) {
        sums[share].matrix.setZero(source.dim(), columns);
        Matrix scratch, tokens;
        for (std::size_t b = share * blocks / shares; b < (share + 1) * blocks / shares; ++b) {
            const Range range = block_range(samples, block_size, b);
            tokens = source.block(range, scratch);
            add(static_cast<Eigen::Index>(range.begin) * source.tokens(), tokens, sums[share]);
        }
    });
    for (std::size_t share = 1; share < shares; ++share) {
        sums[0].matrix += sums[share].matrix;
        sums[0].concentration += sums[share].concentration;
        sums[0].nonzero += sums[share].nonzero;
    }
    return std::move(sums[0]);
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
        sums.concentration += static_cast<double>(tokens.rows()) * fourth_powers / (squares * squares);
        ++sums.nonzero;
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
            for (Eigen::Index i = 0; i < tokens.cols(); ++i)
                squared_lengths[first + i] = tokens.col(i).squaredNorm();
            linalg::add_gram(1.0, tokens, share_sums.matrix);
        });
    if (sums.nonzero > 0) result.concentration = sums.concentration / static_cast<double>(sums.nonzero);
    result.covariance = std::move(sums.matrix);
    result.covariance.triangularView<Eigen::StrictlyUpper>() = result.covariance.transpose();
    result.covariance /= n;

    Matrix moment = result.covariance + result.mean * result.mean.transpose();
    const double trace = moment.trace() / d;
    moment.diagonal().array() -= 1;
    const double w = moment.squaredNorm() / d - d / n * trace * trace + d / n;
    result.whiteness = (n * w - d - 1) / 2;
    result.mean_score = (n * result.mean.squaredNorm() - d) / std::sqrt(2 * d);

    const double mean_square = squared_lengths.mean();
    if (mean_square > 0) {
        squared_lengths = squared_lengths / mean_square;
        result.length_spread = d / 2 * (squared_lengths.array() - 1).square().mean();
    }
    return result;
}

}  // namespace bayesaim::data
