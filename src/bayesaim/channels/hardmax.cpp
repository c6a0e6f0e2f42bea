// SPDX-License-Identifier: MIT
#include "bayesaim/channels/hardmax.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "bayesaim/channels/expectations/winning_probability.hpp"
#include "bayesaim/channels/hardmax/pair.hpp"
#include "bayesaim/channels/hardmax/recursion.hpp"
#include "bayesaim/channels/hardmax/universal.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {
namespace {

using Labels = std::array<int, HardmaxRecursion::max_tokens>;

/// The score of two tokens for a batch, exact or as printed. Returns the sum of the slopes of the exact one.
double score_pairs(const ConstRowsRef& outputs, const ConstRowsRef& omega, double variance,
                   hardmax_pair::Score kind, RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) {
    double slopes = 0;
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        const Eigen::Vector3d w = omega.row(i);
        const auto at =
            hardmax_pair::evaluate(outputs(i, 0) > 0.5, outputs(i, 3) > 0.5, w.data(), variance, kind);
        g.row(i) << at.g[0], at.g[1], at.g[2];
        if (log_z.size() > 0) log_z[i] = at.log_z;
        slopes += at.slope;
    }
    return slopes;
}

}  // namespace

Hardmax::Hardmax(int tokens) : Hardmax(tokens, hardmax_pair::Score::exact) {}

Hardmax::Hardmax(int tokens, hardmax_pair::Score score) : tokens_(tokens), score_(score) {
    check_at_least("hardmax channel: tokens", tokens, 2);
    if (tokens > HardmaxRecursion::max_tokens) throw_invalid("hardmax channel: tokens", "at most 6", tokens);
}

std::vector<std::pair<std::string, double>> Hardmax::parameters() const { return {{"tokens", tokens_}}; }

bool Hardmax::fast_slope() const { return tokens_ == 2 && score_ == hardmax_pair::Score::exact; }

void Hardmax::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    const Eigen::VectorXd scale = pair_scales(tokens_);
    outputs.setZero();
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        for (int a = 0; a < tokens_; ++a) {
            int winner = 0;
            double largest = -std::numeric_limits<double>::infinity();
            for (int b = 0; b < tokens_; ++b) {
                const int p = pair_index(a, b, tokens_);
                const double h = index(i, p) / scale[p];
                if (h > largest) {
                    largest = h;
                    winner = b;
                }
            }
            outputs(i, a * tokens_ + winner) = 1;
        }
    }
}

void Hardmax::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                    RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    if (tokens_ == 2) {
        score_pairs(outputs, omega, variance(0, 0), score_, g, log_z);
        return;
    }
    HardmaxRecursion recursion(tokens_);
    Labels labels{};
    const auto count = static_cast<std::size_t>(pairs());
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        for (int a = 0; a < tokens_; ++a) {
            const double* row = outputs.data() + i * outputs.outerStride() + a * tokens_;
            labels[a] = static_cast<int>(std::max_element(row, row + tokens_) - row);
        }
        const double value = recursion.evaluate({labels.data(), static_cast<std::size_t>(tokens_)},
                                                {omega.data() + i * omega.outerStride(), count},
                                                variance(0, 0), {g.data() + i * g.outerStride(), count});
        if (log_z.size() > 0) log_z[i] = value;
    }
}

void Hardmax::check_outputs(const ConstRowsRef& outputs) const {
    Channel::check_outputs(outputs);
    for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
        for (int a = 0; a < tokens_; ++a) {
            const auto row = outputs.row(i).segment(a * tokens_, tokens_).array();
            const auto ones = ((row - 1).abs() <= output_tolerance).count(),
                       zeros = (row.abs() <= output_tolerance).count();
            if (ones != 1 || zeros != tokens_ - 1)
                throw_invalid(output_title("hardmax output", i, a), "one 1 and zeros",
                              fmt::format("sum {}", row.sum()));
        }
    }
}

void Hardmax::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    if (variance(0, 0) == 0) return draw(omega, 0, 0, prediction);
    predict_winners(WinningProbability::normal(tokens_, std::sqrt(variance(0, 0))), tokens_, 1, omega,
                    prediction);
}

Eigen::MatrixXd Hardmax::score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                     const Overlap& variance) const {
    if (!fast_slope()) return Channel::score_slope(output, omega, variance);
    const Eigen::Vector3d w = omega.row(0);
    return hardmax_pair::slope(output(0, 0) > 0.5, output(0, 3) > 0.5, w.data(), variance(0, 0));
}

Overlap Hardmax::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                  const Overlap& variance, RowsRef g) const {
    if (!fast_slope()) return Channel::score_with_slope(outputs, omega, variance, g);
    Eigen::VectorXd no_log_z(0);
    return linalg::scalar_overlap(score_pairs(outputs, omega, variance(0, 0), score_, g, no_log_z));
}

ScorePower Hardmax::score_power(const OrderParameters& parameters, const Integration&) const {
    const ScalarParameters p(parameters);
    const double r = std::sqrt(p.error / p.total);
    return {linalg::scalar_overlap(0.5 * r * hardmax_universal::power(tokens_, r) / p.error),
            hardmax_universal::relative_error(tokens_)};
}

std::optional<double> Hardmax::information(const OrderParameters& parameters, const Integration&) const {
    const ScalarParameters p(parameters);
    return hardmax_universal::information(tokens_, std::sqrt(p.error / p.total));
}

GeneralizationError Hardmax::generalization(const OrderParameters& parameters, const Integration&) const {
    const ScalarParameters p(parameters);
    const double r = std::sqrt(p.error / p.total);
    // Two different rows have squared distance 2; the Bayes-optimal error is half the distance of two draws.
    const double optimal = hardmax_universal::disagreement(tokens_, 2 * std::asin(r / std::numbers::sqrt2));
    const double plug_in = hardmax_universal::disagreement(tokens_, std::asin(std::min(r, 1.0)));
    return {tokens_ * optimal, 2 * tokens_ * plug_in, 0};
}

HardmaxAsPrinted::HardmaxAsPrinted(int tokens) : Hardmax(2, hardmax_pair::Score::as_printed) {
    if (tokens != 2) throw_invalid("hardmax-as-printed channel: tokens", "2", tokens);
}

ScorePower HardmaxAsPrinted::score_power(const OrderParameters& parameters, const Integration&) const {
    const ScalarParameters p(parameters);
    const auto averages =
        hardmax_pair::tied_averages(p.overlap / p.variance, hardmax_pair::Score::as_printed);
    return {linalg::scalar_overlap(averages.power / p.variance), 0};
}

}  // namespace bayesaim::channels
