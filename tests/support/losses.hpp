// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/losses/table.hpp"

namespace bayesaim::test {

/// A row of the table of losses on one of its channels.
struct LossCase {
    std::string loss, channel;
    int tokens;
    double beta, label_noise;

    std::unique_ptr<channels::Channel> make_channel() const {
        return channels::make_channel(channel, {.tokens = tokens, .beta = beta, .label_noise = label_noise});
    }
    std::unique_ptr<losses::Loss> make_loss() const { return losses::make_loss(loss, *make_channel()); }
    std::string title() const {
        return fmt::format("{} on {}, {} tokens, beta {}, label noise {}", loss, channel, tokens, beta,
                           label_noise);
    }
};

/// Every row of the table, on every channel that it names.
inline std::vector<LossCase> loss_cases(const std::vector<int>& tokens, const std::vector<double>& betas) {
    std::vector<LossCase> cases;
    for (const losses::LossEntry& entry : losses::loss_table()) {
        for (const std::string& channel : entry.channels) {
            for (const int count : tokens) {
                if (channel == "linear") {
                    for (const double noise : {0.0, 0.5})
                        cases.push_back({entry.name, channel, count, 1, noise});
                } else {
                    for (const double beta : betas) cases.push_back({entry.name, channel, count, beta, 0});
                }
            }
        }
    }
    return cases;
}

/// h, T x T, of the K pairs htilde = tau h.
inline Eigen::MatrixXd square_of_pairs(const Eigen::VectorXd& pairs, int tokens) {
    Eigen::MatrixXd h(tokens, tokens);
    for (int a = 0, p = 0; a < tokens; ++a) {
        for (int b = a; b < tokens; ++b, ++p)
            h(a, b) = h(b, a) = a == b ? pairs[p] : pairs[p] / std::numbers::sqrt2;
    }
    return h;
}

/// ell by its definition. The logits are those of the teacher's own indices, not of the outputs.
inline double loss_by_definition(const LossCase& of, const Eigen::VectorXd& outputs,
                                 const Eigen::VectorXd& teacher, const Eigen::VectorXd& z) {
    const int t = of.tokens;
    const Eigen::MatrixXd h = square_of_pairs(z, t);
    const Eigen::MatrixXd y = outputs.reshaped<Eigen::RowMajor>(t, t);
    if (of.channel == "linear") return 0.5 * (y - h).squaredNorm();
    Eigen::MatrixXd e = h - square_of_pairs(teacher, t);
    if (of.loss == "logit") return 0.5 * (e.array() - e.mean()).square().sum();
    if (of.loss == "row-logit") return 0.5 * (e.colwise() - e.rowwise().mean()).squaredNorm();
    double sum = 0;
    for (int a = 0; a < t; ++a) {
        const Eigen::ArrayXd logits = of.beta * h.row(a).transpose().array(), log_y = y.row(a).transpose();
        const Eigen::ArrayXd log_p =
            logits - logits.maxCoeff() - std::log((logits - logits.maxCoeff()).exp().sum());
        sum += of.loss == "cross-entropy" ? (log_y.exp() * (log_y - log_p)).sum()
                                          : 0.5 * (log_y.exp() - log_p.exp()).square().sum();
    }
    return sum;
}

/// Rows of (omega, htilde*) with covariance 2 [[q, m], [m, Q]] in each pair, and outputs.
struct LossSamples {
    channels::Rows omega, teacher, outputs;
};
inline LossSamples loss_samples(const channels::Channel& channel, const losses::Alignment& at,
                                Eigen::Index count, std::uint64_t seed) {
    const Eigen::Index pairs = channel.pairs();
    LossSamples result{channels::Rows(count, pairs), channels::Rows(count, pairs),
                       channels::Rows(count, channel.outputs())};
    const double shared = at.overlap / at.self_overlap,
                 rest = std::sqrt(2 * (at.total - shared * at.overlap));
    Eigen::VectorXd z(2 * pairs);
    for (Eigen::Index i = 0; i < count; ++i) {
        RandomStream(seed, Purpose::tokens, static_cast<std::uint64_t>(i))
            .fill_normal({z.data(), static_cast<std::size_t>(z.size())});
        result.omega.row(i) = std::sqrt(2 * at.self_overlap) * z.head(pairs).transpose();
        result.teacher.row(i) = shared * result.omega.row(i) + rest * z.tail(pairs).transpose();
    }
    channel.draw(result.teacher, seed, 0, result.outputs);
    return result;
}

}  // namespace bayesaim::test
