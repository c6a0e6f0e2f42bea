// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/priors/prior.hpp"

namespace bayesaim::experiments {

/// One point and seed of a study. Every setting is explicit, so that it can be stored and run again.
struct Task {
    std::string estimator = "amp";
    std::string prior = "wishart";
    double width = 1;                 ///< r / d
    std::string spectrum{};           ///< file of eigenvalues, prior `spectrum`
    std::string spectrum_checksum{};  ///< of the content of that file
    std::string channel = "softmax";
    int tokens = 2;                ///< T
    double beta = 1;               ///< inverse temperature
    double label_noise = 0;        ///< variance
    int layers = 2;                ///< L of deep-theory and deep-amp, all of one width
    double residual = 1;           ///< c of these
    int integration_points = 128;  ///< per shift, where expectations are sampled
    int dim = 100;                 ///< d
    double alpha = 0.1;            ///< n / d^2
    double damping = 0.5;
    bool adaptive_damping = false;
    int max_iterations = 200;
    double tolerance = 1e-6;
    int starts = 1;    ///< of gradient descent
    int steps = 1000;  ///< most of them
    double learning_rate = 0.1;
    double student_width = 0;              ///< r / d of the student; 0 is the teacher's
    std::string initial = "mean";          ///< mean, prior, informed
    std::string precision = "double";      ///< of the tokens
    std::string token_storage = "memory";  ///< no result depends on it
    std::uint64_t seed = 0;
};

using Value = std::variant<std::uint64_t, double, bool, std::string>;

/// A setting by its name: experiment files, stores, tables and provenance iterate over these.
struct Setting {
    using Member =
        std::variant<std::uint64_t Task::*, int Task::*, double Task::*, bool Task::*, std::string Task::*>;
    std::string name;
    Member member;
    /// Throws InvalidArgument for a value that makes no sense whatever the others are.
    std::function<void(std::string_view name, const Value& value)> check{};
    bool common = false;     ///< of every estimator; the others are listed by those that have them
    bool decides = true;     ///< whether results depend on it
    std::string prior = {};  ///< the only prior that has it; empty for all
};

/// In the order in which a grid of several settings is run through: the last changes fastest.
const std::vector<Setting>& setting_table();

Value get(const Task& task, const Setting& setting);
void set(Task& task, const Setting& setting, const Value& value);

/// Whether the estimator and the prior of this task have the setting.
bool applies(const Task& task, const Setting& setting);

/// The settings that decide the result, as JSON in one line with all digits; equal exactly for equal
/// problems.
std::string canonical(const Task& task);

/// A fingerprint of canonical(task) and of the format of the store.
std::string key(const Task& task);

std::unique_ptr<priors::Prior> make_prior(const Task& task);
std::unique_ptr<channels::Channel> make_channel(const Task& task);
/// Of the estimators of several layers.
channels::DeepAttention make_deep_channel(const Task& task);

/// The strong-recovery threshold of this prior and channel, in alpha, where there is one.
std::optional<double> strong_recovery(const Task& task);

}  // namespace bayesaim::experiments
