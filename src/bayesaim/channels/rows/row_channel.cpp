// SPDX-License-Identifier: MIT
#include "bayesaim/channels/rows/row_channel.hpp"

#include <algorithm>
#include <numbers>

#include <fmt/format.h>

#include "bayesaim/channels/expectations/winning_probability.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {

RowChannel::RowChannel(std::string_view channel, const Geometry& geometry, int shortest)
    : geometry_(geometry) {
    if (geometry.symmetric())
        throw InvalidArgument(fmt::format("{} channel: rows of tied attention are not independent", channel));
    check_between(fmt::format("{} channel: tokens", channel), geometry.queries, 1, max_tokens);
    check_between(fmt::format("{} channel: key tokens", channel), geometry.keys, 1, max_tokens);
    if (geometry.row_length(geometry.queries - 1) < shortest) {
        const int hidden = geometry.attention == Attention::masked ? 1 : 0;
        throw_invalid(fmt::format("{} channel, {} attention: {}", channel, to_string(geometry.attention),
                                  geometry.separate_keys() ? "key tokens" : "tokens"),
                      fmt::format("at least {}{}", shortest + hidden,
                                  shortest == 2 ? ": a row of one entry tells nothing" : ""),
                      geometry.keys);
    }
    for (int a = 0; a < geometry.queries; ++a) {
        rows_.push_back({entries(), geometry.row_length(a), -1});
        for (int b = 0; b < geometry.keys; ++b) {
            if (!geometry.sees(a, b)) continue;
            if (geometry.parts() == 2 && a == b) rows_.back().diagonal = entries() - rows_.back().first;
            places_.push_back(a * geometry.keys + b);
        }
    }
}

std::vector<std::pair<std::string, double>> RowChannel::parameters() const {
    std::vector<std::pair<std::string, double>> list = {{"tokens", geometry_.queries}};
    if (geometry_.separate_keys()) list.emplace_back("key_tokens", geometry_.keys);
    return list;
}

RowChannel::Spread RowChannel::spread(const Overlap& variance) const {
    const double v = variance(0, 0);
    if (one_part()) return {v, v, 0};
    return {v, 0.5 * (v + variance(1, 1)), 0.5 * (v - variance(1, 1))};
}

ConstRowsRef RowChannel::entries_of(const ConstRowsRef& index, Rows& storage) const {
    if (one_part()) return index;
    storage.resize(index.rows(), entries());
    const int pairs = geometry_.pairs();
    for (int e = 0; e < entries(); ++e) {
        const int a = place(e) / geometry_.keys, b = place(e) % geometry_.keys, p = geometry_.pair(a, b);
        if (a == b) {
            storage.col(e) = index.col(p);
        } else {
            storage.col(e) = (index.col(p) + (a < b ? 1 : -1) * index.col(pairs + p)) / std::numbers::sqrt2;
        }
    }
    return storage;
}

void RowChannel::to_components(const Rows& entries_g, RowsRef g) const {
    const int pairs = geometry_.pairs();
    g.setZero();
    for (int e = 0; e < entries(); ++e) {
        const int a = place(e) / geometry_.keys, b = place(e) % geometry_.keys, p = geometry_.pair(a, b);
        if (a == b) {
            g.col(p) = entries_g.col(e);
        } else {
            g.col(p) += entries_g.col(e) / std::numbers::sqrt2;
            g.col(pairs + p) += (a < b ? 1 : -1) * entries_g.col(e) / std::numbers::sqrt2;
        }
    }
}

Overlap RowChannel::power(double diagonal, double other, double product) const {
    if (one_part()) return linalg::scalar_overlap(diagonal + other);
    Overlap result = linalg::zero_overlap(2);
    result(0, 0) = diagonal + 0.5 * (other + product);
    result(1, 1) = 0.5 * (other - product);
    // A causal row sees h_ab, a > b, and not h_ba.
    if (!coupled()) result(0, 1) = result(1, 0) = -0.5 * other;
    return result;
}

RowChannel::Moments RowChannel::row_moments(const OrderParameters& parameters) const {
    check_parameters(parameters, components());
    const auto mean = [&](const Overlap& c) { return one_part() ? c(0, 0) : 0.5 * (3 * c(0, 0) + c(1, 1)); };
    const double overlap = mean(parameters.overlap), error = mean(parameters.error);
    return {overlap + error, overlap, error};
}

int RowChannel::informative_rows() const {
    return static_cast<int>(std::ranges::count_if(rows_, [](const Row& row) { return row.length > 1; }));
}

void RowChannel::predict_rows(const std::function<WinningProbability(int)>& law, double scale,
                              const ConstRowsRef& omega, RowsRef prediction) const {
    Rows storage;
    const ConstRowsRef h = entries_of(omega, storage);
    Eigen::VectorXd mean, probability;
    prediction.setZero();
    std::optional<WinningProbability> noise;
    for (const Row& row : rows_) {
        if (!noise || row.length != mean.size()) noise.emplace(law(row.length));
        mean.resize(row.length);
        probability.resize(row.length);
        for (Eigen::Index i = 0; i < h.rows(); ++i) {
            mean = scale * h.row(i).segment(row.first, row.length);
            noise->evaluate(mean.data(), std::max(row.diagonal, 0), probability.data());
            for (int k = 0; k < row.length; ++k) prediction(i, place(row.first + k)) = probability[k];
        }
    }
}

}  // namespace bayesaim::channels
