// SPDX-License-Identifier: MIT
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/channels/expectations/output_disagreement.hpp"
#include "bayesaim/channels/expectations/winning_probability.hpp"
#include "bayesaim/channels/hardmax/pair.hpp"
#include "bayesaim/channels/hardmax/universal.hpp"
#include "bayesaim/channels/rows/row_channel.hpp"
#include "bayesaim/channels/rows/row_posterior.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/gaussian.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

namespace bayesaim::channels {

RowHardmax::RowHardmax(const Geometry& geometry) : RowChannel("hardmax", geometry, 2) {
    if (coupled() && geometry.queries != 2)
        throw_invalid(
            "hardmax channel, self attention: tokens",
            "2: rows of more tokens are coupled, and no formula is known; masked and causal attention have "
            "any number",
            geometry.queries);
}

bool RowHardmax::sampled() const {
    return one_part() ? rows().back().length > hardmax_universal::longest_row : tokens() > 2;
}

void RowHardmax::check_outputs(const ConstRowsRef& outputs) const {
    Channel::check_outputs(outputs);
    for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
        for (std::size_t a = 0; a < rows().size(); ++a) {
            const Row& row = rows()[a];
            int ones = 0, zeros = 0;
            for (int e = row.first; e < row.first + row.length; ++e) {
                const double y = outputs(i, place(e));
                ones += std::abs(y - 1) <= output_tolerance;
                zeros += std::abs(y) <= output_tolerance;
            }
            if (ones != 1 || zeros != row.length - 1)
                throw_invalid(output_title("hardmax output", i, static_cast<int>(a)), "one 1 and zeros",
                              fmt::format("{} ones and {} zeros", ones, zeros));
        }
    }
}

void RowHardmax::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    Rows storage;
    const ConstRowsRef h = entries_of(index, storage);
    outputs.setZero();
    for (Eigen::Index i = 0; i < h.rows(); ++i) {
        for (const Row& row : rows()) {
            Eigen::Index winner = 0;
            h.row(i).segment(row.first, row.length).maxCoeff(&winner);
            outputs(i, place(row.first + static_cast<int>(winner))) = 1;
        }
    }
}

std::size_t RowHardmax::label(const ConstRowsRef& outputs, Eigen::Index sample, const Row& row) const {
    int label = 0;
    while (label + 1 < row.length && outputs(sample, place(row.first + label)) < 0.5) ++label;
    return static_cast<std::size_t>(label);
}

void RowHardmax::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                       RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    const Spread v = spread(variance);
    // Self: row a is decided by the sign s_a of h_aa - h_ab; the two differences have variance v_diagonal + v_other
    // and the covariance of h_12 and h_21.
    const double deviation = std::sqrt(v.diagonal + v.other);
    RowPosterior posterior;
    std::vector<double> variances(static_cast<std::size_t>(geometry().keys));
    on_entries(omega, g, [&](const ConstRowsRef& h, RowsRef score) {
        for (Eigen::Index i = 0; i < h.rows(); ++i) {
            double sum = 0;
            if (coupled()) {
                const double s1 = label(outputs, i, rows()[0]) == 0 ? 1 : -1,
                             s2 = label(outputs, i, rows()[1]) == 1 ? 1 : -1;
                const auto cdf = numerics::bivariate_normal_cdf(
                    s1 * (h(i, 0) - h(i, 1)) / deviation, s2 * (h(i, 3) - h(i, 2)) / deviation,
                    s1 * s2 * v.coupling / (v.diagonal + v.other));
                score(i, 0) = s1 * cdf.ratio1 / deviation;
                score(i, 1) = -score(i, 0);
                score(i, 3) = s2 * cdf.ratio2 / deviation;
                score(i, 2) = -score(i, 3);
                sum = cdf.log_probability;
            } else {
                for (const Row& row : rows()) {
                    const auto size = static_cast<std::size_t>(row.length);
                    for (int k = 0; k < row.length; ++k)
                        variances[static_cast<std::size_t>(k)] = v.of(row, k);
                    sum += posterior.evaluate({h.data() + i * h.outerStride() + row.first, size},
                                              label(outputs, i, row), {variances.data(), size},
                                              {score.data() + i * score.outerStride() + row.first, size});
                }
            }
            if (log_z.size() > 0) log_z[i] = sum;
        }
    });
}

void RowHardmax::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    if (variance.isZero(0)) return draw(omega, 0, 0, prediction);
    const Spread v = spread(variance);
    predict_rows(
        [&](int length) {
            return WinningProbability::normal(length, std::sqrt(v.diagonal), v.diagonal / v.other);
        },
        1, omega, prediction);
}

