// SPDX-License-Identifier: MIT
#include "bayesaim/channels/unequal_lengths.hpp"

#include <cmath>
#include <numbers>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {

bool UnequalLengths::handles(const Channel& inside) {
    return inside.layers() == 1 && inside.smooth_output() && inside.geometry().parts() == 1;
}

UnequalLengths::UnequalLengths(std::shared_ptr<const Channel> inside, double trace)
    : inside_(std::move(inside)), trace_(trace) {
    if (!handles(*inside_)) throw_unavailable("correction of unequal lengths", "for this channel");
    softmax_ = inside_->smooth_output()->softmax;
    beta_ = inside_->smooth_output()->beta;
    for (const auto& [name, value] : inside_->parameters()) {
        if (name == "label_noise") noise_ = value;
    }
    const Geometry geometry = inside_->geometry();
    for (int a = 0; a < geometry.queries; ++a) {
        const int first = static_cast<int>(pairs_.size());
        for (int b = geometry.symmetric() ? a : 0; b < geometry.keys; ++b) {
            if (geometry.sees(a, b)) pairs_.emplace_back(a, b);
        }
        if (!geometry.symmetric()) groups_.emplace_back(first, static_cast<int>(pairs_.size()) - first);
    }
    if (geometry.symmetric()) groups_.emplace_back(0, static_cast<int>(pairs_.size()));
}

void UnequalLengths::draw(const ConstRowsRef&, std::uint64_t, std::uint64_t, RowsRef) const {
    throw_unavailable("drawing of outputs", "for tokens of unequal lengths");
}

Eigen::VectorXd UnequalLengths::scales(const ConstRowsRef& outputs, Eigen::Index sample) const {
    const Geometry geometry = inside_->geometry();
    const auto lengths = outputs.row(sample).tail(outputs.cols() - geometry.outputs());
    const int first_key = geometry.separate_keys() ? geometry.queries : 0;
    Eigen::VectorXd u(static_cast<Eigen::Index>(pairs_.size()));
    for (std::size_t p = 0; p < pairs_.size(); ++p) {
        const auto [a, b] = pairs_[p];
        const double tau = geometry.symmetric() && a != b ? std::numbers::sqrt2 : 1;
        u[static_cast<Eigen::Index>(p)] = tau / std::sqrt(lengths[a] * lengths[first_key + b]);
    }
    return u;
}

void UnequalLengths::score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                           RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const {
    const Geometry geometry = inside_->geometry();
    const double v = variance(0, 0);
    const int keys = geometry.keys, last = keys - 1;
    const bool tied = geometry.symmetric();
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        const Eigen::VectorXd u = scales(outputs, i);
        const auto y = [&](int a, int b) { return outputs(i, a * keys + b); };
        const auto phi = [&](int a, int b) { return y(a, b) - y(a, last); };
        double log_likelihood = 0;
        for (std::size_t p = 0; p < pairs_.size(); ++p) {
            const auto [a, b] = pairs_[p];
            const auto column = static_cast<Eigen::Index>(p);
            double h = tied ? 0.5 * (y(a, b) + y(b, a)) : y(a, b);
            if (softmax_ && tied) h = 0.5 * (phi(a, b) + phi(last, a) + phi(b, a) + phi(last, b));
            if (softmax_) h /= beta_;
            if (tied && a == b) h -= (outputs(i, geometry.outputs() + a) - 1) * trace_;
            g(i, column) = u[column] * h - omega(i, column);
        }
        if (softmax_) {
            for (const auto& [first, count] : groups_) {
                auto r = g.row(i).segment(first, count);
                const auto along = u.segment(first, count).transpose();
                r -= along * (r.dot(along) / along.squaredNorm());
            }
            log_likelihood = -0.5 * g.row(i).squaredNorm() / v -
                             0.5 * static_cast<double>(pairs_.size() - groups_.size()) *
                                 std::log(2 * std::numbers::pi * v);
            g.row(i) /= v;
        } else {
            for (Eigen::Index p = 0; p < u.size(); ++p) {
                const double spread = v + u[p] * u[p] * noise_, r = g(i, p);
                g(i, p) = r / spread;
                log_likelihood -= 0.5 * (r * r / spread + std::log(2 * std::numbers::pi * spread));
            }
        }
        if (log_z.size() > 0) log_z[i] = log_likelihood;
    }
}

Eigen::MatrixXd UnequalLengths::score_slope(const ConstRowsRef& output, const ConstRowsRef&,
                                            const Overlap& variance) const {
    const Eigen::VectorXd u = scales(output, 0);
    const double v = variance(0, 0);
    if (!softmax_) return (-(v + noise_ * u.array().square()).inverse()).matrix().asDiagonal();
    Eigen::MatrixXd projection = Eigen::MatrixXd::Identity(u.size(), u.size());
    for (const auto& [first, count] : groups_) {
        const Eigen::VectorXd along = u.segment(first, count);
        projection.block(first, first, count, count) -= along * along.transpose() / along.squaredNorm();
    }
    return -projection / v;
}

Overlap UnequalLengths::score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega,
                                         const Overlap& variance, RowsRef g) const {
    Eigen::VectorXd no_log_z(0);
    score(outputs, omega, variance, g, no_log_z);
    const double v = variance(0, 0);
    double sum = 0;
    if (softmax_) {
        sum = static_cast<double>(omega.rows()) * static_cast<double>(pairs_.size() - groups_.size()) / v;
    } else {
        for (Eigen::Index i = 0; i < omega.rows(); ++i)
            sum += (v + noise_ * scales(outputs, i).array().square()).inverse().sum();
    }
    return linalg::scalar_overlap(sum);
}

}  // namespace bayesaim::channels
