// SPDX-License-Identifier: MIT
#include "bayesaim/channels/layered_channel.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {
namespace {

const LayeredModel& checked(const std::string& name, const LayeredModel& model, double largest_beta) {
    check_between(name + " channel: layers", model.layers, 2, linalg::max_layers);
    check_between(name + " channel: tokens", model.tokens, 2, max_deep_tokens);
    check_between(name + " channel: residual", model.residual, 0, 1e6);
    check_between(name + " channel: beta", model.beta, 1e-6, largest_beta);
    return model;
}

/// E' x for each layer: from the K - 1 coordinates to the K pairs.
Rows to_pairs(const Rows& coordinates, const Eigen::MatrixXd& directions, int layers) {
    const Eigen::Index size = directions.rows(), pairs = directions.cols();
    Rows result(coordinates.rows(), layers * pairs);
    for (int l = 0; l < layers; ++l) {
        result.middleCols(l * pairs, pairs) = coordinates.middleCols(l * size, size) * directions;
    }
    return result;
}

constexpr std::size_t points_per_block = 64;

}  // namespace

LayeredChannel::LayeredChannel(std::string name, const LayeredModel& model, double largest_beta)
    : name_(std::move(name)),
      model_(checked(name_, model, largest_beta)),
      directions_(informed_directions(model.tokens)) {}

std::vector<std::pair<std::string, double>> LayeredChannel::parameters() const {
    return {{"layers", layers()}, {"tokens", tokens()}, {"beta", model_.beta}, {"residual", model_.residual}};
}

void LayeredChannel::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    check_size("columns of the indices", index.cols(), layers() * pairs());
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        const double* htilde = index.data() + i * index.outerStride();
        const TokenMatrix mixing =
            mixing_matrix(htilde, layers() - 1, tokens(), model_.beta, model_.residual);
        const TokenMatrix h = index_matrix(htilde + (layers() - 1) * pairs(), tokens());
        const TokenMatrix y = output(mixing * h * mixing.transpose(), mixing);
        for (int a = 0; a < tokens(); ++a) {
            for (int b = 0; b < tokens(); ++b) outputs(i, a * tokens() + b) = y(a, b);
        }
    }
}

std::vector<LayerMoments> LayeredChannel::posterior(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                                    const Overlap& variance) const {
    check_size("columns of omega", omega.cols(), layers() * pairs());
    check_size("layers of the variance", variance.rows(), layers());
    std::vector<LayerMoments> result;
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        const double* sample = outputs.data() + i * outputs.outerStride();
        result.push_back(posterior_of(sample, coordinates(omega, i), variance));
    }
    return result;
}

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
    write_scores(moments, omega, linalg::inverse(variance), g);
    for (Eigen::Index i = 0; i < log_z.size(); ++i) log_z[i] = moments[static_cast<std::size_t>(i)].log_z;
}

Overlap LayeredChannel::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                         const Overlap& variance, RowsRef g) const {
    const Overlap precision = linalg::inverse(variance);
    const double directions = static_cast<double>(omega.rows() * directions_.rows());
    const std::vector<LayerMoments> moments = posterior(outputs, omega, variance);
    write_scores(moments, omega, precision, g);
    Overlap covariance = linalg::zero_overlap(layers());
    for (const LayerMoments& sample : moments) covariance += sample.covariance;
    return directions * precision - precision * covariance * precision;
}

ScorePower LayeredChannel::score_power(const OrderParameters& parameters,
                                       const Integration& integration) const {
    check_parameters(parameters, layers());
    const Eigen::Index size = directions_.rows();
    const Overlap variance = 2 * parameters.error, precision = linalg::inverse(variance);
    const Overlap known = linalg::lower_root(2 * parameters.overlap), rest = linalg::lower_root(variance);
    const Eigen::Index entries = layers() * layers();
    check_at_least("shifts", integration.shifts, 2);
    check_at_least("points", integration.points, 1);
    const numerics::ShiftedSobol sobol(static_cast<int>(2 * layers() * size), integration.shifts,
                                       static_cast<std::size_t>(integration.points), integration.seed);
    const auto averages = sobol.averages(
        entries + 2, points_per_block,
        [&](const Eigen::ArrayXXd& z, std::size_t, Eigen::VectorXd& sums) {
            Rows omega = Rows::Zero(z.rows(), layers() * size);
            add_correlated(known, z.leftCols(layers() * size), omega);
            Rows index = omega;
            add_correlated(rest, z.rightCols(layers() * size), index);
            Rows outputs(z.rows(), tokens() * tokens());
            draw(to_pairs(index, directions_, layers()), 0, 0, outputs);
            for (const LayerMoments& sample :
                 posterior(outputs, to_pairs(omega, directions_, layers()), variance)) {
                const Overlap slope =
                    static_cast<double>(size) * precision - precision * sample.covariance * precision;
                sums.head(entries) += Eigen::MatrixXd(slope).reshaped();
                // The independent errors of importance sampling average out; their bias remains.
                sums[entries] += sample.effective_samples > 0 ? sample.error * sample.error : sample.error;
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
            // For a layer with little information, relative to a hundredth of the largest possible F.
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

}  // namespace bayesaim::channels
