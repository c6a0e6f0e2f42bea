// SPDX-License-Identifier: MIT
#include "bayesaim/channels/layered_channel.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/Dense>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {
namespace {

/// Cholesky's R with R R' = the matrix, also for singular ones; for one that is not quite positive the
/// diagonal is right and correlations are cut at 1. Continuous in the matrix, so that the same
/// points see state evolution move; eigenvectors turn where layers change places.
Overlap square_root(const Overlap& matrix) {
    Overlap root = Overlap::Zero(matrix.rows(), matrix.cols());
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
        const double rest = matrix(j, j) - root.row(j).head(j).squaredNorm();
        if (rest <= 1e-14 * matrix(j, j)) continue;
        root(j, j) = std::sqrt(rest);
        for (Eigen::Index i = j + 1; i < matrix.rows(); ++i) {
            const double largest = std::sqrt(std::max(matrix(i, i) - root.row(i).head(j).squaredNorm(), 0.0));
            const double entry = (matrix(i, j) - root.row(i).head(j).dot(root.row(j).head(j))) / root(j, j);
            root(i, j) = std::clamp(entry, -largest, largest);
        }
    }
    return root;
}

/// Adds R z to each row of `to`: z has blocks of `size` coordinates, one block per layer.
void add_correlated(const Overlap& root, const Eigen::ArrayXXd& z, Eigen::Index first, Eigen::Index size,
                    Rows& to) {
    for (Eigen::Index l = 0; l < root.rows(); ++l) {
        for (Eigen::Index j = 0; j < root.cols(); ++j) {
            to.middleCols(l * size, size) += root(l, j) * z.middleCols(first + j * size, size).matrix();
        }
    }
}

/// Coordinates that count, to the pairs.
Rows to_pairs(const Rows& coordinates, const Eigen::MatrixXd& directions, int layers) {
    const Eigen::Index size = directions.rows(), pairs = directions.cols();
    Rows result(coordinates.rows(), layers * pairs);
    for (int l = 0; l < layers; ++l) {
        result.middleCols(l * pairs, pairs) = coordinates.middleCols(l * size, size) * directions;
    }
    return result;
}

constexpr std::size_t points_per_block = 64;

numerics::ShiftedSobol net(Eigen::Index dimension, const Integration& integration, std::size_t refinement) {
    check_at_least("shifts", integration.shifts, 2);
    check_at_least("points", integration.points, 1);
    return {static_cast<int>(dimension), integration.shifts,
            refinement * static_cast<std::size_t>(integration.points), integration.seed};
}

void check_parameters(const OrderParameters& parameters, int layers) {
    check_size("layers of the order parameters", parameters.error.rows(), layers);
    check_size("layers of the overlap", parameters.overlap.rows(), layers);
    for (int l = 0; l < layers; ++l) check_positive("estimation error", parameters.error(l, l));
}

}  // namespace

Eigen::VectorXd LayeredChannel::coordinates(const ConstRowsRef& omega, Eigen::Index row) const {
    const Eigen::Index size = directions_.rows();
    Eigen::VectorXd result(layers() * size);
    for (int l = 0; l < layers(); ++l) {
        result.segment(l * size, size) =
            directions_ * omega.row(row).segment(l * pairs(), pairs()).transpose();
    }
    return result;
}

/// g^l = E' [V^-1 (<E htilde> - E omega)]_l
void LayeredChannel::write_scores(const std::vector<LayerMoments>& moments, const ConstRowsRef& omega,
                                  const Overlap& precision, RowsRef g) const {
    const Eigen::Index size = directions_.rows();
    for (std::size_t i = 0; i < moments.size(); ++i) {
        const auto row = static_cast<Eigen::Index>(i);
        const Eigen::VectorXd shift = moments[i].mean - coordinates(omega, row);
        const Eigen::MatrixXd scores = directions_.transpose() * shift.reshaped(size, layers()) * precision;
        for (int l = 0; l < layers(); ++l) {
            g.row(row).segment(l * pairs(), pairs()) = scores.col(l).transpose();
        }
    }
}

void LayeredChannel::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                           RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    const std::vector<LayerMoments> moments = posterior(outputs, omega, variance);
    write_scores(moments, omega, variance.inverse(), g);
    for (Eigen::Index i = 0; i < log_z.size(); ++i) log_z[i] = moments[static_cast<std::size_t>(i)].log_z;
}

Overlap LayeredChannel::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                         const Overlap& variance, RowsRef g) const {
    const Overlap precision = variance.inverse();
    const double directions = static_cast<double>(omega.rows() * directions_.rows());
    const std::vector<LayerMoments> moments = posterior(outputs, omega, variance);
    write_scores(moments, omega, precision, g);
    Overlap covariance = Overlap::Zero(layers(), layers());
    for (const LayerMoments& sample : moments) covariance += sample.covariance;
    return directions * precision - precision * covariance * precision;
}

