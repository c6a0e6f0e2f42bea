// SPDX-License-Identifier: MIT
#include "bayesaim/channels/channel.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/user_numbers.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {
namespace {

/// Draws are cheap, so each point of `Integration` gets several.
constexpr std::size_t draws_per_point = 16;
constexpr std::size_t largest_batch = 4096;
constexpr int prediction_shifts = 2, prediction_points = 256;

double relative_error(const numerics::Estimate& estimate) {
    return estimate.value != 0 ? std::abs(estimate.standard_error / estimate.value) : 0;
}

/// A batch of random points.
struct Sample {
    Rows omega, index, other;   // other: a second htilde of the same omega
    std::uint64_t seed, first;  // of the label noise
};

/// Means of the numbers that add(sample, sums) sums over a batch. Each shift is one independent estimate.
template <class Add>
std::vector<numerics::Estimate> average(const Channel& channel, const OrderParameters& parameters,
                                        const Integration& integration, Eigen::Index functions, Add add) {
    check_at_least("shifts of the integration", integration.shifts, 2);
    check_at_least("points of the integration", integration.points, 1);
    check_parameters(parameters, channel.components());
    const Eigen::Index all = channel.components() * channel.pairs();
    const double v = channel.geometry().variance_factor();
    const Overlap known = linalg::lower_root(v * parameters.overlap),
                  rest = linalg::lower_root(v * parameters.error);
    const numerics::ShiftedSobol sobol(static_cast<int>(3 * all), integration.shifts,
                                       static_cast<std::size_t>(integration.points) * draws_per_point,
                                       integration.seed);
    return sobol.averages(
        functions, largest_batch,
        [&](const Eigen::ArrayXXd& z, std::size_t first, Eigen::VectorXd& sums) {
            Sample sample{Rows::Zero(z.rows(), all), {}, {}, integration.seed, first};
            add_correlated(known, z.leftCols(all), sample.omega);
            sample.index = sample.other = sample.omega;
            add_correlated(rest, z.middleCols(all, all), sample.index);
            add_correlated(rest, z.rightCols(all), sample.other);
            add(sample, sums);
        },
        integration.pool);
}

}  // namespace

Eigen::VectorXd pair_scales(int tokens) {
    check_between("tokens", tokens, 1, max_tokens);
    Eigen::VectorXd scales(tokens * (tokens + 1) / 2);
    for (int a = 0; a < tokens; ++a) {
        for (int b = a; b < tokens; ++b) scales[pair_index(a, b, tokens)] = a == b ? 1 : std::sqrt(2.0);
    }
    return scales;
}

Rows output_values(const Channel& channel, const ConstRowsRef& outputs) {
    return channel.logarithmic_outputs() ? Rows(outputs.array().exp()) : Rows(outputs);
}

void add_correlated(const Overlap& root, const Eigen::Ref<const Eigen::ArrayXXd>& z, Rows& to) {
    const Eigen::Index width = z.cols() / root.rows();
    for (Eigen::Index l = 0; l < root.rows(); ++l) {
        for (Eigen::Index k = 0; k <= l; ++k) {
            to.middleCols(l * width, width) += root(l, k) * z.middleCols(k * width, width).matrix();
        }
    }
}

void check_parameters(const OrderParameters& parameters, int layers) {
    check_size("layers of the error", parameters.error.rows(), layers);
    check_size("layers of the overlap", parameters.overlap.rows(), layers);
    for (int l = 0; l < layers; ++l) {
        check_positive("estimation error", parameters.error(l, l));
        if (layers == 1) check_non_negative("overlap", parameters.overlap(l, l));
    }
}

std::string output_title(const char* what, Eigen::Index sample, int row) {
    return fmt::format("{} of sample {}, row {}", what, sample, row);
}

ScalarParameters::ScalarParameters(const OrderParameters& parameters, double variance_factor) {
    check_parameters(parameters, 1);
    overlap = parameters.overlap(0, 0);
    error = parameters.error(0, 0);
    total = overlap + error;
    variance = variance_factor * error;
}

void Channel::check_outputs(const ConstRowsRef& outputs) const {
    const Geometry shape = geometry();
    check_size("columns of the outputs", outputs.cols(), shape.outputs());
    Eigen::RowVectorXd row;
    for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
        for (int a = 0; a < shape.queries; ++a) {
            int seen = 0;  // what is not seen may be anything
            row.resize(shape.row_length(a));
            for (int b = 0; b < shape.keys; ++b) {
                if (shape.sees(a, b)) row[seen++] = outputs(i, a * shape.keys + b);
            }
            for (const double value : row) {
                if (!is_usable(value)) check_usable(output_title("output", i, a), value);
            }
            if (!logarithmic_outputs()) continue;
            const double sum = row.array().exp().sum();
            if (std::abs(sum - 1) <= output_tolerance) continue;
            if (row.minCoeff() >= 0 && std::abs(row.sum() - 1) <= output_tolerance)
                throw InvalidArgument(
                    "outputs must be logarithms of probabilities, got probabilities: give "
                    "numpy.log(outputs)");
            throw_invalid(output_title("sum of the probabilities", i, a), "1", sum);
        }
    }
}

