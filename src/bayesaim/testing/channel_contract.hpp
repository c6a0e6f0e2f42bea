// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "bayesaim/channels/channel.hpp"

/// Checks of the promises of a channel, also for users' channels; they need no test framework.
namespace bayesaim::testing {

/// One line for each broken promise.
using Violations = std::vector<std::string>;

struct ChannelContractOptions {
    /// Diagonals of q and Q - q at which samples are drawn; layers are correlated.
    double overlap = 0.9, error = 0.35;
    Eigen::Index samples = 3000;  ///< of the statistical checks, which allow 4 standard errors
    Eigen::Index prediction_samples = 20000;
    std::uint64_t seed = 11;
    /// Outputs have label noise, which predictions and generalisation errors exclude.
    bool label_noise = false;
    /// Relative accuracy of the score; larger for a quadrature of limited accuracy.
    double score_accuracy = 1e-9;
};

struct ChannelCheck {
    std::string name;
    std::function<Violations(const channels::Channel&, const ChannelContractOptions&)> run;
};

/// The checks, in an order in which the first violation explains the later ones:
///   score_is_gradient       g = d log Z / d omega, by finite differences
///   slope_is_gradient       score_slope = dg/domega, symmetric
///   slope_sum               score_with_slope gives the score, and the sum of -dg/domega
///   score_is_centred        E g = 0 and E g g' = -E dg/domega
///   permutations            permuted tokens permute the score
///   score_power             F = E sum g g'
///   information             dI_out/dq = F, where the information is known
///   generalization          grows with the error; plug-in is worse; half the distance of two draws
///   predictions             have the generalisation error of theory; misses uncorrelated with omega
const std::vector<ChannelCheck>& channel_checks();

/// The lines of one check for the user: each begins with the name of the check. Lines that differ only in
/// numbers are one, the first, with their count.
Violations summary(const std::string& check, const Violations& lines);

/// Runs checks of a channel or a prior. An exception breaks the promise.
template <class Check, class Subject, class Options>
Violations run_checks(const std::vector<Check>& checks, const Subject& subject, const Options& options) {
    Violations all;
    for (const Check& check : checks) {
        try {
            const Violations lines = summary(check.name, check.run(subject, options));
            all.insert(all.end(), lines.begin(), lines.end());
        } catch (const std::exception& error) {
            all.push_back(check.name + ": " + error.what());
        }
    }
    return all;
}

/// Runs all checks.
Violations check_channel(const channels::Channel& channel, const ChannelContractOptions& options = {});

}  // namespace bayesaim::testing
