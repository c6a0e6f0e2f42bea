// SPDX-License-Identifier: MIT
#include "bayesaim/options.hpp"

#include <charconv>
#include <functional>
#include <sstream>

#include <fmt/format.h>

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
    std::string known;
    for (const priors::PriorEntry& entry : priors::prior_table()) {
        known += fmt::format("\n  {}: {}", entry.name, entry.summary);
    }
    app.add_option("--prior", prior, "prior on the weight matrix S:" + known)->capture_default_str();
    app.add_option_function<std::string>(
           "--width",
           [this](const std::string& text) {
               widths.clear();
               std::istringstream pieces(text);
               for (std::string piece; std::getline(pieces, piece, ',');)
                   widths.push_back(
                       parse_whole<double>("--width", "a number, or one per layer: 0.4,0.8", piece));
               if (widths.empty()) throw_invalid("--width", "a number", "''");
               width = widths.front();
           },
           "width ratio rho = r/d of the wishart prior; one per layer for several: 0.4,0.8")
        ->default_str("1")
        ->type_name("N");
    app.add_option("--spectrum", spectrum_file,
                   "file of eigenvalues for the prior `spectrum`: one per line, or with a weight");
}

std::unique_ptr<priors::Prior> PriorArguments::make() const {
    if (widths.size() > 1)
        throw_invalid("--width", "one number for one layer", fmt::format("{} numbers", widths.size()));
    return priors::make_prior(prior, {width, spectrum_file});
}

void ChannelArguments::add_to(CLI::App& app) {
    std::string known;
    for (const channels::ChannelEntry& entry : channels::channel_table()) {
        known += fmt::format("\n  {}: {}", entry.name, entry.summary);
    }
    known +=
        "\n  deep-softmax: the softmax attention of the last of --layers layers (theory, threshold, amp)";
    known += "\n  multi-head: softmax of the mean logits of --heads heads";
    app.add_option("--channel", channel, "how the output depends on the attention indices h:" + known)
        ->capture_default_str();
    add_count(app, "--tokens", options.tokens, 1, "number of tokens T");
    add_number(app, "--beta", options.beta, "inverse temperature of the softmax");
    add_number(app, "--label-noise", options.label_noise,
               "variance of the label noise of the linear channel");
    add_count(app, "--layers", layers, 1, "layers L of deep-softmax");
    add_number(app, "--residual", residual, "strength c of the residual connections of deep-softmax");
    add_count(app, "--heads", heads, 1, "heads M of multi-head");
}

std::unique_ptr<channels::Channel> ChannelArguments::make() const {
    if (channel == "multi-head") return channels::make_channel("softmax", options);
    std::vector<std::string> known = channels::channel_names();
    known.insert(known.end(), {"deep-softmax", "multi-head"});
    check_one_of("channel", channel, known);
    if (channel == "deep-softmax")
        throw_invalid("channel", "of one layer for this command", "'deep-softmax'");
    return channels::make_channel(channel, options);
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
    add_number(app, "--damping", options.damping, "weight of the previous omega and V, 0 to 1");
    app.add_flag("--adaptive-damping", options.adaptive_damping, "more damping while the change grows");
    add_count(app, "--iterations", options.max_iterations, 1, "most iterations");
    add_number(app, "--tolerance", options.tolerance, "stop at this change relative to the predicted error");
}

void AmpArguments::describe(Json& configuration) const {
    configuration["damping"] = options.damping;
    configuration["adaptive_damping"] = options.adaptive_damping;
    configuration["max_iterations"] = options.max_iterations;
    configuration["tolerance"] = options.tolerance;
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
