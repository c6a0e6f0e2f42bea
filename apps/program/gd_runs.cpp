// SPDX-License-Identifier: MIT
#include "program/gd_runs.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/version.hpp"
#include "bayesaim/estimators/descent_checkpoint.hpp"

namespace bayesaim::program {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const GdRun& run) {
    Json records = Json::array(), ends = Json::array();
    for (const auto& record : run.records) {
        Json rows = Json::array();
        for (const auto& row : record)
            rows.push_back({row.step, row.loss, row.gradient_norm, *row.true_error});
        records.push_back(rows);
    }
    for (const Termination end : run.ends) ends.push_back(static_cast<int>(end));
    Json json = {{"errors", run.errors},
                 {"averaged", run.averaged},
                 {"records", records},
                 {"steps", run.steps},
                 {"ends", ends},
                 {"seconds_per_step", run.seconds_per_step},
                 {"amp_error", run.amp_error ? Json(*run.amp_error) : Json(nullptr)},
                 {"status", static_cast<int>(run.status)}};
    if (run.training_objective) json["training_objective"] = *run.training_objective;
    return json;
}

GdRun run_from(const Json& json) {
    const auto numbers = [&](const char* key) {  // NaN is null in JSON
        std::vector<double> values;
        for (const Json& value : json.at(key))
            values.push_back(value.is_null() ? std::nan("") : value.get<double>());
        return values;
    };
    GdRun run;
    run.errors = numbers("errors");
    run.averaged = numbers("averaged");
    for (const Json& rows : json.at("records")) {
        auto& record = run.records.emplace_back();
        for (const Json& row : rows)
            record.push_back({row.at(0), row.at(1), row.at(2), row.at(3).get<double>()});
    }
    run.steps = json.at("steps").get<std::vector<int>>();
    for (const int end : json.at("ends")) run.ends.push_back(static_cast<Termination>(end));
    run.seconds_per_step = json.at("seconds_per_step");
    if (!json.at("amp_error").is_null()) run.amp_error = json.at("amp_error").get<double>();
    if (json.contains("training_objective"))
        run.training_objective = json["training_objective"].get<double>();
    run.status = static_cast<Termination>(json.at("status").get<int>());
    return run;
}

}  // namespace

GdRuns::GdRuns(const std::string& file, bool resume, Record settings) : file_(file) {
    settings["bayesaim"] = version();
    settings_ = to_json_text(settings);
    if (!resume) return;
    auto checkpoint = estimators::read_descent_checkpoint(file_);
    const Json made = Json::parse(checkpoint.settings, nullptr, false);
    if (!made.is_object()) throw_invalid("checkpoint", "of this command", fmt::format("'{}'", file_));
    const Json wanted = Json::parse(settings_);
    for (const auto& [key, value] : wanted.items()) {
        const Json other = made.contains(key) ? made[key] : Json(nullptr);
        if (other == value) continue;
        throw_invalid(fmt::format("checkpoint '{}'", file_),
                      fmt::format("of the same settings ({} {})", key, value.dump()),
                      fmt::format("{} {}", key, other.dump()));
    }
    if (made.size() != wanted.size())
        throw_invalid("checkpoint", "of the same settings", fmt::format("'{}'", file_));
    for (const Json& run : Json::parse(checkpoint.finished)) finished_.push_back(run_from(run));
    descents_ = std::move(checkpoint.descents);
}

std::vector<estimators::Descent> GdRuns::take_descents() { return std::exchange(descents_, {}); }

void GdRuns::finish(GdRun run) {
    finished_.push_back(std::move(run));
    save({});
}

void GdRuns::save(const std::vector<estimators::Descent>& descents) const {
    if (file_.empty()) return;
    Json finished = Json::array();
    for (const GdRun& run : finished_) finished.push_back(to_json(run));
    estimators::write_descent_checkpoint(file_, {settings_, finished.dump(), descents});
}

}  // namespace bayesaim::program
