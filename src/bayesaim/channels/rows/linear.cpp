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
    Eigen::VectorXd noise = Eigen::VectorXd::Zero(pairs());
    outputs.setZero();
    for (Eigen::Index i = 0; i < index.rows(); ++i) {
        if (label_noise_ > 0) {
            RandomStream(seed, Purpose::label_noise, first_sample + static_cast<std::uint64_t>(i))
                .fill_normal({noise.data(), static_cast<std::size_t>(noise.size())});
        }
        for (int p = 0; p < index.cols(); ++p)
            outputs(i, place(p)) = index(i, p) + std::sqrt(label_noise_) * noise[p];
    }
}

void RowLinear::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                      RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    const double spread = variance(0, 0) + label_noise_,
                 constant = 0.5 * pairs() * std::log(2 * std::numbers::pi * spread);
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        for (int p = 0; p < omega.cols(); ++p) g(i, p) = (outputs(i, place(p)) - omega(i, p)) / spread;
        if (log_z.size() > 0) log_z[i] = -0.5 * spread * g.row(i).squaredNorm() - constant;
    }
}

void RowLinear::predict(const ConstRowsRef& omega, const Overlap&, RowsRef prediction) const {
    RowLinear(geometry(), 0).draw(omega, 0, 0, prediction);  // the output is linear in h
}

Eigen::MatrixXd RowLinear::score_slope(const ConstRowsRef&, const ConstRowsRef&,
                                       const Overlap& variance) const {
    return -Eigen::MatrixXd::Identity(pairs(), pairs()) / (variance(0, 0) + label_noise_);
}

Overlap RowLinear::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                    const Overlap& variance, RowsRef g) const {
    Eigen::VectorXd no_log_z(0);
    score(outputs, omega, variance, g, no_log_z);
    return linalg::scalar_overlap(static_cast<double>(omega.size()) / (variance(0, 0) + label_noise_));
}

ScorePower RowLinear::score_power(const OrderParameters& parameters, const Integration&) const {
    return {linalg::scalar_overlap(pairs() / (scalars(parameters).variance + label_noise_)), 0};
}

std::optional<double> RowLinear::information(const OrderParameters& parameters, const Integration&) const {
    return -0.5 * pairs() *
           (std::log(2 * std::numbers::pi * (scalars(parameters).variance + label_noise_)) + 1);
}

std::optional<int> RowLinear::exact_observations() const {
    return label_noise_ == 0 ? std::optional(pairs()) : std::nullopt;
}

GeneralizationError RowLinear::generalization(const OrderParameters& parameters, const Integration&) const {
    const double error = pairs() * scalars(parameters).variance;
    return {error, error, 0};
}

}  // namespace bayesaim::channels
