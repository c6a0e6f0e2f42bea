// SPDX-License-Identifier: MIT
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bayesaim/core/files.hpp"

namespace bayesaim::program {

using Json = nlohmann::ordered_json;

/// What a command prints: {"bayesaim": version, "command": ..., "configuration": {...}, <summary>, "points":
/// [...]}.
struct Report {
    std::string command;
    Json configuration = Json::object();
    Json summary = Json::object();  ///< keys of the object itself, beside the points
    std::vector<Json> points{};     ///< objects with the same keys
};

/// What is not there is null.
Json or_null(const std::optional<double>& value);
/// What is not finite is null.
Json finite_or_null(double value);

/// As an aligned table, CSV (points only) or JSON. A value that is not a finite number never appears: it is
/// null in JSON, empty in CSV and a dash in a table.
std::string format_table(const Report& report);
std::string format_csv(const Report& report);
std::string format_json(const Report& report);

/// Prints to standard output, or writes the file (whole or not at all) when its name is not empty.
void publish(const Report& report, const std::string& format, const std::string& output);

/// Throws unless a file of this name can be written.
void check_writable(const std::string& file);

/// Before hours of work: throws unless there is a place for their result, and it is none of the files that
/// are read.
void check_output_file(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace bayesaim::program