void LayeredChannel::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    if (variance.isZero(0)) {
        draw(omega, 0, 0, prediction);
        prediction = output_values(*this, prediction);
        return;
    }
    const Eigen::Index size = directions_.rows();
    constexpr Eigen::Index points = 512;
    Eigen::ArrayXXd z(points, layers() * size);
    numerics::ShiftedSobol(static_cast<int>(z.cols()), 2, points, 0).fill_normal(0, 0, z);
    Rows deviation = Rows::Zero(points, z.cols());
    add_correlated(square_root(variance), z, 0, size, deviation);
    const Rows shift = to_pairs(deviation, directions_, layers());
    Rows outputs(points, tokens() * tokens());
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        draw(shift.rowwise() + omega.row(i), 0, 0, outputs);
        prediction.row(i) = output_values(*this, outputs).colwise().mean();
    }
}

ScorePower LayeredChannel::score_power(const OrderParameters& parameters,
                                       const Integration& integration) const {
    check_parameters(parameters, layers());
    const Eigen::Index size = directions_.rows();
    const Overlap variance = 2 * parameters.error, precision = variance.inverse();
    const Overlap known = square_root(2 * parameters.overlap), rest = square_root(variance);
    const Eigen::Index entries = layers() * layers();
    const auto averages =
        net(2 * layers() * size, integration, 1)
            .averages(
                entries + 2, points_per_block,
                [&](const Eigen::ArrayXXd& z, std::size_t, Eigen::VectorXd& sums) {
                    Rows omega = Rows::Zero(z.rows(), layers() * size);
                    add_correlated(known, z, 0, size, omega);
                    Rows index = omega;
                    add_correlated(rest, z, layers() * size, size, index);
                    Rows outputs(z.rows(), tokens() * tokens());
                    draw(to_pairs(index, directions_, layers()), 0, 0, outputs);
                    for (const LayerMoments& sample :
                         posterior(outputs, to_pairs(omega, directions_, layers()), variance)) {
                        const Overlap slope =
                            static_cast<double>(size) * precision - precision * sample.covariance * precision;
                        sums.head(entries) += Eigen::MatrixXd(slope).reshaped();
                        // Independent errors of many samples average out; what is left is their bias.
                        sums[entries] +=
                            sample.effective_samples > 0 ? sample.error * sample.error : sample.error;
                        if (sample.adaptive) sums[entries + 1] += sample.error * sample.error;
                    }
                },
                integration.pool);
    const auto average = [&](Eigen::Index value) { return averages[static_cast<std::size_t>(value)]; };
    ScorePower result;
    result.value.resize(layers(), layers());
    for (Eigen::Index i = 0; i < entries; ++i) {
        const numerics::Estimate entry = average(i);
        result.value(i % layers(), i / layers()) = entry.value;
        if (i % layers() == i / layers()) {
            // Of a layer that is hardly seen, relative to a hundredth of the most that F can be.
            const double scale = 0.01 * static_cast<double>(size) / variance(i % layers(), i % layers());
            result.relative_error = std::max(result.relative_error,
                                             entry.standard_error / std::max(std::abs(entry.value), scale));
        }
    }
    result.relative_error = std::hypot(result.relative_error, average(entries).value);
    result.roughness = std::sqrt(average(entries + 1).value /
                                 (static_cast<double>(integration.shifts) * integration.points));
    return result;
}

GeneralizationError LayeredChannel::generalization(const OrderParameters& parameters,
                                                   const Integration& integration) const {
    check_parameters(parameters, layers());
    const Eigen::Index size = directions_.rows(), all = layers() * size;
    const Overlap known = square_root(2 * parameters.overlap), rest = square_root(2 * parameters.error);
    const auto values = [&](const Rows& points) {
        Rows outputs(points.rows(), tokens() * tokens());
        draw(to_pairs(points, directions_, layers()), 0, 0, outputs);
        return output_values(*this, outputs);
    };
    constexpr std::size_t refinement = 16;  // outputs cost far less than posteriors
    const auto averages = net(3 * all, integration, refinement)
                              .averages(
                                  2, points_per_block,
                                  [&](const Eigen::ArrayXXd& z, std::size_t, Eigen::VectorXd& sums) {
                                      Rows omega = Rows::Zero(z.rows(), all);
                                      add_correlated(known, z, 0, size, omega);
                                      Rows one = omega, other = omega;
                                      add_correlated(rest, z, all, size, one);
                                      add_correlated(rest, z, 2 * all, size, other);
                                      const Rows truth = values(one);
                                      sums[0] += 0.5 * (truth - values(other)).squaredNorm();
                                      sums[1] += (truth - values(omega)).squaredNorm();
                                  },
                                  integration.pool);
    const numerics::Estimate &optimal = averages[0], &plug_in = averages[1];
    return {optimal.value, plug_in.value,
            std::max(optimal.standard_error / optimal.value, plug_in.standard_error / plug_in.value)};
}

}  // namespace bayesaim::channels
