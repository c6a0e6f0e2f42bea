// SPDX-License-Identifier: MIT
#pragma once
#include <string>

#include "bayesaim/options.hpp"

/// The commands `theory`, `threshold` and `amp` for channels of several layers (--channel deep-softmax).
namespace bayesaim::program {

/// Whether the channel has several layers.
bool is_deep(const ChannelArguments& channel);

struct DeepArguments {
    const ChannelArguments& channel;
    const PriorArguments& prior;
    const RunArguments& run;
    const OutputArguments& output;
    std::string alpha;
};

int run_deep_theory(const DeepArguments& arguments, const IntegrationArguments& integration, int trajectory);
int run_deep_threshold(const DeepArguments& arguments);

struct DeepAmpArguments {
    int dim = 100, seeds = 1;
    const AmpArguments& amp;
    bool damping_given = false, tolerance_given = false;  ///< otherwise as deep AMP has them
};
int run_deep_amp(const DeepArguments& arguments, const DeepAmpArguments& amp);

}  // namespace bayesaim::program
