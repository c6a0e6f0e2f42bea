// SPDX-License-Identifier: MIT
#include "bayesaim/channels/softmax.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "bayesaim/channels/expectations/output_disagreement.hpp"
#include "bayesaim/channels/expectations/winning_probability.hpp"
#include "bayesaim/channels/rows/row_channel.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {

RowSoftmax::RowSoftmax(const Geometry& geometry, double beta)
    : RowChannel("softmax", geometry, 2), beta_(beta) {
    check_softmax_beta(beta);
}

std::vector<std::pair<std::string, double>> RowSoftmax::parameters() const {
    auto list = RowChannel::parameters();
    list.emplace_back("beta", beta_);
    return list;
}

void RowSoftmax::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    outputs.setConstant(-std::numeric_limits<double>::infinity());  // log-probability of what is not seen
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        for (int a = 0; a < rows(); ++a) {
            const auto h = index.row(i).segment(a * length(), length()).array();
            const double largest = beta_ * h.maxCoeff(),
                         log_sum = largest + std::log((beta_ * h - largest).exp().sum());
            for (int k = 0; k < length(); ++k) outputs(i, place(a * length() + k)) = beta_ * h[k] - log_sum;
        }
    }
}

void RowSoftmax::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                       RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    const double v = variance(0, 0),
                 constant = 0.5 * rows() * (length() - 1) * std::log(2 * std::numbers::pi * v);
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        for (int a = 0; a < rows(); ++a) {
            double mean = 0;
            for (int p = a * length(); p < (a + 1) * length(); ++p)
                mean += g(i, p) = outputs(i, place(p)) / beta_ - omega(i, p);
            mean /= length();
            for (int p = a * length(); p < (a + 1) * length(); ++p) g(i, p) = (g(i, p) - mean) / v;
        }
        if (log_z.size() > 0) log_z[i] = -0.5 * v * g.row(i).squaredNorm() - constant;
    }
}

void RowSoftmax::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    if (variance(0, 0) == 0) {
        draw(omega, 0, 0, prediction);
        prediction = prediction.array().exp();
        return;
    }
    predict_rows(WinningProbability::gumbel_and_normal(length(), beta_ * std::sqrt(variance(0, 0)), 1), beta_,
                 omega, prediction);
}

Eigen::MatrixXd RowSoftmax::score_slope(const ConstRowsRef&, const ConstRowsRef&,
                                        const Overlap& variance) const {
    Eigen::MatrixXd slope = -Eigen::MatrixXd::Identity(pairs(), pairs());
    for (int a = 0; a < rows(); ++a)
        slope.block(a * length(), a * length(), length(), length()).array() += 1.0 / length();
    return slope / variance(0, 0);
}

Overlap RowSoftmax::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                     const Overlap& variance, RowsRef g) const {
    Eigen::VectorXd no_log_z(0);
    score(outputs, omega, variance, g, no_log_z);
    return linalg::scalar_overlap(static_cast<double>(omega.rows()) * *exact_observations() / variance(0, 0));
}

ScorePower RowSoftmax::score_power(const OrderParameters& parameters, const Integration&) const {
    return {linalg::scalar_overlap(*exact_observations() / scalars(parameters).variance), 0};
}

std::optional<double> RowSoftmax::information(const OrderParameters& parameters, const Integration&) const {
    return -0.5 * *exact_observations() * (std::log(2 * std::numbers::pi * scalars(parameters).variance) + 1);
}

GeneralizationError RowSoftmax::generalization(const OrderParameters& parameters,
                                               const Integration& integration) const {
    const ScalarParameters p = scalars(parameters);
    const auto optimal =
        softmax_disagreement(length(), beta_, {p.total, p.total, p.overlap, 2 * p.error, 1}, integration);
    const auto plug_in =
        softmax_disagreement(length(), beta_, {p.overlap, p.total, p.overlap, p.error, 1}, integration);
    return {0.5 * rows() * optimal.value, rows() * plug_in.value,
            std::max(optimal.standard_error / optimal.value, plug_in.standard_error / plug_in.value)};
}

}  // namespace bayesaim::channels
