// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/task.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/data/tokens.hpp"
#include "bayesaim/experiments/estimator_table.hpp"
#include "bayesaim/experiments/run_store.hpp"
#include "bayesaim/experiments/task_json.hpp"
#include "bayesaim/priors/table.hpp"
#include "bayesaim/theory/deep_state_evolution.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::experiments {
namespace {

using Check = std::function<void(std::string_view, const Value&)>;

void positive(std::string_view name, const Value& value) { check_positive(name, std::get<double>(value)); }

void non_negative(std::string_view name, const Value& value) {
    check_non_negative(name, std::get<double>(value));
}

void a_fraction(std::string_view name, const Value& value) {
    non_negative(name, value);
    if (std::get<double>(value) >= 1) throw_invalid(name, "below 1", std::get<double>(value));
}

Check at_least(long long lowest) {
    return [lowest](std::string_view name, const Value& value) {
        check_at_least(name, static_cast<long long>(std::get<std::uint64_t>(value)), lowest);
    };
}

Check one_of(std::vector<std::string> known) {
    return [known = std::move(known)](std::string_view name, const Value& value) {
        check_one_of(name, std::get<std::string>(value), known);
    };
}

template <class Result>
Check parsed_by(Result (*parse)(std::string_view name, std::string_view text)) {
    return [parse](std::string_view name, const Value& value) { parse(name, std::get<std::string>(value)); };
}

std::vector<Setting> make_table() {
    return {
        {"estimator", &Task::estimator, one_of(estimator_names()), true},
        {"prior", &Task::prior, one_of(priors::prior_names()), true},
        {"width", &Task::width, positive, true, true, "wishart"},
        {"spectrum", &Task::spectrum, {}, true, false, "spectrum"},
        {"spectrum_checksum", &Task::spectrum_checksum, {}, true, true, "spectrum"},
        {"channel", &Task::channel, one_of(channels::channel_names()), true},
        {"tokens", &Task::tokens, at_least(1), true},
        {"beta", &Task::beta, positive, true},
        {"label_noise", &Task::label_noise, non_negative, true},
        {"layers", &Task::layers, at_least(1)},
        {"residual", &Task::residual, non_negative},
        {"integration_points", &Task::integration_points, at_least(16), true},
        {"dim", &Task::dim, at_least(2)},
        {"alpha", &Task::alpha, positive, true},
        {"damping", &Task::damping, a_fraction},
        {"adaptive_damping", &Task::adaptive_damping},
        {"max_iterations", &Task::max_iterations, at_least(1)},
        {"tolerance", &Task::tolerance, positive},
        {"starts", &Task::starts, at_least(1)},
        {"steps", &Task::steps, at_least(1)},
        {"learning_rate", &Task::learning_rate, positive},
        {"student_width", &Task::student_width, non_negative},
        {"initial", &Task::initial, one_of({"mean", "prior", "informed"})},
        {"precision", &Task::precision, parsed_by(data::parse_precision)},
        {"token_storage", &Task::token_storage, parsed_by(data::parse_token_storage), false, false},
        {"seed", &Task::seed},
    };
}

template <class Number>
Value as_value(const Number& member) {
    if constexpr (std::is_same_v<Number, int>)
        return static_cast<std::uint64_t>(member);
    else
        return member;
}

}  // namespace

const std::vector<Setting>& setting_table() {
    static const std::vector<Setting> table = make_table();
    return table;
}

Value get(const Task& task, const Setting& setting) {
    return std::visit([&](auto member) { return as_value(task.*member); }, setting.member);
}

void set(Task& task, const Setting& setting, const Value& value) {
    std::visit(
        [&](auto member) {
            using Type = std::remove_reference_t<decltype(task.*member)>;
            if constexpr (std::is_same_v<Type, int>) {
                const std::uint64_t number = std::get<std::uint64_t>(value);
                constexpr int largest = std::numeric_limits<int>::max();
                if (number > largest)
                    throw_invalid(setting.name, fmt::format("at most {}", largest),
                                  static_cast<double>(number));
                task.*member = static_cast<int>(number);
            } else {
                task.*member = std::get<Type>(value);
            }
        },
        setting.member);
}

bool applies(const Task& task, const Setting& setting) {
    if (!setting.prior.empty() && setting.prior != task.prior) return false;
    const EstimatorEntry& estimator = find_estimator(task.estimator);
    if (!estimator.has_prior && (setting.name == "prior" || !setting.prior.empty())) return false;
    if (setting.common) return true;
    const auto& own = estimator.settings;
    return std::find(own.begin(), own.end(), setting.name) != own.end();
}

std::string canonical(const Task& task) { return to_json(task, false).dump(); }

std::string key(const Task& task) { return fingerprint(std::string(store_format) + '\n' + canonical(task)); }

std::unique_ptr<priors::Prior> make_prior(const Task& task) {
    if (task.prior == "spectrum" && !task.spectrum.empty()) {
        const std::string found = fingerprint(read_whole("spectrum file", task.spectrum));
        if (!task.spectrum_checksum.empty() && task.spectrum_checksum != found) {
            throw_invalid("spectrum file", "the one that the study began with",
                          fmt::format("'{}' with other content", task.spectrum));
        }
    }
    return priors::make_prior(task.prior, {task.width, task.spectrum});
}

std::unique_ptr<channels::Channel> make_channel(const Task& task) {
    channels::ChannelOptions options;
    options.tokens = task.tokens;
    options.beta = task.beta;
    options.label_noise = task.label_noise;
    return channels::make_channel(task.channel, options);
}

channels::DeepAttention make_deep_channel(const Task& task) {
    check_one_of("channel of several layers", task.channel, {"softmax"});
    return channels::DeepAttention(
        {.layers = task.layers, .tokens = task.tokens, .beta = task.beta, .residual = task.residual});
}

std::optional<double> strong_recovery(const Task& task) {
    if (!find_estimator(task.estimator).has_prior) {
        return theory::strong_recovery(theory::SmallWidthCurve(), *make_channel(task));
    }
    const auto prior = make_prior(task);
    if (task.estimator.starts_with("deep-")) {
        const std::vector laws(static_cast<std::size_t>(task.layers), &prior->law());
        return theory::deep_strong_recovery(laws, make_deep_channel(task));
    }
    return theory::strong_recovery(theory::SpectralCurve(prior->law()), *make_channel(task));
}

Json to_json(const Task& task, bool all) {
    Json object = Json::object();
    for (const Setting& setting : setting_table()) {
        if (!applies(task, setting) || !(all || setting.decides)) continue;
        std::visit([&](const auto& value) { object[setting.name] = value; }, get(task, setting));
    }
    return object;
}

Task task_from_json(const Json& object) {
    Task task;
    for (const auto& [name, json] : object.items()) {
        const auto& table = setting_table();
        const auto found = std::find_if(
            table.begin(), table.end(),
            [name = std::string_view(name)](const Setting& setting) { return setting.name == name; });
        if (found == table.end()) throw_invalid("setting", "a known one", fmt::format("'{}'", name));
        Value value = get(task, *found);
        const bool whole = std::holds_alternative<std::uint64_t>(value);
        try {
            if (whole && !json.is_number_unsigned()) throw_invalid(name, "a whole number", json.dump());
            std::visit([&json = json](auto& slot) { json.get_to(slot); }, value);
        } catch (const Json::exception&) {
            throw_invalid(name, "of its type", json.dump());
        }
        if (found->check) found->check(name, value);
        set(task, *found, value);
    }
    return task;
}

}  // namespace bayesaim::experiments
