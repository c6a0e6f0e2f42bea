// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bayesaim/data/dataset.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/model/model.hpp"
#include "bayesaim/theory/state_evolution.hpp"

#include "program/command.hpp"
#include "program/report.hpp"

namespace bayesaim::program {

/// Whether this is the status of a result within its tolerance.
bool is_success(std::string_view status);

/// The model: --prior, --width, --scale, --aspect, --exponent, --cutoff, --spectrum, --heads; --channel,
/// --tokens, --attention, --key-tokens, --beta, --label-noise, --layers, --residual
struct ModelArguments {
    model::ModelOptions options;
    Command command;
    /// Commands that learn parameters: --width, --beta and --label-noise take the word "learn" too.
    bool learnable = false;
    std::set<std::string> learned{};  ///< names of those that are to be learned, as the tables have them

    /// The channels that the command takes.
    enum class Channels { all, one_layer, smooth };
    void add_channel_to(Command& to, Channels taken = Channels::all);
    void add_prior_to(Command& to);
    /// For commands without the other options of priors.
    void add_scale_to(Command& to);
    void add_aspect_to(Command& to);

    /// Sets the options that the command line does not give from a description or attributes of a file.
    void complete_from(const Record& description);
    /// Throws InvalidArgument for an option that the prior or the channel does not have.
    model::Model make() const;
    /// The channel with this label noise, if it can have any.
    std::shared_ptr<const channels::Channel> make_channel(double label_noise) const;
    /// One model per width if the channel has one layer; otherwise the one model.
    std::vector<model::Model> make_family() const;
    /// The prior of commands without a channel.
    std::unique_ptr<priors::Prior> make_prior() const;

  private:
    /// The library's message about an option that was typed: "--width must be ..", not "width must be ..".
    [[noreturn]] void throw_as_typed(const std::string& message) const;

    std::vector<std::string> taken_;  // names of channels
};

/// The arguments that commands have in common: --seed, --threads, --format, --output, --strict, --quiet
struct CommonArguments {
    std::uint64_t seed = 0;
    int threads = 0;  // 0: one per core
    std::string format = "table";
    std::string output;
    bool strict = false, quiet = false;

    /// Whether points of the command may fail to converge. If none can, it has no --strict.
    enum class Points { may_fail, never_fail };
    void add_to(Command& to, Points points = Points::may_fail);
    /// For commands without random numbers. A command that has its own --output keeps it.
    void add_without_seed_to(Command& to, Points points = Points::may_fail);
    std::size_t thread_count() const { return static_cast<std::size_t>(threads); }
    /// Called before long work. Throws if the output, or the picture if any, cannot be written.
    void check_writable(const std::string& picture = "") const;
    /// Writes the report to --output. Returns the exit code. Standard error gets the number of points whose
    /// status is not `good`, and, if the command was interrupted, where the finished points are, and the remark.
    int publish(const Report& report, const std::function<bool(std::string_view)>& good = is_success,
                std::string_view remark = "") const;
};

/// --noise-variance, the prior and --dim: a matrix of weights under noise
struct NoiseArguments {
    ModelArguments model;
    double noise_variance = 0;
    int dim = 1000;

    enum class Variance { required, optional };
    void add_to(Command& to, Variance variance = Variance::required);
    /// Throws InvalidArgument for a wrong option.
    std::unique_ptr<priors::Prior> make_prior() const;
    Record describe(const priors::Prior& prior) const;
    /// Adds sqrt(D) Xi, Xi ~ GOE; if the prior is not symmetric, Xi with independent N(0, 1/d) entries.
    void add_noise(bool symmetric, linalg::Matrix& matrix, std::uint64_t seed, ThreadPool& pool) const;
};

/// --integration-points of sampled expectations
struct IntegrationArguments {
    channels::Integration integration;

    void add_to(Command& to);
    theory::StateEvolutionOptions options(std::uint64_t seed, ThreadPool* pool) const;
    void describe(const channels::Channel& channel, std::uint64_t seed, Record& configuration) const;
};

/// --token-storage and --precision of synthetic data
struct TokenArguments {
    std::string storage = "memory", precision = "double";

    void add_to(Command& to);
    /// Throws InvalidArgument for a wrong option.
    data::SyntheticOptions synthetic(int dim) const;
};

/// --response, --damping, --adaptive-damping, --iterations, --tolerance of AMP
struct AmpArguments {
    estimators::AmpOptions options;

    void add_to(Command& to);
    /// Throws InvalidArgument for a wrong option.
    void check() const;
    void describe(Record& configuration) const;
};

}  // namespace bayesaim::program
