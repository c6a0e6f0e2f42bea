// SPDX-License-Identifier: MIT
#include "bayesaim/channels/sampled_channel.hpp"

#include <array>
#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {
namespace {

constexpr int points_per_point = 16;
constexpr std::size_t largest_batch = 4096;
constexpr int prediction_shifts = 2, prediction_points = 256;

double relative_error(const numerics::Estimate& estimate) {
    return estimate.value != 0 ? std::abs(estimate.standard_error / estimate.value) : 0;
}

}  // namespace

/// A batch of points.
struct SampledChannel::Sample {
    Rows omega, index, other;   // other: a second htilde of the same omega
    std::uint64_t seed, first;  // of the label noise
};

/// Means of the two numbers that f(sample) sums over a batch. Each shift is one independent estimate.
template <class Function>
auto SampledChannel::average(const OrderParameters& parameters, const Integration& integration,
                             Function f) const {
    check_at_least("shifts of the integration", integration.shifts, 2);
    check_at_least("points of the integration", integration.points, 1);
    const ScalarParameters p(parameters);
    const auto points = static_cast<std::size_t>(integration.points) * points_per_point;
    const numerics::ShiftedSobol sobol(3 * pairs(), integration.shifts, points, integration.seed);
    const auto averages = sobol.averages(
        2, largest_batch,
        [&](const Eigen::ArrayXXd& z, std::size_t first, Eigen::VectorXd& sums) {
            Sample sample{
                std::sqrt(2 * p.overlap) * z.leftCols(pairs()).matrix(), {}, {}, integration.seed, first};
            const double deviation = std::sqrt(p.variance);
            sample.index = sample.omega + deviation * z.middleCols(pairs(), pairs()).matrix();
            sample.other = sample.omega + deviation * z.rightCols(pairs()).matrix();
            const std::array<double, 2> batch = f(sample);
            for (const int k : {0, 1}) sums[k] += batch[static_cast<std::size_t>(k)];
        },
        integration.pool);
    return std::array{averages[0], averages[1]};
}

ScorePower SampledChannel::score_power(const OrderParameters& parameters,
                                       const Integration& integration) const {
    const Overlap variance = linalg::scalar_overlap(ScalarParameters(parameters).variance);
    const auto [power, unused] = average(parameters, integration, [&](const Sample& sample) {
        Rows outputs(sample.index.rows(), tokens() * tokens()), g(sample.index.rows(), pairs());
        Eigen::VectorXd no_log_z(0);
        draw(sample.index, sample.seed, sample.first, outputs);
        score(outputs, sample.omega, variance, g, no_log_z);
        return std::array{g.squaredNorm(), 0.0};
    });
    return {linalg::scalar_overlap(power.value), relative_error(power)};
}

std::optional<double> SampledChannel::information(const OrderParameters& parameters,
                                                  const Integration& integration) const {
    if (!knows_log_z()) return std::nullopt;
    const Overlap variance = linalg::scalar_overlap(ScalarParameters(parameters).variance);
    const auto [information, unused] = average(parameters, integration, [&](const Sample& sample) {
        Rows outputs(sample.index.rows(), tokens() * tokens()), g(sample.index.rows(), pairs());
        Eigen::VectorXd log_z(sample.index.rows());
        draw(sample.index, sample.seed, sample.first, outputs);
        score(outputs, sample.omega, variance, g, log_z);
        return std::array{log_z.sum(), 0.0};
    });
    return information.value;
}

void SampledChannel::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    const double deviation = std::sqrt(variance(0, 0));
    if (deviation == 0) {
        draw(omega, 0, 0, prediction);
        prediction = output_values(*this, prediction);
        return;
    }
    const numerics::ShiftedSobol sobol(pairs(), prediction_shifts, prediction_points, 0);
    Eigen::ArrayXXd z(prediction_points, pairs());
    Rows index(omega.rows(), omega.cols()), outputs(omega.rows(), prediction.cols());
    prediction.setZero();
    for (int shift = 0; shift < prediction_shifts; ++shift) {
        sobol.fill_normal(shift, 0, z);
        for (Eigen::Index k = 0; k < prediction_points; ++k) {
            index = omega.rowwise() + deviation * z.row(k).matrix();
            draw(index, 0, 0, outputs);
            prediction += output_values(*this, outputs) / (prediction_shifts * prediction_points);
        }
    }
}

GeneralizationError SampledChannel::generalization(const OrderParameters& parameters,
                                                   const Integration& integration) const {
    const Overlap none = linalg::scalar_overlap(0);
    const auto [bayes, plug_in] = average(parameters, integration, [&](const Sample& sample) {
        Rows truth(sample.index.rows(), tokens() * tokens()), other = truth, plugged = truth;
        predict(sample.index, none, truth);
        predict(sample.other, none, other);
        predict(sample.omega, none, plugged);
        return std::array{0.5 * (other - truth).squaredNorm(), (plugged - truth).squaredNorm()};
    });
    return {bayes.value, plug_in.value, std::max(relative_error(bayes), relative_error(plug_in))};
}

}  // namespace bayesaim::channels
