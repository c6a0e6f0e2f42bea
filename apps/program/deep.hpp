// SPDX-License-Identifier: MIT
#pragma once
#include <string>

#include "program/options.hpp"

/// The commands `theory` and `threshold` for channels of several layers.
namespace bayesaim::program {

struct DeepArguments {
    const ChannelArguments& channel;
    const PriorArguments& prior;
    const RunArguments& run;
    const OutputArguments& output;
    std::string alpha;
};

int run_deep_theory(const DeepArguments& arguments, const IntegrationArguments& integration, int trajectory);
int run_deep_threshold(const DeepArguments& arguments);

}  // namespace bayesaim::program
