// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/diagnostics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/data/whitening.hpp"
#include "bayesaim/estimators/learning.hpp"
#include "bayesaim/estimators/prediction.hpp"

namespace bayesaim::estimators {
namespace {

using channels::Rows;
using linalg::Overlap;

constexpr double limit = 3;  // standard errors

data::Dataset subset(const data::Dataset& data, const std::vector<Eigen::Index>& samples) {
    data::Dataset result;
    result.tokens = data::token_subset(data.tokens, samples);
    if (data.key_tokens) result.key_tokens = data::token_subset(data.key_tokens, samples);
    result.outputs.resize(static_cast<Eigen::Index>(samples.size()), data.outputs.cols());
    for (std::size_t i = 0; i < samples.size(); ++i)
        result.outputs.row(static_cast<Eigen::Index>(i)) = data.outputs.row(samples[i]);
    return result;
}

/// Linear and softmax outputs fix combinations of the indices, perhaps with Gaussian noise: residuals have a known
/// variance.
void measure_residuals(const data::Dataset& data, const FittedModel& fitted, const Rows& omega, double v,
                       double uncertainty, HeldOutFit& result) {
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
    const Overlap slope = channel.score_with_slope(data.outputs, omega, variance, g);
    double weighted_power = 0, weighted_slope = 0;
    for (Eigen::Index l = 0; l < variance.rows(); ++l) {
        weighted_power += variance(l, l) * g.middleCols(l * pairs, pairs).squaredNorm();
        weighted_slope += variance(l, l) * slope(l, l);
    }
    const double ratio = weighted_power / weighted_slope;
    result.error = ratio * variance.trace() / v;
    if (!exact && geometry.parts() == 1) {
        // r = g/H, and 1/H - V is the variance of the label noise
        double sum = 0;
        for (Eigen::Index i = 0; i < omega.rows(); ++i) {
            const Eigen::MatrixXd h =
                -channel.score_slope(data.outputs.middleRows(i, 1), omega.middleRows(i, 1), variance);
            for (Eigen::Index p = 0; p < pairs; ++p) {
                const double residual = g(i, p) / h(p, p);
                sum += (residual * residual - (1 / h(p, p) - variance(0, 0))) / samples;
            }
        }
        result.error = std::max(0.0, sum / (v * static_cast<double>(pairs)));
    }
    if (!exact && geometry.parts() == 2) {
        // Off the diagonal h_ab has the variance E_s + E_a, and the outputs that of the label noise besides.
        double noise = 0, sum = 0;
        for (const auto& [name, value] : channel.parameters()) {
            if (name == "label_noise") noise = value;
        }
        int count = 0;
        for (int a = 0; a < geometry.queries; ++a) {
            for (int b = 0; b < geometry.keys; ++b) {
                if (a == b || !geometry.sees(a, b)) continue;
                ++count;
                const int p = geometry.pair(a, b);
                const auto mean =
                    (omega.col(p) + (a < b ? 1 : -1) * omega.col(pairs + p)) / std::numbers::sqrt2;
                sum += (data.outputs.col(a * geometry.keys + b) - mean).squaredNorm() / samples - noise;
            }
        }
        if (count > 0) result.error = std::max(0.0, sum / count);
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
    parallel_for(pool, static_cast<std::size_t>(samples), 16, [&](Range range) {
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
    result.loss = surprise.mean();
    if (spread.sum() > 0) result.z = (surprise - expected).sum() / std::sqrt(spread.sum());
}

}  // namespace

Split hold_out(const data::Dataset& data, Eigen::Index samples, std::uint64_t seed) {
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
    return {subset(data, kept), subset(data, held)};
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
        measure_residuals(data, fitted, omega, v, uncertainty, result);
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
