// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/diagnostics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/core/tree_sum.hpp"
#include "bayesaim/data/whitening.hpp"
#include "bayesaim/estimators/learning.hpp"
#include "bayesaim/estimators/prediction.hpp"

namespace bayesaim::estimators {
namespace {

using channels::Rows;
using linalg::Overlap;

constexpr double limit = 3;  // standard errors

data::Dataset subset(const data::Dataset& data, const std::vector<Eigen::Index>& samples,
                     const Communicator& ranks) {
    data::Dataset result;
    result.tokens = data::token_subset(data.tokens, samples);
    if (data.key_tokens) result.key_tokens = data::token_subset(data.key_tokens, samples);
    result.outputs.resize(static_cast<Eigen::Index>(samples.size()), data.outputs.cols());
    const Range own = result.shares().own_samples(ranks);
    for (std::size_t i = own.begin; i < own.end; ++i)
        result.outputs.row(static_cast<Eigen::Index>(i)) = data.outputs.row(samples[i]);
    return result;
}

/// Linear and softmax outputs fix combinations of the indices, perhaps with Gaussian noise: residuals have a known
/// variance.
void measure_residuals(const data::Dataset& data, const FittedModel& fitted, const Rows& omega, double v,
                       double uncertainty, ThreadPool& pool, HeldOutFit& result) {
    const channels::Channel& channel = fitted.channel;
    const channels::Geometry geometry = channel.geometry();
    const Eigen::Index pairs = channel.pairs();
    const auto samples = static_cast<double>(omega.rows());
    const auto exact = channel.observed_combinations();
    // After exact recovery there is no ratio. Any V gives the residuals.
    const bool vanished = exact && !(fitted.error.trace() > 0);
    const Overlap variance =
        v * (vanished ? Overlap(Overlap::Identity(fitted.error.rows(), fitted.error.rows())) : fitted.error);
    Rows g(omega.rows(), omega.cols());
    const auto weighted = sum_over_samples(pool, data.shares(), 2, [&](Range range, std::span<double> sum) {
        if (range.size() == 0) return;
        auto scores = data::rows_of(g, range);
        const Overlap slope = channel.score_with_slope(data::rows_of(data.outputs, range),
                                                       data::rows_of(omega, range), variance, scores);
        for (Eigen::Index l = 0; l < variance.rows(); ++l) {
            sum[0] += variance(l, l) * scores.middleCols(l * pairs, pairs).squaredNorm();
            sum[1] += variance(l, l) * slope(l, l);
        }
    });
    const double ratio = weighted[0] / weighted[1];
    result.error = ratio * variance.trace() / v;
    if (!exact && geometry.parts() == 1) {
        // r = g/H, and 1/H - V is the variance of the label noise
        const double squares = sum_over_samples(pool, data.shares(), [&](Range range) {
            double sum = 0;
            for (std::size_t k = range.begin; k < range.end; ++k) {
                const auto i = static_cast<Eigen::Index>(k);
                const Eigen::MatrixXd h =
                    -channel.score_slope(data.outputs.middleRows(i, 1), omega.middleRows(i, 1), variance);
                for (Eigen::Index p = 0; p < pairs; ++p) {
                    const double residual = g(i, p) / h(p, p);
                    sum += residual * residual - (1 / h(p, p) - variance(0, 0));
                }
            }
            return sum;
        });
        result.error = std::max(0.0, squares / (samples * v * static_cast<double>(pairs)));
    }
    if (!exact && geometry.parts() == 2) {
        // Off the diagonal h_ab has the variance E_s + E_a, and the outputs that of the label noise besides.
        double noise = 0;
        for (const auto& [name, value] : channel.parameters()) {
            if (name == "label_noise") noise = value;
        }
        std::vector<std::pair<int, int>> beside;
        for (int a = 0; a < geometry.queries; ++a) {
            for (int b = 0; b < geometry.keys; ++b) {
                if (a != b && geometry.sees(a, b)) beside.emplace_back(a, b);
            }
        }
        const double squares = sum_over_samples(pool, data.shares(), [&](Range range) {
            const auto index = data::rows_of(omega, range);
            double sum = 0;
            for (const auto& [a, b] : beside) {
                const int p = geometry.pair(a, b);
                const auto mean =
                    (index.col(p) + (a < b ? 1 : -1) * index.col(pairs + p)) / std::numbers::sqrt2;
                sum += (data::rows_of(data.outputs, range).col(a * geometry.keys + b) - mean).squaredNorm();
            }
            return sum;
        });
        const auto count = static_cast<double>(beside.size());
        if (count > 0) result.error = std::max(0.0, squares / (samples * count) - noise);
    }
    // Exact recovery: what is left of the residuals is rounding, and the last C says nothing about it.
    if (vanished || (exact && *result.error < 1e-6 * data::self_overlaps(fitted.estimates).trace())) return;
    const double sigma = std::sqrt(2 / (samples * observations_per_sample(channel)));
    result.ratio = ratio;
    result.z = (ratio - 1) / sigma;
    // A larger C makes the ratio smaller.
    result.refuted =
        ratio / (1 + uncertainty) > 1 + limit * sigma || ratio / (1 - uncertainty) < 1 - limit * sigma;
}

/// Any other outputs: is their probability what the model expects of outputs that it draws itself?
void measure_surprise(const data::Dataset& data, const FittedModel& fitted, const Rows& omega, double v,
                      ThreadPool& pool, HeldOutFit& result) {
    const channels::Channel& channel = fitted.channel;
    constexpr int draws = 64;
    const Overlap variance = v * fitted.error, root = linalg::lower_root(variance);
    const Eigen::Index samples = omega.rows(), columns = omega.cols();
    Eigen::VectorXd surprise(samples), expected(samples), spread(samples);
    for_own_blocks(pool, data.shares(), 16, [&](Range range) {
        const auto begin = static_cast<Eigen::Index>(range.begin),
                   count = static_cast<Eigen::Index>(range.size());
        Rows g(count, columns), index(count, columns), outputs(count, data.outputs.cols());
        const Rows mean = omega.middleRows(begin, count);
        Eigen::VectorXd log_z(count);
        channel.score(data.outputs.middleRows(begin, count), mean, variance, g, log_z);
        surprise.segment(begin, count) = -log_z;
        Eigen::VectorXd sum = Eigen::VectorXd::Zero(count), squares = sum;
        for (int k = 0; k < draws; ++k) {
            draw_indices(mean, root, static_cast<std::uint64_t>(k), false, begin, index);
            channel.draw(index, static_cast<std::uint64_t>(k), range.begin, outputs);
            channel.score(outputs, mean, variance, g, log_z);
            sum -= log_z;
            squares += log_z.cwiseAbs2();
        }
        expected.segment(begin, count) = sum / draws;
        spread.segment(begin, count) = (squares - sum.cwiseAbs2() / draws) / (draws - 1) * (1 + 1.0 / draws);
    });
    const auto sums = sum_over_samples(pool, data.shares(), 3, [&](Range range, std::span<double> sum) {
        for (std::size_t i = range.begin; i < range.end; ++i) {
            const auto k = static_cast<Eigen::Index>(i);
            sum[0] += surprise[k];
            sum[1] += surprise[k] - expected[k];
            sum[2] += spread[k];
        }
    });
    result.loss = sums[0] / static_cast<double>(samples);
    if (sums[2] > 0) result.z = sums[1] / std::sqrt(sums[2]);
}

}  // namespace

Split hold_out(const data::Dataset& data, Eigen::Index samples, std::uint64_t seed,
               const Communicator& ranks) {
    const Eigen::Index all = data.tokens->samples();
    check_at_least("held-out samples", samples, 1);
    check_at_least("samples that are not held out", all - samples, 1);
    // Those with the smallest random numbers.
    std::vector<double> number(static_cast<std::size_t>(all));
    RandomStream(seed, Purpose::held_out).fill_uniform(number);
    std::vector<Eigen::Index> order(number.size());
    std::iota(order.begin(), order.end(), Eigen::Index{0});
    std::stable_sort(order.begin(), order.end(), [&](Eigen::Index i, Eigen::Index k) {
        return number[static_cast<std::size_t>(i)] < number[static_cast<std::size_t>(k)];
    });
    std::vector<Eigen::Index> held(order.begin(), order.begin() + samples),
        kept(order.begin() + samples, order.end());
    std::sort(held.begin(), held.end());
    std::sort(kept.begin(), kept.end());
    return {subset(data, kept, ranks), subset(data, held, ranks)};
}

HeldOutFit held_out_fit(const data::Dataset& data, const FittedModel& fitted, double uncertainty,
                        ThreadPool& pool) {
    check_between("uncertainty of the predicted error", uncertainty, 0, 0.9);
    const channels::Channel& channel = fitted.channel;
    const double v = channel.geometry().variance_factor();
    const Rows omega = predicted_indices(data, fitted.estimates, fitted.terms, channel, pool);
    HeldOutFit result;
    result.samples = omega.rows();
    // Linear and softmax outputs: a smooth function of h.
    if (channel.layers() == 1 && channel.smooth_output()) {
        measure_residuals(data, fitted, omega, v, uncertainty, pool, result);
        result.loss = *result.error;
    } else if (channel.knows_log_z() && fitted.error.trace() > 0) {
        measure_surprise(data, fitted, omega, v, pool, result);
        result.refuted = result.z && std::abs(*result.z) > limit;
        for (const double factor : {1 - uncertainty, 1 + uncertainty}) {
            if (!result.refuted) break;
            HeldOutFit other;
            measure_surprise(data, {fitted.estimates, factor * fitted.error, fitted.channel, fitted.terms},
                             omega, v, pool, other);
            result.refuted = other.z && *other.z * *result.z > 0 && std::abs(*other.z) > limit;
        }
    }
    return result;
}

}  // namespace bayesaim::estimators
