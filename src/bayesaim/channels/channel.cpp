// SPDX-License-Identifier: MIT
#include "bayesaim/channels/channel.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {

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

ScalarParameters::ScalarParameters(const OrderParameters& parameters) {
    check_size("layers of the order parameters", parameters.error.rows(), 1);
    overlap = parameters.overlap(0, 0);
    error = parameters.error(0, 0);
    check_non_negative("overlap", overlap);
    check_positive("estimation error", error);
    total = overlap + error;
    variance = 2 * error;
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
    Overlap sum = Overlap::Zero(layers(), layers());
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        const Eigen::MatrixXd slope = score_slope(outputs.row(i), omega.row(i), variance);
        for (int l = 0; l < layers(); ++l) {
            for (int k = 0; k < layers(); ++k) {
                sum(l, k) -= slope.block(l * pairs(), k * pairs(), pairs(), pairs()).trace();
            }
        }
    }
    return sum;
}

}  // namespace bayesaim::channels
