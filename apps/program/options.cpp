// SPDX-License-Identifier: MIT
#include "program/options.hpp"

#include <charconv>
#include <cmath>
#include <functional>
#include <sstream>

#include <fmt/format.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/deep_sequence.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/figures/gnuplot.hpp"
#include "bayesaim/priors/multi_head.hpp"

namespace bayesaim::program {

namespace {

template <class Number>
Number parse_whole(const std::string& name, const std::string& requirement, const std::string& text) {
    Number value{};
    const bool plus = text.starts_with('+') && !text.starts_with("+-");  // from_chars takes no plus sign
    const char *begin = text.data() + (plus ? 1 : 0), *end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc() || stop != end) throw_invalid(name, requirement, fmt::format("'{}'", text));
    return value;
}

template <class Number>
CLI::Option* add_checked(CLI::App& app, const std::string& name, Number& value,
                         const std::string& description,
                         const std::function<Number(const std::string&)>& parse) {
    return app
        .add_option_function<std::string>(
            name, [&value, parse](const std::string& text) { value = parse(text); }, description)
        ->default_str(fmt::format("{}", value))
        ->type_name("N");
}

[[noreturn]] void throw_not_taken(const char* option, const char* kind, const char* owners,
                                  const std::string& chosen) {
    throw_invalid(option, fmt::format("left out unless the {} is {}", kind, owners),
                  fmt::format("it with {}", chosen));
}

}  // namespace

CLI::Option* add_number(CLI::App& app, const std::string& name, double& value,
                        const std::string& description) {
    return add_checked<double>(app, name, value, description, [name](const std::string& text) {
        return parse_whole<double>(name, "a number", text);
    });
}

CLI::Option* add_count(CLI::App& app, const std::string& name, int& value, int lowest,
                       const std::string& description) {
    return add_checked<int>(app, name, value, description, [name, lowest](const std::string& text) {
        const int count = parse_whole<int>(name, "a whole number", text);
        check_at_least(name, count, lowest);
        return count;
    });
}

CLI::Option* add_threads(CLI::App& app, int& threads) {
    return add_checked<int>(app, "--threads", threads,
                            "threads; results do not depend on it (0: one per core)",
                            [](const std::string& text) {
                                const int count = parse_whole<int>("--threads", "a whole number", text);
                                check_between("--threads", count, 0, 1024);
                                return count;
                            });
}

void PriorArguments::add_to(CLI::App& app) {
    command = &app;
    std::string known;
    for (const priors::PriorEntry& entry : priors::prior_table()) {
        known += fmt::format("\n  {}: {}", entry.name, entry.summary);
    }
    app.add_option("--prior", prior, "prior on the weight matrix S:" + known)->capture_default_str();
    app.add_option_function<std::string>(
           "--width", [this](const std::string& text) { set_widths("--width", text); },
           "width ratio rho = r/d of the wishart prior; one per layer for several: 0.4,0.8")
        ->default_str("1")
        ->type_name("N");
    app.add_option("--spectrum", spectrum_file,
                   "file of eigenvalues for the prior `spectrum`: one per line, or with a weight");
}

void PriorArguments::set_widths(const std::string& name, const std::string& text) {
    widths.clear();
    widths_name = name;
    std::istringstream pieces(text);
    for (std::string piece; std::getline(pieces, piece, ',');)
        widths.push_back(parse_whole<double>(name, "a number, or one per layer: 0.4,0.8", piece));
    if (widths.empty()) throw_invalid(name, "a number", "''");
    width = widths.front();
}

std::unique_ptr<priors::Prior> PriorArguments::make() const {
    check_one_of("prior", prior, priors::prior_names());
    for (const auto& [option, owner] :
         {std::pair("--width", "wishart"), std::pair("--spectrum", "spectrum")}) {
        if (command != nullptr && command->count(option) > 0 && prior != owner)
            throw_not_taken(option, "prior", owner, prior);
    }
    if (widths.size() > 1)
        throw_invalid(widths_name, "one number for one layer", fmt::format("{} numbers", widths.size()));
    return priors::make_prior(prior, {width, spectrum_file});
}

