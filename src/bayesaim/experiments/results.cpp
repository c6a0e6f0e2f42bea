// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/results.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/core/table.hpp"
#include "bayesaim/core/text.hpp"
#include "bayesaim/experiments/task_json.hpp"
#include "bayesaim/numerics/statistics.hpp"

namespace bayesaim::experiments {
namespace {

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
}

std::string cell(const Value& value) {
    const std::string text = to_text(value);
    return std::holds_alternative<std::string>(value) ? quoted(text) : text;
}

std::string cell(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

/// The settings that some point has, in the order of the table.
std::vector<const Setting*> setting_columns(const std::vector<Point>& points, bool with_seed) {
    std::vector<const Setting*> columns;
    for (const Setting& setting : setting_table()) {
        if (setting.name == "seed" && !with_seed) continue;
        if (setting.name == "spectrum_checksum" || setting.name == "token_storage") continue;
        const auto has_it = [&](const Point& point) { return states(point.task, setting); };
        if (std::ranges::any_of(points, has_it)) columns.push_back(&setting);
    }
    return columns;
}

std::vector<std::string> value_columns(const std::vector<Point>& points) {
    std::vector<std::string> columns;
    for (const EstimatorEntry& estimator : estimator_table()) {
        const auto runs_it = [&](const Point& point) { return point.task.estimator == estimator.name; };
        if (std::ranges::none_of(points, runs_it)) continue;
        for (const std::string& name : estimator.values) {
            if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
        }
    }
    const auto decays = [](const Point& point) { return point.task.weight_decay > 0; };
    if (std::ranges::any_of(points, decays)) columns.push_back("training_objective");
    int layers = 1;
    for (const Point& point : points) {
        const channels::Geometry geometry{channels::parse_attention("attention", point.task.attention)};
        layers = std::max(layers, layers_of(point.task) * geometry.parts());
    }
    for (int l = 1; l <= layers && layers > 1; ++l) columns.push_back(fmt::format("error_{}", l));
    return columns;
}

std::string setting_cells(const Task& task, const std::vector<const Setting*>& columns) {
    std::string line;
    for (const Setting* setting : columns) {
        line += (states(task, *setting) ? cell(get(task, *setting)) : "") + ',';
    }
    return line;
}

std::string header(const std::vector<const Setting*>& columns) {
    std::string line;
    for (const Setting* setting : columns) line += setting->name + ',';
    return line;
}

/// The seeds of one point.
struct Group {
    Task task;
    std::vector<const Outcome*> outcomes{};
};

std::vector<Group> group_seeds(const std::vector<Point>& points) {
    std::vector<Group> groups;
    std::map<std::string, std::size_t> index;
    for (const Point& point : points) {
        if (!point.outcome) continue;
        Task task = point.task;
        task.seed = 0;
        const auto [found, added] = index.emplace(canonical(task), groups.size());
        if (added) groups.push_back({task});
        groups[found->second].outcomes.push_back(&*point.outcome);
    }
    return groups;
}

std::string summary_line(const Group& group) {
    std::vector<double> errors, iterations;
    std::optional<double> standard_error, theory_error, z_score;
    std::string status = group.outcomes.front()->status;
    bool good = true;
    for (const Outcome* outcome : group.outcomes) {
        if (good && !outcome->good()) status = outcome->status;
        good &= outcome->good();
        if (outcome->failed()) continue;
        if (const auto error = outcome->value("error")) errors.push_back(*error);
        if (const auto count = outcome->value("iterations")) iterations.push_back(*count);
        theory_error = outcome->value("theory_error");
        standard_error = outcome->value("standard_error");
    }
    const auto value = [](const std::optional<numerics::Mean>& mean) {
        return mean ? std::optional(mean->value) : std::nullopt;
    };
    const auto error = numerics::mean_of(errors);
    if (error && error->standard_error) standard_error = error->standard_error;
    if (error && theory_error) z_score = error->z_score(*theory_error);
    return fmt::format("{},{},{},{},{},{},{},{}\n", errors.size(), group.outcomes.size() - errors.size(),
                       cell(value(error)), cell(standard_error), cell(theory_error), cell(z_score),
                       cell(value(numerics::mean_of(iterations))), status);
}

/// use(record), for a record whose checksum is right. Another program may have written it.
template <class Use>
auto with_record(const std::string& payload, Use use) {
    try {
        return use(Json::parse(payload));
    } catch (const Json::exception&) {
        throw_invalid("record of the run store", "a task with its outcome",
                      fmt::format("'{}'", payload.substr(0, 80)));
    }
}

}  // namespace

std::string Shard::text() const { return fmt::format("{}/{}", index, count); }

Shard parse_shard(std::string_view name, std::string_view text) {
    const auto words = split(text, '/');
    const auto index = parse_number<std::size_t>(words.front()),
               count = parse_number<std::size_t>(words.back());
    if (words.size() != 2 || !index || !count || *index < 1 || *index > *count) {
        throw_invalid(name, "i/N with i from 1 to N", fmt::format("'{}'", text));
    }
    return {*index, *count};
}

std::string results_csv(const std::vector<Point>& points) {
    const auto settings = setting_columns(points, true);
    const auto values = value_columns(points);
    std::string text = header(settings);
    for (const std::string& name : values) text += name + ',';
    text += "status,reason\n";
    for (const auto& [task, outcome] : points) {
        if (!outcome) continue;
        text += setting_cells(task, settings);
        for (const std::string& name : values) text += cell(outcome->value(name)) + ',';
        text += outcome->status + ',' + quoted(outcome->reason) + '\n';
    }
    return text;
}

std::string summary_csv(const std::vector<Point>& points) {
    const auto settings = setting_columns(points, false);
    std::string text =
        header(settings) + "seeds,failed,mean_error,standard_error,theory_error,z_score,iterations,status\n";
    for (const Group& group : group_seeds(points)) {
        text += setting_cells(group.task, settings) + summary_line(group);
    }
    return text;
}

std::string payload(const Task& task, const Outcome& outcome) {
    return Json{{"task", to_json(task, false)}, {"outcome", to_json(outcome)}}.dump();
}

Outcome outcome_of(const std::string& payload) {
    return with_record(payload, [](const Json& record) { return outcome_from_json(record.at("outcome")); });
}

std::vector<Point> points_of(const Experiment& experiment, const StoredRecords& records) {
    std::vector<Point> points;
    points.reserve(experiment.tasks.size());
    for (const Task& task : experiment.tasks) {
        points.push_back({task});
        const auto found = records.payloads.find(key(task));
        if (found == records.payloads.end()) continue;
        with_record(found->second, [&](const Json& record) {
            if (record.at("task") == to_json(task, false))  // otherwise another task with the same key
                points.back().outcome = outcome_from_json(record.at("outcome"));
        });
    }
    return points;
}

std::string to_text(const Value& value) {
    return std::visit([](const auto& number) -> std::string { return fmt::format("{}", number); }, value);
}

std::vector<const Setting*> varying_settings(const std::vector<Point>& points) {
    std::vector<const Setting*> varying;
    for (const Setting* setting : setting_columns(points, true)) {
        std::optional<Value> first;
        const auto differs = [&](const Point& point) {
            if (!states(point.task, *setting)) return false;
            const Value value = get(point.task, *setting);
            if (!first) first = value;
            return value != *first;
        };
        if (std::ranges::any_of(points, differs)) varying.push_back(setting);
    }
    return varying;
}

std::string describe(const Task& task, const std::vector<const Setting*>& varying) {
    std::string text = task.estimator;
    const auto add = [&](const Setting& setting) {
        if (states(task, setting)) text += fmt::format(", {} {}", setting.name, to_text(get(task, setting)));
    };
    const auto named = [](const Setting& setting) {
        return setting.name == "alpha" || setting.name == "width" || setting.name == "seed";
    };
    for (const char* name : {"alpha", "width"}) add(find_row(setting_table(), "setting", name));
    for (const Setting* setting : varying) {
        if (setting->name != "estimator" && !named(*setting)) add(*setting);
    }
    add(find_row(setting_table(), "setting", "seed"));
    return text;
}

Comparison compare(const std::vector<Point>& before, const std::vector<Point>& after) {
    check_size("points to compare", static_cast<long long>(after.size()),
               static_cast<long long>(before.size()));
    Comparison result;
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (!before[i].outcome || !after[i].outcome) continue;
        ++result.compared;
        if (before[i].outcome->same_results(*after[i].outcome)) ++result.same;
    }
    return result;
}

void write_tables(const std::filesystem::path& directory, const std::vector<Point>& points) {
    write_whole(directory / results_name, results_csv(points));
    write_whole(directory / summary_name, summary_csv(points));
}

void write_results(const std::filesystem::path& directory, const Experiment& experiment, const Shard& shard,
                   const std::vector<Point>& points) {
    write_tables(directory, points);
    write_whole(directory / provenance_name, provenance_json({"", "", experiment, shard, points}));
}

}  // namespace bayesaim::experiments
