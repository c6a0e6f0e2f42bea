// SPDX-License-Identifier: MIT
#include "bayesaim/channels/table.hpp"

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {

const std::vector<ChannelEntry>& channel_table() {
    static const std::vector<ChannelEntry> table = {
        {"linear", "y = h with label noise of the given variance",
         [](const ChannelOptions& options) {
             return std::make_unique<Linear>(options.tokens, options.label_noise);
         }},
        {"softmax", "y = softmax(beta h) row by row",
         [](const ChannelOptions& options) {
             return std::make_unique<Softmax>(options.tokens, options.beta);
         }},
        {"hardmax", "y marks the largest h of each row; 2 to 6 tokens",
         [](const ChannelOptions& options) { return std::make_unique<Hardmax>(options.tokens); }},
        {"hardmax-as-printed",
         "hardmax with the paper's printed score, only to reproduce its curve; 2 tokens",
         [](const ChannelOptions& options) { return std::make_unique<HardmaxAsPrinted>(options.tokens); }},
    };
    return table;
}

std::vector<std::string> channel_names() {
    std::vector<std::string> names;
    for (const ChannelEntry& entry : channel_table()) names.push_back(entry.name);
    return names;
}

std::unique_ptr<Channel> make_channel(const std::string& name, const ChannelOptions& options) {
    return channel_table()[check_one_of("channel", name, channel_names())].make(options);
}

}  // namespace bayesaim::channels
