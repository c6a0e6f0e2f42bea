// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bayesaim/channels/channel.hpp"

/// What every channel promises, as checks that need no test framework: for a channel of your own.
namespace bayesaim::testing {

/// One line for each promise that is broken; nothing if all is well.
using Violations = std::vector<std::string>;

struct ChannelContractOptions {
    double overlap = 0.9, error = 0.35;  ///< q and Q - q at which samples are drawn
    Eigen::Index samples = 3000;         ///< of the statistical checks, which allow 4 standard errors
    Eigen::Index prediction_samples = 20000;
    std::uint64_t seed = 11;
    /// The outputs have noise of their own, which predictions and generalisation errors leave out.
    bool label_noise = false;
    /// Relative accuracy of the score, where it is a quadrature of limited accuracy.
    double score_accuracy = 1e-9;
};

struct ChannelCheck {
    std::string name;
    std::function<Violations(const channels::Channel&, const ChannelContractOptions&)> run;
};

/// The checks, in an order in which the first violation explains the later ones:
///   score_is_gradient       g = d log Z / d omega, by finite differences
///   slope_is_gradient       score_slope = dg/domega, symmetric
///   score_is_centred        E g = 0 and E g g' = -E dg/domega
///   permutations            permuted tokens permute the score
///   score_power             F = E sum g^2
///   information             dI_out/dq = F, where the information is known
///   generalization          grows with the error; plug-in is worse; half the distance of two draws
///   predictions             have the generalisation error of theory; misses uncorrelated with omega
const std::vector<ChannelCheck>& channel_checks();

/// All of them; each line begins with the name of the check. A channel that throws has broken that promise.
Violations check_channel(const channels::Channel& channel, const ChannelContractOptions& options = {});

}  // namespace bayesaim::testing
