// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bayesaim/channels/channel.hpp"

namespace bayesaim::channels {

/// The options of all channels; each channel uses some of them.
struct ChannelOptions {
    int tokens = 2;          ///< T
    double beta = 1;         ///< inverse temperature
    double label_noise = 0;  ///< variance
    int layers = 2;          ///< L
    double residual = 1;     ///< c, strength of the residual connections
    Attention attention = Attention::tied;
    int key_tokens = 0;  ///< of cross-attention; 0: as many as tokens
};

struct ChannelEntry {
    std::string name;
    std::string summary;
    /// Names of the options that the channel takes, including the options of an implied prior.
    std::vector<std::string> options;
    std::function<std::unique_ptr<Channel>(const ChannelOptions&)> make;
    std::string prior{};  ///< the prior that the channel implies; empty if any prior may be chosen
};

/// Every channel that can be chosen by name; see core/table.hpp.
const std::vector<ChannelEntry>& channel_table();

/// The geometry of these options.
Geometry geometry_of(const ChannelOptions& options);

/// The names of the channels that gradient descent can learn.
std::vector<std::string> smooth_channels();

/// Throws InvalidArgument with the known names if there is no such channel.
std::unique_ptr<Channel> make_channel(const std::string& name, const ChannelOptions& options);

}  // namespace bayesaim::channels
