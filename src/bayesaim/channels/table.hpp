// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bayesaim/channels/channel.hpp"

namespace bayesaim::channels {

/// What a channel chosen by name may need.
struct ChannelOptions {
    int tokens = 2;          ///< T
    double beta = 1;         ///< inverse temperature, softmax
    double label_noise = 0;  ///< variance, linear
};

struct ChannelEntry {
    std::string name;
    std::string summary;
    std::function<std::unique_ptr<Channel>(const ChannelOptions&)> make;
};

/// Every channel that can be chosen by name: help texts, Python and the contract tests iterate over this.
const std::vector<ChannelEntry>& channel_table();

std::vector<std::string> channel_names();

/// Throws InvalidArgument with the known names when there is no such channel.
std::unique_ptr<Channel> make_channel(const std::string& name, const ChannelOptions& options);

}  // namespace bayesaim::channels