void ChannelArguments::add_to(CLI::App& app) {
    command = &app;
    std::string known;
    for (const channels::ChannelEntry& entry : channels::channel_table()) {
        known += fmt::format("\n  {}: {}", entry.name, entry.summary);
    }
    known +=
        "\n  deep-softmax: the softmax attention of the last of --layers layers\n"
        "    (theory, threshold, amp, generate, fit, predict)\n"
        "  deep-seq2seq: the tokens that --layers layers return; two tokens (as deep-softmax)";
    known += "\n  multi-head: softmax of the mean logits of --heads heads";
    app.add_option("--channel", channel, "how the output depends on the attention indices h:" + known)
        ->capture_default_str();
    add_count(app, "--tokens", options.tokens, 1, "number of tokens T");
    add_number(app, "--beta", options.beta, "inverse temperature of the softmax");
    add_number(app, "--label-noise", options.label_noise,
               "variance of the label noise of the linear channel");
    add_count(app, "--layers", layers, 1, "layers L of deep-softmax and deep-seq2seq");
    add_number(app, "--residual", residual,
               "strength c of the residual connections of deep-softmax and deep-seq2seq");
    add_count(app, "--heads", heads, 1, "heads M of multi-head");
}

void ChannelArguments::complete_from(const data::Attributes& attributes) {
    const auto number = [&](const char* option, const char* name, double& value) {
        if (!given(option)) value = data::number_attribute(attributes, name).value_or(value);
    };
    if (!given("--channel")) channel = data::text_attribute(attributes, "channel").value_or(channel);
    number("--beta", "beta", options.beta);
    number("--label-noise", "label_noise", options.label_noise);
    number("--residual", "residual", residual);
    const auto whole = [&](const char* option, const std::string& name, int most, int& value) {
        if (given(option)) return;
        const double count = data::number_attribute(attributes, name).value_or(value);
        if (count != std::floor(count) || std::abs(count) > most)
            throw_invalid("attribute " + name, fmt::format("a whole number up to {}", most), count);
        value = static_cast<int>(count);
    };
    whole("--layers", "layers", linalg::max_layers, layers);
    whole("--heads", "heads", 1000000, heads);
}

std::unique_ptr<channels::Channel> ChannelArguments::make(Layers taken) const {
    std::vector<std::string> known = channels::channel_names();
    known.insert(known.end(), {"deep-softmax", "deep-seq2seq", "multi-head"});
    check_one_of("channel", channel, known);
    if (deep() && taken == Layers::one)
        throw_invalid("channel", "of one layer for this command", fmt::format("'{}'", channel));
    const auto belongs = [&](const char* option, bool to_channel, const char* owner) {
        if (given(option) && !to_channel) throw_not_taken(option, "channel", owner, channel);
    };
    belongs("--layers", deep(), "deep-softmax or deep-seq2seq");
    belongs("--residual", deep(), "deep-softmax or deep-seq2seq");
    belongs("--heads", channel == "multi-head", "multi-head");
    belongs("--label-noise", channel == "linear", "linear");
    belongs("--beta", deep() || channel == "softmax" || channel == "multi-head",
            "softmax, multi-head, deep-softmax or deep-seq2seq");
    if (channel == "deep-softmax")
        return std::make_unique<channels::DeepAttention>(channels::DeepAttentionOptions{
            .layers = layers, .tokens = options.tokens, .beta = options.beta, .residual = residual});
    if (channel == "deep-seq2seq") {
        if (options.tokens != 2) throw_invalid("deep-seq2seq channel: tokens", "2", options.tokens);
        return std::make_unique<channels::DeepSequence>(
            channels::DeepSequenceOptions{.layers = layers, .beta = options.beta, .residual = residual});
    }
    return channels::make_channel(channel == "multi-head" ? "softmax" : channel, options);
}

std::unique_ptr<priors::Prior> make_prior(const PriorArguments& prior, const ChannelArguments& channel) {
    if (channel.channel != "multi-head") return prior.make();
    check_one_of("--prior with --channel multi-head", prior.prior, {"wishart"});
    prior.make();  // checks it
    return std::make_unique<priors::MultiHead>(channel.heads, prior.width);
}

