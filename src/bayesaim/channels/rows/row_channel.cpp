// SPDX-License-Identifier: MIT
#include "bayesaim/channels/rows/row_channel.hpp"

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
    if (geometry.row_length() < shortest) {
        const bool masked = geometry.attention == Attention::masked;
        throw_invalid(fmt::format("{} channel, {} attention: {}", channel, to_string(geometry.attention),
                                  masked ? "tokens" : "key tokens"),
                      fmt::format("at least {}{}", shortest + (masked ? 1 : 0),
                                  shortest == 2 ? ": a row of one entry tells nothing" : ""),
                      geometry.keys);
    }
    for (int a = 0; a < geometry.queries; ++a) {
        for (int b = 0; b < geometry.keys; ++b) {
            if (geometry.sees(a, b)) places_.push_back(a * geometry.keys + b);
        }
    }
}

std::vector<std::pair<std::string, double>> RowChannel::parameters() const {
    std::vector<std::pair<std::string, double>> list = {{"tokens", geometry_.queries}};
    if (geometry_.separate_keys()) list.emplace_back("key_tokens", geometry_.keys);
    return list;
}

void RowChannel::predict_rows(WinningProbability law, double scale, const ConstRowsRef& omega,
                              RowsRef prediction) const {
    Eigen::VectorXd mean(length()), probability(length());
    prediction.setZero();
    for (Eigen::Index i = 0; i < omega.rows(); ++i) {
        for (int a = 0; a < rows(); ++a) {
            mean = scale * omega.row(i).segment(a * length(), length());
            law.evaluate(mean.data(), 0, probability.data());
            for (int k = 0; k < length(); ++k) prediction(i, place(a * length() + k)) = probability[k];
        }
    }
}

}  // namespace bayesaim::channels
