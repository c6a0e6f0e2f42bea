// SPDX-License-Identifier: MIT
#include <cmath>
#include <numbers>

#include "bayesaim/channels/rows/row_channel.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"

namespace bayesaim::channels {

RowLinear::RowLinear(const Geometry& geometry, double label_noise)
    : RowChannel("linear", geometry, 1), label_noise_(label_noise) {
    check_non_negative("linear channel: label noise", label_noise);
}

std::vector<std::pair<std::string, double>> RowLinear::parameters() const {
    auto list = RowChannel::parameters();
    list.emplace_back("label_noise", label_noise_);
    return list;
}

void RowLinear::draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
                     RowsRef outputs) const {
    Rows storage;
    const ConstRowsRef h = entries_of(index, storage);
    Eigen::VectorXd noise = Eigen::VectorXd::Zero(entries());
    outputs.setZero();
    for (Eigen::Index i = 0; i < h.rows(); ++i) {
        if (label_noise_ > 0) {
            RandomStream(seed, Purpose::label_noise, first_sample + static_cast<std::uint64_t>(i))
                .fill_normal({noise.data(), static_cast<std::size_t>(noise.size())});
        }
        for (int e = 0; e < entries(); ++e)
            outputs(i, place(e)) = h(i, e) + std::sqrt(label_noise_) * noise[e];
    }
}

void RowLinear::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                      RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    const Spread v = spread(variance);
    // With noise V_s + D and V_a + D of the parts, the inverse of the covariance acts on r and on its transpose.
    const double symmetric = v.diagonal + label_noise_, antisymmetric = v.other - v.coupling + label_noise_;
    const double along = 0.5 / symmetric + 0.5 / antisymmetric,
                 across = 0.5 / symmetric - 0.5 / antisymmetric;
    double log_determinant = 0;
    if (coupled()) {
        const double t = tokens();
        log_determinant = 0.5 * t * ((t + 1) * std::log(symmetric) + (t - 1) * std::log(antisymmetric));
    } else {
        for (const Row& row : rows()) {
            for (int k = 0; k < row.length; ++k) log_determinant += std::log(v.of(row, k) + label_noise_);
        }
    }
    const double constant = 0.5 * (entries() * std::log(2 * std::numbers::pi) + log_determinant);
    on_entries(omega, g, [&](const ConstRowsRef& h, RowsRef score) {
        for (Eigen::Index i = 0; i < h.rows(); ++i) {
            double square = 0;
            for (const Row& row : rows()) {
                for (int k = 0; k < row.length; ++k) {
                    const int e = row.first + k;
                    const double residual = outputs(i, place(e)) - h(i, e);
                    if (coupled()) {
                        const int a = e / tokens(), transposed = k * tokens() + a;
                        score(i, e) =
                            along * residual + across * (outputs(i, place(transposed)) - h(i, transposed));
                    } else {
                        score(i, e) = residual / (v.of(row, k) + label_noise_);
                    }
                    square += residual * score(i, e);
                }
            }
            if (log_z.size() > 0) log_z[i] = -0.5 * square - constant;
        }
    });
}

void RowLinear::predict(const ConstRowsRef& omega, const Overlap&, RowsRef prediction) const {
    RowLinear(geometry(), 0).draw(omega, 0, 0, prediction);  // the output is linear in h
}

Eigen::MatrixXd RowLinear::score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                       const Overlap& variance) const {
    if (!one_part()) return Channel::score_slope(output, omega, variance);
    return -Eigen::MatrixXd::Identity(pairs(), pairs()) / (variance(0, 0) + label_noise_);
}

Overlap RowLinear::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                    const Overlap& variance, RowsRef g) const {
    Eigen::VectorXd no_log_z(0);
    score(outputs, omega, variance, g, no_log_z);
    return static_cast<double>(omega.rows()) * power_at(variance);
}

/// F, and minus the mean slope, which is the same for all data.
Overlap RowLinear::power_at(const Overlap& variance) const {
    const Spread v = spread(variance);
    const int diagonal = one_part() ? 0 : tokens(), other = entries() - diagonal;
    if (coupled()) {
        Overlap result = linalg::zero_overlap(2);
        result(0, 0) = (diagonal + 0.5 * other) / (variance(0, 0) + label_noise_);
        result(1, 1) = 0.5 * other / (variance(1, 1) + label_noise_);
        return result;
    }
    return power(diagonal / (v.diagonal + label_noise_), other / (v.other + label_noise_));
}

ScorePower RowLinear::score_power(const OrderParameters& parameters, const Integration&) const {
    check_parameters(parameters, components());
    return {power_at(variance_at(parameters)), 0};
}

std::optional<double> RowLinear::information(const OrderParameters& parameters, const Integration&) const {
    if (!one_part()) return std::nullopt;
    return -0.5 * pairs() *
           (std::log(2 * std::numbers::pi * (scalars(parameters).variance + label_noise_)) + 1);
}

std::optional<int> RowLinear::exact_observations() const {
    return one_part() ? observed_combinations() : std::nullopt;
}

std::optional<int> RowLinear::observed_combinations() const {
    return label_noise_ == 0 ? std::optional(entries()) : std::nullopt;
}

GeneralizationError RowLinear::generalization(const OrderParameters& parameters, const Integration&) const {
    check_parameters(parameters, components());
    const Spread v = spread(variance_at(parameters));
    double error = 0;
    for (const Row& row : rows()) {
        for (int k = 0; k < row.length; ++k) error += v.of(row, k);
    }
    return {error, error, 0};
}

}  // namespace bayesaim::channels
