// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/data/hdf5_file.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/estimators/deep_amp.hpp"
#include "bayesaim/priors/table.hpp"
#include "program/report.hpp"
#include "bayesaim/theory/state_evolution.hpp"

namespace bayesaim::program {

/// --prior, --width, --spectrum
struct PriorArguments {
    std::string prior = "wishart";
    double width = 1;
    std::vector<double> widths = {1};  ///< one per layer, where there are several; the first is `width`
    std::string widths_name = "--width";
    std::string spectrum_file;
    const CLI::App* command = nullptr;

    void add_to(CLI::App& app);
    /// From a number, or one per layer: "0.4,0.8"; messages call it `name`.
    void set_widths(const std::string& name, const std::string& text);
    /// Throws where an option is given that this prior does not have.
    std::unique_ptr<priors::Prior> make() const;
};

/// --channel, --tokens, --beta, --label-noise, --layers, --residual, --heads
struct ChannelArguments {
    std::string channel = "softmax";
    channels::ChannelOptions options;
    int layers = 2;       ///< of deep-softmax and deep-seq2seq
    double residual = 1;  ///< of deep-softmax and deep-seq2seq
    int heads = 2;        ///< of multi-head
    const CLI::App* command = nullptr;

    void add_to(CLI::App& app);
    /// What the command line leaves open is as the attributes of a file say.
    void complete_from(const data::Attributes& attributes);
    bool deep() const { return channel == "deep-softmax" || channel == "deep-seq2seq"; }
    /// Throws where an option is given that this channel does not have, or for several layers where the
    /// command takes one.
    enum class Layers { one, any };
    std::unique_ptr<channels::Channel> make(Layers taken = Layers::one) const;

  private:
    bool given(const char* option) const { return command != nullptr && command->count(option) > 0; }
};

/// --format, --output, --quiet
struct OutputArguments {
    std::string format = "table";
    std::string output;
    bool quiet = false;

    void add_to(CLI::App& app);
    /// Before long work: throws if the output, or the picture when there is one, could not be written.
    void check_writable(const std::string& picture = "") const;
    void publish(const Report& report) const;
};

/// --seed, --threads
struct RunArguments {
    std::uint64_t seed = 0;
    int threads = 0;  // 0: one per core

    void add_to(CLI::App& app);
    std::size_t thread_count() const;
};

/// --integration-points; for channels whose expectations are sampled.
struct IntegrationArguments {
    channels::Integration integration;

    void add_to(CLI::App& app);
    theory::StateEvolutionOptions options(const RunArguments& run, ThreadPool* pool) const;
    void describe(const channels::Channel& channel, const RunArguments& run, Json& configuration) const;
};

/// --damping, --adaptive-damping, --iterations, --tolerance of AMP
struct AmpArguments {
    estimators::AmpOptions options;
    const CLI::App* command = nullptr;

    void add_to(CLI::App& app);
    /// For several layers: what is given, and otherwise defaults of their own.
    estimators::DeepAmpOptions deep_options() const;
    void describe(bool deep, Json& configuration) const;
};

/// The prior of one layer as this channel sees it: that of the mean of its heads for multi-head.
std::unique_ptr<priors::Prior> make_prior(const PriorArguments& prior, const ChannelArguments& channel);

/// The name and the parameters, as they go with every result.
Json describe(const PriorArguments& arguments, const priors::Prior& prior);
void describe(const channels::Channel& channel, Json& configuration);

/// Options whose errors say which option, what it got and what it takes.
CLI::Option* add_number(CLI::App& app, const std::string& name, double& value,
                        const std::string& description);
CLI::Option* add_threads(CLI::App& app, int& threads);  ///< --threads, 0: one per core
CLI::Option* add_count(CLI::App& app, const std::string& name, int& value, int lowest,
                       const std::string& description);

}  // namespace bayesaim::program
