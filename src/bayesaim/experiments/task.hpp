// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bayesaim/model/model.hpp"

namespace bayesaim::experiments {

/// One point and seed of a study, with every setting, so that it can be stored and run again.
struct Task {
    std::string estimator = "amp";
    std::string prior = "wishart";
    double width = 1;                 ///< r / d
    double scale = 1;                 ///< multiplies S
    double exponent = 1;              ///< of the prior `power-law`
    double cutoff = 1e-3;             ///< of the prior `power-law`
    std::string spectrum{};           ///< file of eigenvalues, prior `spectrum`
    std::string spectrum_checksum{};  ///< of the content of that file
    std::string channel = "softmax";
    int tokens = 2;  ///< T
    std::string attention = "tied";
    int key_tokens = 0;                  ///< of cross-attention; 0: as many as tokens
    double beta = 1;                     ///< inverse temperature
    double label_noise = 0;              ///< variance
    int layers = 2;                      ///< L, all of one width
    double residual = 1;                 ///< c, strength of the residual connections
    int heads = 2;                       ///< M
    double aspect = 1;                   ///< d2/d1 of cross-attention
    int integration_points = 128;        ///< per shift of sampled expectations
    int dim = 100;                       ///< d
    double alpha = 0.1;                  ///< n / d^2
    std::string response = "automatic";  ///< of AMP: power, slope, automatic
    double damping = 0.5;
    bool adaptive_damping = false;
    int max_iterations = 200;
    double tolerance = 1e-6;
    int starts = 1;    ///< of gradient descent
    int steps = 1000;  ///< maximum
    double learning_rate = 0.1;
    double student_width = 0;              ///< r / d of the student; 0 is the teacher's
    std::string loss{};                    ///< of training; empty: as losses::make_loss chooses
    std::string penalty = "trace";         ///< of training: trace, frobenius
    double regularization = 0;             ///< of training; 0 is the limit 0+, for theory only
    bool optimal_regularization = false;   ///< the best at each alpha instead
    double weight_decay = 0;               ///< of gradient descent
    std::string initial = "mean";          ///< mean, prior, informed
    std::string precision = "double";      ///< of the tokens
    std::string token_storage = "memory";  ///< no result depends on it
    std::uint64_t seed = 0;
};

using Value = std::variant<std::uint64_t, double, bool, std::string>;

/// A named setting. Files of studies, stores, tables and provenance iterate over these.
struct Setting {
    using Member =
        std::variant<std::uint64_t Task::*, int Task::*, double Task::*, bool Task::*, std::string Task::*>;
    std::string name;
    Member member;
    /// Throws InvalidArgument for a value that is wrong whatever the other settings are.
    std::function<void(std::string_view name, const Value& value)> check{};
    /// Which tasks have it: all, those whose estimator lists it, or whose channel or prior lists `option`.
    enum class Owner { all, estimator, model } owner = Owner::estimator;
    bool decides = true;        ///< whether results depend on it
    std::string option = name;  ///< its name in the tables of channels and priors
};

/// In the order of the points of a grid: the last setting changes fastest.
const std::vector<Setting>& setting_table();

Value get(const Task& task, const Setting& setting);
void set(Task& task, const Setting& setting, const Value& value);

/// Whether the estimator, the channel or the prior of this task has the setting.
bool applies(const Task& task, const Setting& setting);

/// Whether stores and tables name the setting: if it applies, and for the geometry if it is not tied attention, so that
/// stores from before there was any other stay valid.
bool states(const Task& task, const Setting& setting);

/// The settings that decide the result, as one line of JSON with all digits. Equal for equal problems only.
std::string canonical(const Task& task);

/// A fingerprint of canonical(task) and of the format of the store.
std::string key(const Task& task);

/// The channel and the priors of the task. Throws if a spectrum file has changed since the study began.
model::Model make_model(const Task& task);

/// Number of layers of the task's model, without making the model.
int layers_of(const Task& task);

/// The strong-recovery threshold of the task's model, in alpha; std::nullopt if it has none.
std::optional<double> strong_recovery(const Task& task);

}  // namespace bayesaim::experiments