void OutputArguments::add_to(CLI::App& app) {
    app.add_option("--format", format, "table, csv or json")->capture_default_str();
    app.add_option("--output", output, "file to write instead of standard output");
    app.add_flag("--quiet", quiet, "no messages on standard error");
    app.parse_complete_callback([this] { check_one_of("--format", format, {"table", "csv", "json"}); });
}

void OutputArguments::check_writable(const std::string& picture) const {
    if (!picture.empty()) {
        figures::check_picture_name(picture);
        program::check_writable(picture);
    }
    if (!output.empty()) program::check_writable(output);
}

void OutputArguments::publish(const Report& report) const { program::publish(report, format, output); }

void RunArguments::add_to(CLI::App& app) {
    add_checked<std::uint64_t>(
        app, "--seed", seed, "seed of all random numbers", [](const std::string& text) {
            return parse_whole<std::uint64_t>("--seed", "a non-negative whole number", text);
        });
    add_threads(app, threads);
}

std::size_t RunArguments::thread_count() const { return static_cast<std::size_t>(threads); }

void IntegrationArguments::add_to(CLI::App& app) {
    add_count(app, "--integration-points", integration.points, 16,
              "quasi-Monte Carlo points per shift (hardmax with T > 2)");
}

theory::StateEvolutionOptions IntegrationArguments::options(const RunArguments& run, ThreadPool* pool) const {
    theory::StateEvolutionOptions options;
    options.integration = integration;
    options.integration.seed = run.seed;
    options.integration.pool = pool;
    return options;
}

void IntegrationArguments::describe(const channels::Channel& channel, const RunArguments& run,
                                    Json& configuration) const {
    if (!channel.sampled()) return;
    configuration["integration_points"] = integration.points * integration.shifts;
    configuration["seed"] = run.seed;
}

void AmpArguments::add_to(CLI::App& app) {
    command = &app;
    const estimators::DeepAmpOptions deep;
    add_number(
        app, "--damping", options.damping,
        fmt::format("weight of the previous omega and V, 0 to 1 (several layers: of the previous g, {})",
                    deep.damping));
    app.add_flag("--adaptive-damping", options.adaptive_damping, "more damping while the change grows");
    add_count(app, "--iterations", options.max_iterations, 1,
              fmt::format("most iterations (several layers: {})", deep.max_iterations));
    add_number(app, "--tolerance", options.tolerance,
               fmt::format("stop at this change relative to the predicted error (several layers: {})",
                           deep.tolerance));
}

estimators::DeepAmpOptions AmpArguments::deep_options() const {
    if (options.adaptive_damping) throw_invalid("--adaptive-damping", "left out with several layers", "it");
    estimators::DeepAmpOptions result;
    if (command->count("--damping") > 0) result.damping = options.damping;
    if (command->count("--iterations") > 0) result.max_iterations = options.max_iterations;
    if (command->count("--tolerance") > 0) result.tolerance = options.tolerance;
    return result;
}

void AmpArguments::describe(bool deep, Json& configuration) const {
    const auto add = [&](const auto& used) {
        configuration["damping"] = used.damping;
        configuration["max_iterations"] = used.max_iterations;
        configuration["tolerance"] = used.tolerance;
    };
    if (deep) return add(deep_options());
    add(options);
    configuration["adaptive_damping"] = options.adaptive_damping;
}

namespace {

/// Counts as whole numbers.
void add_parameters(const std::vector<std::pair<std::string, double>>& parameters, Json& configuration) {
    for (const auto& [key, value] : parameters) {
        if (key == "tokens" || key == "atoms" || key == "heads" || key == "layers") {
            configuration[key] = static_cast<long long>(value);
        } else {
            configuration[key] = value;
        }
    }
}

}  // namespace

Json describe(const PriorArguments& arguments, const priors::Prior& prior) {
    Json configuration = {{"prior", prior.name()}};
    if (!arguments.spectrum_file.empty()) configuration["spectrum"] = arguments.spectrum_file;
    add_parameters(prior.parameters(), configuration);
    return configuration;
}

void describe(const channels::Channel& channel, Json& configuration) {
    configuration["channel"] = channel.name();
    add_parameters(channel.parameters(), configuration);
}

}  // namespace bayesaim::program
