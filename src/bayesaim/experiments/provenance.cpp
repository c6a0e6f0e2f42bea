// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/core/version.hpp"
#include "bayesaim/experiments/results.hpp"
#include "bayesaim/experiments/task_json.hpp"

namespace bayesaim::experiments {
namespace {

constexpr const char* missing = "missing";  // status of an unfinished point

/// The settings with the same value in every task.
Json shared_settings(const std::vector<Point>& points) {
    Json shared = points.empty() ? Json::object() : to_json(points.front().task, true);
    for (const Point& point : points) {
        const Json own = to_json(point.task, true);
        Json still = Json::object();
        for (const auto& [name, value] : shared.items()) {
            if (own.contains(name) && own[name] == value) still[name] = value;
        }
        shared = std::move(still);
    }
    return shared;
}

}  // namespace

std::string provenance_json(const Provenance& provenance) {
    const Json shared = shared_settings(provenance.points);
    std::string points;  // one line each
    double seconds = 0;
    std::size_t done = 0, failed = 0;
    for (const auto& [task, outcome] : provenance.points) {
        Json settings = Json::object();
        const Json all = to_json(task, true);
        for (const auto& [name, value] : all.items()) {
            if (!shared.contains(name)) settings[name] = value;
        }
        Json point = {{"key", key(task)}, {"settings", settings}};
        if (outcome) {
            point.update(to_json(*outcome));
            if (outcome->commit == git_commit()) point.erase("commit");
            seconds += outcome->seconds;
            ++(outcome->failed() ? failed : done);
        } else {
            point["status"] = missing;
        }
        points += (points.empty() ? "\n  " : ",\n  ") + point.dump();
    }
    const Json object = {{"bayesaim", version()},
                         {"commit", git_commit()},
                         {"command", "sweep"},
                         {"name", provenance.experiment.name},
                         {"shard", provenance.shard.text()},
                         {"configuration", shared},
                         {"done", done},
                         {"failed", failed},
                         {"missing", provenance.points.size() - done - failed},
                         {"seconds", seconds}};
    std::string text = object.dump(1);
    text.resize(text.size() - 2);  // line end and brace
    return text + ",\n \"points\": [" + points + "]\n}\n";
}

Provenance read_provenance(const std::filesystem::path& file) {
    const std::string text = read_whole("provenance file", file);
    try {
        const Json object = Json::parse(text);
        if (object.at("command") != "sweep") throw InvalidArgument("not a sweep");
        Provenance provenance;
        provenance.version = object.at("bayesaim").get<std::string>();
        provenance.commit = object.at("commit").get<std::string>();
        provenance.experiment.name = object.at("name").get<std::string>();
        provenance.shard = parse_shard("shard", object.at("shard").get<std::string>());
        for (const Json& point : object.at("points")) {
            Json settings = object.at("configuration");
            settings.update(point.at("settings"));
            Point read{task_from_json(settings)};
            if (point.at("status") != missing) {
                read.outcome = outcome_from_json(point);
                if (read.outcome->commit.empty()) read.outcome->commit = provenance.commit;
            }
            provenance.experiment.tasks.push_back(read.task);
            provenance.points.push_back(std::move(read));
        }
        return provenance;
    } catch (const Json::exception&) {
        throw_invalid("provenance file", "the provenance.json of a sweep",
                      fmt::format("'{}'", file.string()));
    } catch (const InvalidArgument& error) {
        throw_invalid("provenance file", "the provenance.json of a sweep",
                      fmt::format("'{}' ({})", file.string(), error.what()));
    }
}

std::optional<Experiment> read_study(const std::filesystem::path& file) {
    if (!std::filesystem::exists(file)) return std::nullopt;
    try {
        return read_provenance(file).experiment;
    } catch (const InvalidArgument&) {
        return std::nullopt;
    }
}

}  // namespace bayesaim::experiments
