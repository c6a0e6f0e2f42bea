// SPDX-License-Identifier: MIT
#include "bayesaim/channels/softmax.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "bayesaim/channels/expectations/output_disagreement.hpp"
#include "bayesaim/channels/expectations/winning_probability.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {

void check_softmax_beta(double beta) {
    if (beta == std::numeric_limits<double>::infinity())
        throw_invalid("softmax channel: beta", "finite (beta = infinity is the channel hardmax)", beta);
    check_positive("softmax channel: beta", beta);
    check_between("softmax channel: beta", beta, 1e-6, 1e6);
}

Softmax::Softmax(int tokens, double beta) : tokens_(tokens), beta_(beta), scale_(pair_scales(tokens)) {
    check_at_least("softmax channel: tokens", tokens, 2);
    check_softmax_beta(beta);
}

std::vector<std::pair<std::string, double>> Softmax::parameters() const {
    return {{"tokens", tokens_}, {"beta", beta_}};
}

void Softmax::draw(const ConstRowsRef& index, std::uint64_t, std::uint64_t, RowsRef outputs) const {
    Eigen::VectorXd logit(tokens_);
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        for (int a = 0; a < tokens_; ++a) {
            for (int b = 0; b < tokens_; ++b) {
                const int p = pair_index(a, b, tokens_);
                logit[b] = beta_ * index(i, p) / scale_[p];
            }
            const double largest = logit.maxCoeff();
            const double log_sum = largest + std::log((logit.array() - largest).exp().sum());
            for (int b = 0; b < tokens_; ++b) outputs(i, a * tokens_ + b) = logit[b] - log_sum;
        }
    }
}

void Softmax::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                    RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    const double v = variance(0, 0);
    const double constant = 0.5 * (pairs() - 1) * std::log(2 * std::numbers::pi * v);
    const int last = tokens_ - 1;
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        const double* log_y = outputs.data() + i * outputs.outerStride();
        const auto phi = [&](int a, int b) { return log_y[a * tokens_ + b] - log_y[a * tokens_ + last]; };
        double along = 0;
        for (int a = 0; a < tokens_; ++a) {
            for (int b = a; b < tokens_; ++b) {
                const int p = pair_index(a, b, tokens_);
                // m is symmetric for exact outputs; rounded outputs need the mean of both halves.
                const double m = 0.5 * (phi(a, b) + phi(last, a) + phi(b, a) + phi(last, b)) / beta_;
                g(i, p) = scale_[p] * m - omega(i, p);
                along += scale_[p] * g(i, p);
            }
        }
        along /= tokens_ * tokens_;
        double squares = 0;
        for (int p = 0; p < pairs(); ++p) {
            const double residual = g(i, p) - scale_[p] * along;
            squares += residual * residual;
            g(i, p) = residual / v;
        }
        if (log_z.size() > 0) log_z[i] = -0.5 * squares / v - constant;
    }
}

void Softmax::predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const {
    if (variance(0, 0) == 0) {
        draw(omega, 0, 0, prediction);
        prediction = prediction.array().exp();
        return;
    }
    predict_winners(WinningProbability::gumbel_and_normal(tokens_, beta_ * std::sqrt(variance(0, 0))),
                    tokens_, beta_, omega, prediction);
}

Eigen::MatrixXd Softmax::score_slope(const ConstRowsRef&, const ConstRowsRef&,
                                     const Overlap& variance) const {
    const Eigen::MatrixXd projection =
        Eigen::MatrixXd::Identity(pairs(), pairs()) - scale_ * scale_.transpose() / (tokens_ * tokens_);
    return -projection / variance(0, 0);
}

Overlap Softmax::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                  const Overlap& variance, RowsRef g) const {
    Eigen::VectorXd no_log_z(0);
    score(outputs, omega, variance, g, no_log_z);
    return linalg::scalar_overlap(static_cast<double>(omega.rows()) * (pairs() - 1) / variance(0, 0));
}

ScorePower Softmax::score_power(const OrderParameters& parameters, const Integration&) const {
    return {linalg::scalar_overlap((pairs() - 1) / ScalarParameters(parameters).variance), 0};
}

std::optional<double> Softmax::information(const OrderParameters& parameters, const Integration&) const {
    const double v = ScalarParameters(parameters).variance;
    return -0.5 * (pairs() - 1) * (std::log(2 * std::numbers::pi * v) + 1);
}

GeneralizationError Softmax::generalization(const OrderParameters& parameters,
                                            const Integration& integration) const {
    const ScalarParameters p(parameters);
    // Two draws h, h' that share omega, and the pair (omega, h).
    const auto optimal =
        softmax_disagreement(tokens_, beta_, {p.total, p.total, p.overlap, 2 * p.error}, integration);
    const auto plug_in =
        softmax_disagreement(tokens_, beta_, {p.overlap, p.total, p.overlap, p.error}, integration);
    const double relative_error =
        std::max(optimal.standard_error / optimal.value, plug_in.standard_error / plug_in.value);
    return {0.5 * tokens_ * optimal.value, tokens_ * plug_in.value, relative_error};
}

}  // namespace bayesaim::channels
