// SPDX-License-Identifier: MIT
#include "bayesaim/channels/linear.hpp"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"

namespace bayesaim::channels {

Linear::Linear(int tokens, double label_noise)
    : tokens_(tokens), label_noise_(label_noise), scale_(pair_scales(tokens)) {
    check_at_least("linear channel: tokens", tokens, 1);
    check_non_negative("linear channel: label noise", label_noise);
}

std::vector<std::pair<std::string, double>> Linear::parameters() const {
    return {{"tokens", tokens_}, {"label_noise", label_noise_}};
}

void Linear::draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
                  RowsRef outputs) const {
    Eigen::VectorXd noise = Eigen::VectorXd::Zero(pairs());
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        if (label_noise_ > 0) {
            RandomStream(seed, Purpose::label_noise, first_sample + static_cast<std::uint64_t>(i))
                .fill_normal({noise.data(), static_cast<std::size_t>(noise.size())});
        }
        for (int a = 0; a < tokens_; ++a) {
            for (int b = a; b < tokens_; ++b) {
                const int p = pair_index(a, b, tokens_);
                const double y = index(i, p) / scale_[p] + std::sqrt(label_noise_) * noise[p];
                outputs(i, a * tokens_ + b) = outputs(i, b * tokens_ + a) = y;
            }
        }
    }
}

void Linear::check_outputs(const ConstRowsRef& outputs) const {
    Channel::check_outputs(outputs);
    for (Eigen::Index i = 0; i < outputs.rows(); ++i) {
        for (int a = 0; a < tokens_; ++a) {
            for (int b = 0; b < tokens_; ++b) {
                const double y = outputs(i, a * tokens_ + b), mirror = outputs(i, b * tokens_ + a);
                if (std::abs(y - mirror) > output_tolerance * (1 + std::abs(y)))
                    throw_invalid(output_title("output", i, a),
                                  fmt::format("symmetric, {} like its mirror", mirror), y);
            }
        }
    }
}

Eigen::VectorXd Linear::observation_variance(double variance) const {
    return (variance + label_noise_ * scale_.array().square()).matrix();
}

void Linear::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
                   Eigen::Ref<Eigen::VectorXd> log_z) const {
    const Eigen::VectorXd spread = observation_variance(variance(0, 0));
    const double constant = 0.5 * (2 * std::numbers::pi * spread.array()).log().sum();
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        double squares = 0;
        for (int a = 0; a < tokens_; ++a) {
            for (int b = a; b < tokens_; ++b) {
                const int p = pair_index(a, b, tokens_);
                const double y = 0.5 * (outputs(i, a * tokens_ + b) + outputs(i, b * tokens_ + a));
                const double residual = scale_[p] * y - omega(i, p);
                g(i, p) = residual / spread[p];
                squares += residual * g(i, p);
            }
        }
        if (log_z.size() > 0) log_z[i] = -0.5 * squares - constant;
    }
}

void Linear::predict(const ConstRowsRef& omega, const Overlap&, RowsRef prediction) const {
    Linear(tokens_, 0).draw(omega, 0, 0, prediction);  // the output is linear in htilde
}

Eigen::MatrixXd Linear::score_slope(const ConstRowsRef&, const ConstRowsRef&, const Overlap& variance) const {
    return (-observation_variance(variance(0, 0)).cwiseInverse()).asDiagonal();
}

Overlap Linear::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                 const Overlap& variance, RowsRef g) const {
    Eigen::VectorXd no_log_z(0);
    score(outputs, omega, variance, g, no_log_z);
    return linalg::scalar_overlap(static_cast<double>(omega.rows()) *
                                  observation_variance(variance(0, 0)).cwiseInverse().sum());
}

ScorePower Linear::score_power(const OrderParameters& parameters, const Integration&) const {
    const ScalarParameters p(parameters);
    return {linalg::scalar_overlap(observation_variance(p.variance).cwiseInverse().sum()), 0};
}

std::optional<double> Linear::information(const OrderParameters& parameters, const Integration&) const {
    const ScalarParameters p(parameters);
    return -0.5 * ((2 * std::numbers::pi * observation_variance(p.variance).array()).log() + 1).sum();
}

std::optional<int> Linear::exact_observations() const {
    return label_noise_ == 0 ? std::optional(pairs()) : std::nullopt;
}

GeneralizationError Linear::generalization(const OrderParameters& parameters, const Integration&) const {
    // Var(h_ab | omega) = V / tau_ab^2, summed over the T x T entries; the best prediction is omega itself.
    const double error = ScalarParameters(parameters).error * tokens_ * (tokens_ + 1);
    return {error, error, 0};
}

}  // namespace bayesaim::channels