Eigen::MatrixXd Channel::score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                     const Overlap& variance) const {
    const Eigen::Index size = omega.cols();
    const double step = slope_step() * std::sqrt(variance.diagonal().minCoeff());
    // Fourth-order central differences: all displaced copies of the sample as one batch.
    const double shift[] = {-2, -1, 1, 2}, weight[] = {1, -8, 8, -1};
    const Rows outputs = output.replicate(4 * size, 1);
    Rows displaced = omega.replicate(4 * size, 1), g(4 * size, size);
    for (Eigen::Index i = 0; i < size; ++i) {
        for (int k = 0; k < 4; ++k) displaced(4 * i + k, i) += shift[k] * step;
    }
    Eigen::VectorXd no_log_z(0);
    score(outputs, displaced, variance, g, no_log_z);
    Eigen::MatrixXd slope = Eigen::MatrixXd::Zero(size, size);
    for (Eigen::Index i = 0; i < size; ++i) {
        for (int k = 0; k < 4; ++k) slope.col(i) += weight[k] / (12 * step) * g.row(4 * i + k).transpose();
    }
    return 0.5 * (slope + slope.transpose());
}

Overlap Channel::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                  const Overlap& variance, RowsRef g) const {
    Eigen::VectorXd no_log_z(0);
    score(outputs, omega, variance, g, no_log_z);
    // Fourth-order differences along each direction, of all samples at once; only the trace is needed.
    const double step = slope_step() * std::sqrt(variance.diagonal().minCoeff());
    const double shift[] = {-2, -1, 1, 2}, weight[] = {1, -8, 8, -1};
    Overlap sum = linalg::zero_overlap(components());
    Rows displaced = omega, moved(omega.rows(), omega.cols());
    for (int k = 0; k < components(); ++k) {
        for (int p = 0; p < pairs(); ++p) {
            const Eigen::Index column = k * pairs() + p;
            for (std::size_t i = 0; i < 4; ++i) {
                displaced.col(column) = omega.col(column).array() + shift[i] * step;
                score(outputs, displaced, variance, moved, no_log_z);
                for (int l = 0; l < components(); ++l)
                    sum(l, k) -= weight[i] / (12 * step) * moved.col(l * pairs() + p).sum();
            }
            displaced.col(column) = omega.col(column);
        }
    }
    return sum;
}

void Channel::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    if (variance.isZero(0)) {
        draw(omega, 0, 0, prediction);
        prediction = output_values(*this, prediction);
        return;
    }
    const Overlap root = linalg::lower_root(variance);
    const numerics::ShiftedSobol sobol(static_cast<int>(omega.cols()), prediction_shifts, prediction_points,
                                       0);
    Eigen::ArrayXXd z(prediction_points, omega.cols());
    Rows index(omega.rows(), omega.cols()), outputs(omega.rows(), prediction.cols());
    prediction.setZero();
    for (int shift = 0; shift < prediction_shifts; ++shift) {
        sobol.fill_normal(shift, 0, z);
        Rows deviation = Rows::Zero(prediction_points, omega.cols());
        add_correlated(root, z, deviation);
        for (Eigen::Index k = 0; k < prediction_points; ++k) {
            index = omega.rowwise() + deviation.row(k);
            draw(index, 0, 0, outputs);
            prediction += output_values(*this, outputs) / (prediction_shifts * prediction_points);
        }
    }
}

ScorePower Channel::score_power(const OrderParameters& parameters, const Integration& integration) const {
    const Overlap variance = geometry().variance_factor() * parameters.error;
    const Eigen::Index size = components();
    const auto averages = average(
        *this, parameters, integration, size * size, [&](const Sample& sample, Eigen::VectorXd& sums) {
            Rows y(sample.index.rows(), outputs()), g(sample.index.rows(), size * pairs());
            Eigen::VectorXd no_log_z(0);
            draw(sample.index, sample.seed, sample.first, y);
            score(y, sample.omega, variance, g, no_log_z);
            for (Eigen::Index l = 0; l < size; ++l) {
                for (Eigen::Index k = 0; k < size; ++k) {
                    const auto one = g.middleCols(l * pairs(), pairs()),
                               other = g.middleCols(k * pairs(), pairs());
                    sums[l * size + k] += l == k ? one.squaredNorm() : one.cwiseProduct(other).sum();
                }
            }
        });
    ScorePower result{linalg::zero_overlap(size)};
    for (Eigen::Index l = 0; l < size; ++l) {
        for (Eigen::Index k = 0; k < size; ++k) {
            const numerics::Estimate& entry = averages[static_cast<std::size_t>(l * size + k)];
            result.value(l, k) = entry.value;
            if (l == k) result.relative_error = std::max(result.relative_error, relative_error(entry));
        }
    }
    return result;
}

std::optional<double> Channel::information(const OrderParameters& parameters,
                                           const Integration& integration) const {
    if (!knows_log_z()) return std::nullopt;
    const Overlap variance = geometry().variance_factor() * parameters.error;
    return average(*this, parameters, integration, 1,
                   [&](const Sample& sample, Eigen::VectorXd& sums) {
                       Rows y(sample.index.rows(), outputs()), g = sample.index;
                       Eigen::VectorXd log_z(sample.index.rows());
                       draw(sample.index, sample.seed, sample.first, y);
                       score(y, sample.omega, variance, g, log_z);
                       sums[0] += log_z.sum();
                   })
        .front()
        .value;
}

GeneralizationError Channel::generalization(const OrderParameters& parameters,
                                            const Integration& integration) const {
    const Overlap none = linalg::zero_overlap(components());
    const auto averages =
        average(*this, parameters, integration, 2, [&](const Sample& sample, Eigen::VectorXd& sums) {
            Rows truth(sample.index.rows(), outputs()), other = truth, plugged = truth;
            predict(sample.index, none, truth);
            predict(sample.other, none, other);
            predict(sample.omega, none, plugged);
            sums[0] += 0.5 * (other - truth).squaredNorm();
            sums[1] += (plugged - truth).squaredNorm();
        });
    return {averages[0].value, averages[1].value,
            std::max(relative_error(averages[0]), relative_error(averages[1]))};
}

}  // namespace bayesaim::channels
