// SPDX-License-Identifier: MIT
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/channels/expectations/output_disagreement.hpp"
#include "bayesaim/channels/expectations/winning_probability.hpp"
#include "bayesaim/channels/hardmax/universal.hpp"
#include "bayesaim/channels/rows/row_channel.hpp"
#include "bayesaim/channels/rows/row_posterior.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {

RowHardmax::RowHardmax(const Geometry& geometry) : RowChannel("hardmax", geometry, 2) {}

bool RowHardmax::sampled() const { return length() > hardmax_universal::longest_row; }

void RowHardmax::check_outputs(const ConstRowsRef& outputs) const {
    Channel::check_outputs(outputs);
    for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
        for (int a = 0; a < rows(); ++a) {
            int ones = 0, zeros = 0;
            for (int p = a * length(); p < (a + 1) * length(); ++p) {
                const double y = outputs(i, place(p));
                ones += std::abs(y - 1) <= output_tolerance;
                zeros += std::abs(y) <= output_tolerance;
            }
            if (ones != 1 || zeros != length() - 1)
                throw_invalid(output_title("hardmax output", i, a), "one 1 and zeros",
                              fmt::format("{} ones and {} zeros", ones, zeros));
        }
    }
}

void RowHardmax::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    outputs.setZero();
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        for (int a = 0; a < rows(); ++a) {
            Eigen::Index winner = 0;
            index.row(i).segment(a * length(), length()).maxCoeff(&winner);
            outputs(i, place(a * length() + static_cast<int>(winner))) = 1;
        }
    }
}

void RowHardmax::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                       RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    RowPosterior posterior;
    const auto size = static_cast<std::size_t>(length());
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        double sum = 0;
        for (int a = 0; a < rows(); ++a) {
            std::size_t label = 0;
            while (label + 1 < size && outputs(i, place(a * length() + static_cast<int>(label))) < 0.5)
                ++label;
            const Eigen::Index first = a * length();
            sum += posterior.evaluate({omega.data() + i * omega.outerStride() + first, size}, label,
                                      variance(0, 0), {g.data() + i * g.outerStride() + first, size});
        }
        if (log_z.size() > 0) log_z[i] = sum;
    }
}

void RowHardmax::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    if (variance(0, 0) == 0) return draw(omega, 0, 0, prediction);
    predict_rows(WinningProbability::normal(length(), std::sqrt(variance(0, 0)), 1), 1, omega, prediction);
}

ScorePower RowHardmax::score_power(const OrderParameters& parameters, const Integration& integration) const {
    if (sampled()) return Channel::score_power(parameters, integration);
    const ScalarParameters p = scalars(parameters);
    const double r = std::sqrt(p.error / p.total);
    return {linalg::scalar_overlap(rows() * r * hardmax_universal::row_power(length(), r) / p.error),
            hardmax_universal::row_error(length())};
}

std::optional<double> RowHardmax::information(const OrderParameters& parameters,
                                              const Integration& integration) const {
    if (sampled()) return Channel::information(parameters, integration);
    const ScalarParameters p = scalars(parameters);
    return rows() * hardmax_universal::row_information(length(), std::sqrt(p.error / p.total));
}

GeneralizationError RowHardmax::generalization(const OrderParameters& parameters, const Integration&) const {
    const ScalarParameters p = scalars(parameters);
    // Two different rows have squared distance 2; the Bayes-optimal error is half the distance of two draws.
    return {rows() * hardmax_disagreement(length(), {p.total, p.total, p.overlap, 2 * p.error, 1}),
            2 * rows() * hardmax_disagreement(length(), {p.overlap, p.total, p.overlap, p.error, 1}), 0};
}

}  // namespace bayesaim::channels
