// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/task.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/core/table.hpp"
#include "bayesaim/data/tokens.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/experiments/estimator_table.hpp"
#include "bayesaim/experiments/run_store.hpp"
#include "bayesaim/experiments/task_json.hpp"
#include "bayesaim/losses/penalty.hpp"
#include "bayesaim/losses/table.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::experiments {
namespace {

using Check = std::function<void(std::string_view, const Value&)>;

/// A check of values of this type; functions that parse a text check it too.
template <class Type, class Function>
Check on(Function check) {
    return [check](std::string_view name, const Value& value) { check(name, std::get<Type>(value)); };
}

void check_fraction(std::string_view name, double value) {
    check_non_negative(name, value);
    if (value >= 1) throw_invalid(name, "below 1", value);
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

/// Old studies name estimators of several layers; the message gives the present spelling.
void check_estimator(std::string_view name, const std::string& text) {
    for (const auto& [old, now] : {std::pair("deep-theory", "theory"), std::pair("deep-amp", "amp")}) {
        if (text == old)
            throw InvalidArgument(fmt::format(
                "estimator \"{}\" is now written estimator = \"{}\" with channel = \"deep-softmax\"", old,
                now));
    }
    check_one_of(name, text, names_of(estimator_table()));
}

void check_loss(std::string_view name, const std::string& text) {
    if (!text.empty()) check_one_of(name, text, names_of(losses::loss_table()));
}

std::vector<Setting> make_table() {
    using enum Setting::Owner;
    const Check positive = on<double>(check_positive), non_negative = on<double>(check_non_negative);
    return {
        {"estimator", &Task::estimator, on<std::string>(check_estimator), all},
        {"prior", &Task::prior, one_of(names_of(priors::prior_table())), all},
        {"width", &Task::width, positive, model},
        {"scale", &Task::scale, positive, model},
        {"exponent", &Task::exponent, positive, model},
        {"cutoff", &Task::cutoff, positive, model},
        {"spectrum", &Task::spectrum, {}, model, false},
        {"spectrum_checksum", &Task::spectrum_checksum, {}, model, true, "spectrum"},
        {"channel", &Task::channel, one_of(names_of(channels::channel_table())), all},
        {"tokens", &Task::tokens, at_least(1), model},
        {"attention", &Task::attention, on<std::string>(channels::parse_attention), model},
        {"key_tokens", &Task::key_tokens, at_least(0), model},
        {"beta", &Task::beta, positive, model},
        {"label_noise", &Task::label_noise, non_negative, model},
        {"layers", &Task::layers, at_least(1), model},
        {"residual", &Task::residual, non_negative, model},
        {"heads", &Task::heads, at_least(1), model},
        {"aspect", &Task::aspect, positive, model},
        {"loss", &Task::loss, on<std::string>(check_loss)},
        {"penalty", &Task::penalty, on<std::string>(losses::parse_penalty)},
        {"regularization", &Task::regularization, non_negative},
        {"optimal_regularization", &Task::optimal_regularization},
        {"integration_points", &Task::integration_points, at_least(16), all},
        {"dim", &Task::dim, at_least(2)},
        {"alpha", &Task::alpha, non_negative, all},
        {"response", &Task::response, on<std::string>(estimators::parse_response)},
        {"damping", &Task::damping, on<double>(check_fraction)},
        {"adaptive_damping", &Task::adaptive_damping},
        {"max_iterations", &Task::max_iterations, at_least(1)},
        {"tolerance", &Task::tolerance, positive},
        {"starts", &Task::starts, at_least(1)},
        {"steps", &Task::steps, at_least(1)},
        {"learning_rate", &Task::learning_rate, positive},
        {"student_width", &Task::student_width, non_negative},
        {"weight_decay", &Task::weight_decay, non_negative},
        {"initial", &Task::initial, one_of({"mean", "prior", "informed"})},
        {"precision", &Task::precision, on<std::string>(data::parse_precision)},
        {"token_storage", &Task::token_storage, on<std::string>(data::parse_token_storage), estimator, false},
        {"seed", &Task::seed},
    };
}

}  // namespace

const std::vector<Setting>& setting_table() {
    static const std::vector<Setting> table = make_table();
    return table;
}

Value get(const Task& task, const Setting& setting) {
    return std::visit(
        [&](auto member) -> Value {
            if constexpr (std::is_same_v<decltype(member), int Task::*>)
                return static_cast<std::uint64_t>(task.*member);
            else
                return task.*member;
        },
        setting.member);
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
    const EstimatorEntry& estimator = find_row(estimator_table(), "estimator", task.estimator);
    switch (setting.owner) {
        case Setting::Owner::all:
            return estimator.has_prior || setting.name != "prior";
        case Setting::Owner::estimator:
            return takes(estimator, setting.name);
        default: {
            const auto& channel = find_row(channels::channel_table(), "channel", task.channel);
            if (takes(channel, setting.option)) return true;
            std::string prior = channel.prior.empty() ? task.prior : channel.prior;
            if (prior == Task{}.prior && task.attention != Task{}.attention)
                prior = "bilinear";  // as in make_model
            return estimator.has_prior &&
                   takes(find_row(priors::prior_table(), "prior", prior), setting.option);
        }
    }
}

bool states(const Task& task, const Setting& setting) {
    if (setting.name == "attention" && task.attention == Task{}.attention) return false;
    if (setting.name == "aspect" && task.aspect == Task{}.aspect) return false;
    if (setting.name == "scale" && task.scale == Task{}.scale) return false;
    if (setting.name == "weight_decay" && task.weight_decay == Task{}.weight_decay) return false;
    if (setting.name == "key_tokens" && task.key_tokens == Task{}.key_tokens) return false;
    return applies(task, setting);
}

std::string canonical(const Task& task) { return to_json(task, false).dump(); }

std::string key(const Task& task) { return fingerprint(std::string(store_format) + '\n' + canonical(task)); }

model::Model make_model(const Task& task) {
    if (task.prior == "spectrum" && !task.spectrum.empty()) {
        const std::string found = fingerprint(read_whole("spectrum file", task.spectrum));
        if (!task.spectrum_checksum.empty() && task.spectrum_checksum != found) {
            throw_invalid("spectrum file", "the one that the study began with",
                          fmt::format("'{}' with other content", task.spectrum));
        }
    }
    return model::make_model(
        {.prior = task.prior,
         .widths = {task.width},
         .spectrum = task.spectrum,
         .heads = task.heads,
         .aspect = task.aspect,
         .scale = task.scale,
         .exponent = task.exponent,
         .cutoff = task.cutoff,
         .channel = task.channel,
         .channel_options = {.tokens = task.tokens,
                             .beta = task.beta,
                             .label_noise = task.label_noise,
                             .layers = task.layers,
                             .residual = task.residual,
                             .attention = channels::parse_attention("attention", task.attention),
                             .key_tokens = task.key_tokens}});
}

int layers_of(const Task& task) {
    return takes(find_row(channels::channel_table(), "channel", task.channel), "layers") ? task.layers : 1;
}

std::optional<double> strong_recovery(const Task& task) {
    const model::Model model = make_model(task);
    if (!find_row(estimator_table(), "estimator", task.estimator).has_prior)
        return theory::strong_recovery(theory::SmallWidthCurve(), model.channel());
    return theory::strong_recovery(*theory::make_curve(model.laws(), model.channel().geometry()),
                                   model.channel());
}

Json to_json(const Task& task, bool all) {
    Json object = Json::object();
    for (const Setting& setting : setting_table()) {
        if (!states(task, setting) || !(all || setting.decides)) continue;
        std::visit([&](const auto& value) { object[setting.name] = value; }, get(task, setting));
    }
    return object;
}

Task task_from_json(const Json& object) {
    Task task;
    for (const auto& [name, json] : object.items()) {
        const auto found = std::ranges::find(setting_table(), name, &Setting::name);
        if (found == setting_table().end())
            throw_invalid("setting", "a known one", fmt::format("'{}'", name));
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
