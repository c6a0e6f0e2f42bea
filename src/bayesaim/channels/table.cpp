// SPDX-License-Identifier: MIT
#include "bayesaim/channels/table.hpp"

#include <fmt/format.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/deep_sequence.hpp"
#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/rows/row_channel.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/core/table.hpp"

namespace bayesaim::channels {
namespace {

std::unique_ptr<Channel> make_linear(const ChannelOptions& options) {
    const Geometry geometry = geometry_of(options);
    if (geometry.symmetric()) return std::make_unique<Linear>(options.tokens, options.label_noise);
    return std::make_unique<RowLinear>(geometry, options.label_noise);
}

std::unique_ptr<Channel> make_softmax(const ChannelOptions& options) {
    const Geometry geometry = geometry_of(options);
    if (geometry.symmetric()) return std::make_unique<Softmax>(options.tokens, options.beta);
    return std::make_unique<RowSoftmax>(geometry, options.beta);
}

std::unique_ptr<Channel> make_hardmax(const ChannelOptions& options) {
    const Geometry geometry = geometry_of(options);
    if (geometry.symmetric()) return std::make_unique<Hardmax>(options.tokens);
    return std::make_unique<RowHardmax>(geometry);
}

std::unique_ptr<Channel> make_deep_softmax(const ChannelOptions& options) {
    if (options.layers == 1) return make_softmax(options);  // the same model, in closed form
    return std::make_unique<DeepAttention>(DeepAttentionOptions{.layers = options.layers,
                                                                .tokens = options.tokens,
                                                                .beta = options.beta,
                                                                .residual = options.residual});
}

std::unique_ptr<Channel> make_deep_sequence(const ChannelOptions& options) {
    if (options.tokens != 2) throw_invalid("deep-seq2seq channel: tokens", "2", options.tokens);
    return std::make_unique<DeepSequence>(
        DeepSequenceOptions{.layers = options.layers, .beta = options.beta, .residual = options.residual});
}

}  // namespace

const std::vector<ChannelEntry>& channel_table() {
    static const std::vector<ChannelEntry> table = {
        {"linear",
         "y = h with label noise of the given variance",
         {"tokens", "label_noise", "attention", "key_tokens"},
         make_linear},
        {"softmax",
         "y = softmax(beta h) row by row",
         {"tokens", "beta", "attention", "key_tokens"},
         make_softmax},
        {"hardmax",
         "y marks the largest h of each row; 2 to 6 tokens of tied attention, any number otherwise",
         {"tokens", "attention", "key_tokens"},
         make_hardmax},
        {"hardmax-sampled",
         "hardmax with averages computed anew instead of stored ones, as a check; slow",
         {"tokens"},
         [](const ChannelOptions& options) { return std::make_unique<HardmaxSampled>(options.tokens); }},
        {"hardmax-as-printed",
         "hardmax with the paper's printed score, only to reproduce its curve; 2 tokens",
         {"tokens"},
         [](const ChannelOptions& options) { return std::make_unique<HardmaxAsPrinted>(options.tokens); }},
        {"deep-softmax",
         "the softmax attention of the last of several layers",
         {"tokens", "beta", "layers", "residual"},
         make_deep_softmax},
        {"deep-seq2seq",
         "the tokens that several layers return, each a mixture of those given; 2 tokens",
         {"tokens", "beta", "layers", "residual"},
         make_deep_sequence},
        {"multi-head",
         "softmax of the mean logits of several heads: softmax with the prior multi-head",
         {"tokens", "beta", "heads"},
         make_softmax,
         "multi-head"},
    };
    return table;
}

Geometry geometry_of(const ChannelOptions& options) {
    const bool cross = options.attention == Attention::cross;
    if (options.key_tokens != 0 && !cross)
        throw_inapplicable("key_tokens", "cross-attention",
                           fmt::format("attention is {}", to_string(options.attention)));
    return {options.attention, options.tokens,
            cross && options.key_tokens > 0 ? options.key_tokens : options.tokens};
}

std::vector<std::string> smooth_channels() {
    std::vector<std::string> names;
    for (const ChannelEntry& entry : channel_table()) {
        if (entry.prior.empty() && entry.make({})->smooth_output()) names.push_back(entry.name);
    }
    return names;
}

std::unique_ptr<Channel> make_channel(const std::string& name, const ChannelOptions& options) {
    const ChannelEntry& entry = find_row(channel_table(), "channel", name);
    if (options.attention != Attention::tied && !takes(entry, "attention"))
        throw_invalid(fmt::format("attention of channel {}", name), "tied", to_string(options.attention));
    return entry.make(options);
}

}  // namespace bayesaim::channels
