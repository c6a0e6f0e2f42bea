// SPDX-License-Identifier: MIT
#include "bayesaim/model/model.hpp"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bayesaim/core/table.hpp"
#include "bayesaim/core/text.hpp"

namespace bayesaim::model {
namespace {

constexpr const char* counts[] = {"tokens", "key_tokens", "layers", "heads", "atoms", "bumps"};

/// Counts become whole numbers.
Value parameter(const std::string& name, double value) {
    const bool whole = std::find(std::begin(counts), std::end(counts), name) != std::end(counts);
    return whole ? Value(static_cast<std::int64_t>(value)) : Value(value);
}

const channels::ChannelEntry& channel_entry(const ModelOptions& options) {
    return find_row(channels::channel_table(), "channel", options.channel);
}

/// The row of the prior that the channel or untied attention implies, or else of the chosen prior.
const priors::PriorEntry& prior_entry(const ModelOptions& options) {
    std::string implied = channel_entry(options).prior;
    const bool tied = options.channel_options.attention == channels::Attention::tied;
    if (!tied && options.prior == ModelOptions{}.prior) implied = "bilinear";
    const auto& chosen = find_row(priors::prior_table(), "prior", options.prior);
    if (implied.empty() || implied == chosen.name) return chosen;
    if (chosen.name != ModelOptions{}.prior) {
        throw InvalidArgument(
            fmt::format("prior {} cannot be combined with channel {}", chosen.name, options.channel));
    }
    return find_row(priors::prior_table(), "prior", implied);
}

int count_of(const std::string& name, const Value& value) {
    const double number = number_of(name, value);
    constexpr double most = 1e6;
    if (number != std::floor(number) || std::abs(number) > most)
        throw_invalid(name, fmt::format("a whole number up to {:.0f}", most), number);
    return static_cast<int>(number);
}

/// A number, a list of numbers, or their text "0.4,0.8".
std::vector<double> numbers_of(const std::string& name, const Value& value) {
    std::vector<double> numbers;
    if (const auto* list = value.as<Value::List>()) {
        for (const Value& item : *list) numbers.push_back(number_of(name, item));
    } else if (const auto* text = value.as<std::string>()) {
        for (const std::string_view word : split(*text, ',')) {
            const auto number = parse_number<double>(word);
            if (!number)
                throw_invalid(name, "a number, or one for each layer: 0.4,0.8", fmt::format("'{}'", *text));
            numbers.push_back(*number);
        }
    } else {
        numbers.push_back(number_of(name, value));
    }
    return numbers;
}

/// A number, or that of each layer if they are the same.
double common_number_of(const std::string& name, const Value& value) {
    const std::vector<double> numbers = numbers_of(name, value);
    for (const double number : numbers) {
        if (number != numbers.front()) throw_invalid(name, "the same number for all layers", number);
    }
    return numbers.empty() ? number_of(name, value) : numbers.front();
}

std::string text_of(const std::string& name, const Value& value) {
    if (const auto* text = value.as<std::string>()) return *text;
    throw_invalid(name, "a text", number_of(name, value));
}

}  // namespace

Model::Model(std::shared_ptr<const channels::Channel> channel,
             std::vector<std::shared_ptr<const priors::Prior>> priors, std::string spectrum)
    : channel_(std::move(channel)), priors_(std::move(priors)), spectrum_(std::move(spectrum)) {
    if (priors_.size() != static_cast<std::size_t>(channel_->layers())) {
        throw InvalidArgument(fmt::format("channel {} has {} layer{}, got {} prior{}", channel_->name(),
                                          channel_->layers(), channel_->layers() == 1 ? "" : "s",
                                          priors_.size(), priors_.size() == 1 ? "" : "s"));
    }
    const channels::Geometry geometry = channel_->geometry();
    for (const auto& prior : priors_) {
        if (prior->symmetric() != geometry.symmetric()) {
            throw InvalidArgument(
                fmt::format("prior {} has {} weights, {} attention needs {} ones (prior {})", prior->name(),
                            prior->symmetric() ? "symmetric" : "general", to_string(geometry.attention),
                            prior->symmetric() ? "general" : "symmetric",
                            prior->symmetric() ? "bilinear, ginibre or spectrum"
                                               : "wishart, wigner, power-law or spectrum"));
        }
        if (prior->law().aspect() != 1 && !geometry.separate_keys())
            throw InvalidArgument(fmt::format(
                "aspect must be 1 with {} attention, whose queries and keys are the same tokens, got {:g}",
                to_string(geometry.attention), prior->law().aspect()));
        pointers_.push_back(prior.get());
        laws_.push_back(&prior->law());
    }
}

Model make_model(const ModelOptions& options) {
    std::shared_ptr<const channels::Channel> channel =
        channels::make_channel(options.channel, options.channel_options);
    const priors::PriorEntry& prior = prior_entry(options);
    const auto layers = static_cast<std::size_t>(channel->layers());
    std::vector<double> widths = options.widths;
    if (widths.size() == 1) widths.resize(layers, widths.front());
    if (widths.size() != layers) {
        throw_invalid(
            "width",
            layers == 1 ? "one number" : fmt::format("one number, or one for each of the {} layers", layers),
            fmt::format("{} numbers", widths.size()));
    }
    std::vector<std::shared_ptr<const priors::Prior>> priors;
    for (std::size_t l = 0; l < layers; ++l) {
        if (l > 0 && widths[l] == widths[l - 1]) {
            priors.push_back(priors.back());
        } else {
            priors.push_back(prior.make({.width = widths[l],
                                         .spectrum = options.spectrum,
                                         .heads = options.heads,
                                         .aspect = options.aspect,
                                         .scale = options.scale,
                                         .exponent = options.exponent,
                                         .cutoff = options.cutoff,
                                         .symmetric = channel->geometry().symmetric()}));
        }
    }
    return {std::move(channel), std::move(priors), takes(prior, "spectrum") ? options.spectrum : ""};
}

Record describe(const channels::Channel& channel) {
    Record record = {{"channel", channel.name()}};
    if (!channel.geometry().symmetric())
        record["attention"] = std::string(to_string(channel.geometry().attention));
    for (const auto& [name, value] : channel.parameters()) record[name] = parameter(name, value);
    return record;
}

Record describe(const priors::Prior& prior) {
    Record record = {{"prior", prior.name()}};
    for (const auto& [name, value] : prior.parameters()) record[name] = parameter(name, value);
    return record;
}

Record describe(const Model& model) {
    Record record;
    Value::List names;
    for (const priors::Prior* prior : model.priors()) names.emplace_back(prior->name());
    const bool alike = std::ranges::all_of(names, [&](const Value& name) { return name == names[0]; });
    record["prior"] = alike ? names[0] : Value(names);
    if (!model.spectrum().empty()) record["spectrum"] = model.spectrum();
    if (model.layers() == 1) {
        record.update(describe(model.prior(0)));
    } else {
        // A parameter that a layer's prior lacks is an absent Value in the list.
        for (std::size_t layer = 0; layer < names.size(); ++layer) {
            for (const auto& [name, value] : model.prior(layer).parameters()) {
                const auto* known = record[name].as<Value::List>();
                Value::List each = known != nullptr ? *known : Value::List(names.size());
                each[layer] = parameter(name, value);
                record[name] = std::move(each);
            }
        }
    }
    record.update(describe(model.channel()));
    return record;
}

void read_options(const Record& description, ModelOptions& options) {
    const auto read = [&](const char* name, auto& option, auto convert) {
        if (const Value* value = description.find(name))
            option = convert(fmt::format("attribute {}", name), *value);
    };
    channels::ChannelOptions& channel = options.channel_options;
    read("aspect", options.aspect, number_of);
    read("attention", channel.attention, [](const std::string& name, const Value& value) {
        return channels::parse_attention(name, text_of(name, value));
    });
    read("beta", channel.beta, number_of);
    read("channel", options.channel, text_of);
    read("cutoff", options.cutoff, common_number_of);
    read("exponent", options.exponent, common_number_of);
    read("heads", options.heads, count_of);
    read("key_tokens", channel.key_tokens, count_of);
    read("label_noise", channel.label_noise, number_of);
    read("layers", channel.layers, count_of);
    read("prior", options.prior, text_of);
    read("residual", channel.residual, number_of);
    read("scale", options.scale, common_number_of);
    read("spectrum", options.spectrum, text_of);
    read("tokens", channel.tokens, count_of);
    read("width", options.widths, numbers_of);
}

bool is_option(std::string_view name) {
    return name == "prior" || name == "channel" || name == "atoms" || name == "bumps" ||
           !takers_of(channels::channel_table(), name).empty() ||
           !takers_of(priors::prior_table(), name).empty();
}

bool takes_option(const ModelOptions& options, std::string_view name) {
    return takes(channel_entry(options), name) || takes(prior_entry(options), name);
}

std::string owners_of_option(std::string_view name) {
    const auto channels = takers_of(channels::channel_table(), name);
    const auto owners = channels.empty() ? takers_of(priors::prior_table(), name) : channels;
    std::string text = channels.empty() ? "prior " : "channel ";
    for (std::size_t i = 0; i < owners.size(); ++i)
        text += (i == 0 ? "" : i + 1 == owners.size() ? " or " : ", ") + owners[i];
    return text;
}

}  // namespace bayesaim::model
