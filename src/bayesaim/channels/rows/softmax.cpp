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
    Rows storage;
    const ConstRowsRef entries = entries_of(index, storage);
    outputs.setConstant(-std::numeric_limits<double>::infinity());  // log-probability of what is not seen
    for (Eigen::Index i = 0; i < entries.rows(); ++i) {
        for (const Row& row : rows()) {
            const auto h = entries.row(i).segment(row.first, row.length).array();
            const double largest = beta_ * h.maxCoeff(),
                         log_sum = largest + std::log((beta_ * h - largest).exp().sum());
            for (int k = 0; k < row.length; ++k) outputs(i, place(row.first + k)) = beta_ * h[k] - log_sum;
        }
    }
}

/// Fills g, and returns the square of the residuals in units of their covariance.
double RowSoftmax::score_of_coupled_rows(const Eigen::MatrixXd& residual, const Overlap& variance,
                                         double* g) const {
    const double p = 1 / variance(0, 0), m = 1 / variance(1, 1), k = (p - m) / (p + m), t = tokens();
    const Eigen::VectorXd shift =
        -(residual.rowwise().sum() + k * residual.colwise().sum().transpose()).array() / t +
        k / (t * t) * residual.sum();
    const Eigen::MatrixXd rest = residual.colwise() + shift;
    double square = 0;
    for (int a = 0; a < tokens(); ++a) {
        for (int b = 0; b < tokens(); ++b) {
            const double score = 0.5 * (p + m) * rest(a, b) + 0.5 * (p - m) * rest(b, a);
            *g++ = score;
            square += score * rest(a, b);
        }
    }
    return square;
}

void RowSoftmax::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                       RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    const Spread v = spread(variance);
    // log of the integral over the shifts x_a of the normal density of r + x, but for the square
    double constant = 0.5 * differences() * std::log(2 * std::numbers::pi);
    if (coupled()) {
        const double t = tokens(), p = 1 / variance(0, 0), m = 1 / variance(1, 1);
        constant += -0.25 * t * ((t + 1) * std::log(p) + (t - 1) * std::log(m)) +
                    0.5 * ((t - 1) * std::log(0.5 * (p + m)) + std::log(p));
    } else {
        for (const Row& row : rows()) {
            double precision = 0;
            for (int k = 0; k < row.length; ++k) {
                precision += 1 / v.of(row, k);
                constant += 0.5 * std::log(v.of(row, k));
            }
            constant += 0.5 * std::log(precision / row.length);
        }
    }
    Eigen::MatrixXd residual;
    if (coupled()) residual.resize(tokens(), tokens());
    on_entries(omega, g, [&](const ConstRowsRef& h, RowsRef score) {
        for (Eigen::Index i = 0; i < h.rows(); ++i) {
            double square = 0;
            if (coupled()) {
                for (int e = 0; e < entries(); ++e)
                    residual(e / tokens(), e % tokens()) = outputs(i, e) / beta_ - h(i, e);
                square = score_of_coupled_rows(residual, variance, score.data() + i * score.outerStride());
            } else {
                for (const Row& row : rows()) {
                    double mean = 0, precision = 0;
                    for (int k = 0; k < row.length; ++k) {
                        const int e = row.first + k;
                        const double weight = v.other / v.of(row, k);  // 1 but for the diagonal
                        score(i, e) = outputs(i, place(e)) / beta_ - h(i, e);
                        mean += weight * score(i, e);
                        precision += weight;
                    }
                    mean /= precision;
                    for (int k = 0; k < row.length; ++k) {
                        const int e = row.first + k;
                        const double rest = score(i, e) - mean;
                        score(i, e) = rest / v.of(row, k);
                        square += rest * score(i, e);
                    }
                }
            }
            if (log_z.size() > 0) log_z[i] = -0.5 * square - constant;
        }
    });
}

void RowSoftmax::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    if (variance.isZero(0)) {
        draw(omega, 0, 0, prediction);
        prediction = prediction.array().exp();
        return;
    }
    const Spread v = spread(variance);
    predict_rows(
        [&](int length) {
            return WinningProbability::gumbel_and_normal(length, beta_ * std::sqrt(v.diagonal),
                                                         v.diagonal / v.other);
        },
        beta_, omega, prediction);
}

Eigen::MatrixXd RowSoftmax::score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                        const Overlap& variance) const {
    if (!one_part()) return Channel::score_slope(output, omega, variance);
    Eigen::MatrixXd slope = -Eigen::MatrixXd::Identity(pairs(), pairs());
    for (const Row& row : rows())
        slope.block(row.first, row.first, row.length, row.length).array() += 1.0 / row.length;
    return slope / variance(0, 0);
}

Overlap RowSoftmax::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                     const Overlap& variance, RowsRef g) const {
    Eigen::VectorXd no_log_z(0);
    score(outputs, omega, variance, g, no_log_z);
    return static_cast<double>(omega.rows()) * power_at(variance);
}

/// F, and minus the mean slope, which is the same for all data.
Overlap RowSoftmax::power_at(const Overlap& variance) const {
    if (one_part()) return linalg::scalar_overlap(differences() / variance(0, 0));
    const Spread v = spread(variance);
    if (coupled()) {
        const double t = tokens(), symmetric = variance(0, 0), antisymmetric = variance(1, 1),
                     sum = symmetric + antisymmetric;
        Overlap result = linalg::zero_overlap(2);
        result(0, 0) = (0.5 * t * (t + 1) - 1 - (t - 1) * antisymmetric / sum) / symmetric;
        result(1, 1) = (0.5 * t * (t - 1) - (t - 1) * symmetric / sum) / antisymmetric;
        return result;
    }
    double diagonal = 0, other = 0;
    for (const Row& row : rows()) {
        const double precision = 1 / v.diagonal + (row.length - 1) / v.other;
        diagonal += (1 - 1 / (v.diagonal * precision)) / v.diagonal;
        other += (row.length - 1) * (1 - 1 / (v.other * precision)) / v.other;
    }
    return power(diagonal, other);
}

ScorePower RowSoftmax::score_power(const OrderParameters& parameters, const Integration&) const {
    check_parameters(parameters, components());
    return {power_at(variance_at(parameters)), 0};
}

std::optional<double> RowSoftmax::information(const OrderParameters& parameters, const Integration&) const {
    if (!one_part()) return std::nullopt;
    return -0.5 * differences() * (std::log(2 * std::numbers::pi * scalars(parameters).variance) + 1);
}

std::optional<int> RowSoftmax::exact_observations() const {
    return one_part() ? std::optional(differences()) : std::nullopt;
}

GeneralizationError RowSoftmax::generalization(const OrderParameters& parameters,
                                               const Integration& integration) const {
    if (rows().back().length > 2 && !one_part()) return Channel::generalization(parameters, integration);
    const auto [total, overlap, error] = row_moments(parameters);
    const int length = rows().back().length;
    const auto optimal =
        softmax_disagreement(length, beta_, {total, total, overlap, 2 * error, 1}, integration);
    const auto plug_in =
        softmax_disagreement(length, beta_, {overlap, total, overlap, error, 1}, integration);
    return {0.5 * informative_rows() * optimal.value, informative_rows() * plug_in.value,
            std::max(optimal.standard_error / optimal.value, plug_in.standard_error / plug_in.value)};
}

}  // namespace bayesaim::channels