/// Rows are independent: an average over the omega of one row after the other, with the sum over its labels in place of a
/// drawn label. So it is a smooth function of the order parameters.
ScorePower RowHardmax::sampled_power(const OrderParameters& parameters,
                                     const Integration& integration) const {
    check_parameters(parameters, components());
    const Spread known = spread(geometry().variance_factor() * parameters.overlap),
                 v = spread(variance_at(parameters));
    const std::vector<Row> different =
        one_part() ? std::vector<Row>{rows().back()} : std::vector<Row>(rows().begin() + 1, rows().end());
    const double count = one_part() ? static_cast<double>(rows().size()) : 1;
    double diagonal = 0, other = 0, variance = 0;
    for (const Row& row : different) {
        const auto size = static_cast<std::size_t>(row.length);
        std::vector<double> variances(size), deviations(size);
        for (int k = 0; k < row.length; ++k) {
            variances[static_cast<std::size_t>(k)] = v.of(row, k);
            deviations[static_cast<std::size_t>(k)] = std::sqrt(known.of(row, k));
        }
        const numerics::ShiftedSobol sobol(row.length, integration.shifts,
                                           static_cast<std::size_t>(integration.points), integration.seed);
        const auto means = sobol.averages(
            2, 64,
            [&](const Eigen::ArrayXXd& z, std::size_t, Eigen::VectorXd& sums) {
                RowPosterior posterior;
                std::vector<double> omega(size), g(size);
                for (Eigen::Index i = 0; i < z.rows(); ++i) {
                    for (std::size_t k = 0; k < size; ++k)
                        omega[k] = deviations[k] * z(i, static_cast<Eigen::Index>(k));
                    for (std::size_t label = 0; label < size; ++label) {
                        const double probability = std::exp(posterior.evaluate(omega, label, variances, g));
                        for (std::size_t k = 0; k < size; ++k)
                            sums[static_cast<int>(k) == row.diagonal ? 0 : 1] += probability * g[k] * g[k];
                    }
                }
            },
            integration.pool);
        diagonal += count * means[0].value;
        other += count * means[1].value;
        variance += std::pow(count, 2) *
                    (std::pow(means[0].standard_error, 2) + std::pow(means[1].standard_error, 2));
    }
    return {power(diagonal, other), std::sqrt(variance) / (diagonal + other)};
}

ScorePower RowHardmax::score_power(const OrderParameters& parameters, const Integration& integration) const {
    if (sampled()) return sampled_power(parameters, integration);
    if (one_part()) {
        const ScalarParameters p = scalars(parameters);
        const double r = std::sqrt(p.error / p.total);
        const int length = rows().back().length;
        return {linalg::scalar_overlap(informative_rows() * r * hardmax_universal::row_power(length, r) /
                                       p.error),
                hardmax_universal::row_error(length)};
    }
    // Two tokens: the difference of the entries of a row has twice these moments.
    const Moments m = row_moments(parameters);
    if (!coupled()) {
        const double r = std::sqrt(m.error / m.total),
                     both = r * hardmax_universal::row_power(2, r) / m.error;
        return {power(0.5 * both, 0.5 * both), hardmax_universal::row_error(2)};
    }
    const auto coupling = [](const Overlap& c) { return c(0, 0) - c(1, 1); };
    const auto [squares, product, information] = hardmax_pair::averages(
        m.overlap / m.error, m.overlap > 0 ? coupling(parameters.overlap) / (2 * m.overlap) : 0,
        coupling(parameters.error) / (2 * m.error), hardmax_pair::Score::exact);
    // g_11 = -g_12, g_22 = -g_21: the sums of g_aa^2, of g_ab^2 and of g_ab g_ba
    const double scale = 1 / (2 * m.error);
    return {power(scale * squares, scale * squares, 2 * scale * product), 0};
}

std::optional<double> RowHardmax::information(const OrderParameters& parameters,
                                              const Integration& integration) const {
    if (!one_part()) return std::nullopt;
    if (sampled()) return Channel::information(parameters, integration);
    const ScalarParameters p = scalars(parameters);
    return informative_rows() *
           hardmax_universal::row_information(rows().back().length, std::sqrt(p.error / p.total));
}

GeneralizationError RowHardmax::generalization(const OrderParameters& parameters,
                                               const Integration& integration) const {
    const int length = rows().back().length;
    if (!one_part() && length > 2) return Channel::generalization(parameters, integration);
    const auto [total, overlap, error] = row_moments(parameters);
    // Two different rows have squared distance 2; the Bayes-optimal error is half the distance of two draws.
    return {informative_rows() * hardmax_disagreement(length, {total, total, overlap, 2 * error, 1}),
            2 * informative_rows() * hardmax_disagreement(length, {overlap, total, overlap, error, 1}), 0};
}

}  // namespace bayesaim::channels
