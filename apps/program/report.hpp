// SPDX-License-Identifier: MIT
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bayesaim/core/files.hpp"
#include "bayesaim/core/record.hpp"

namespace bayesaim::program {

/// The output of a command:
/// {"bayesaim": version, "command": .., "configuration": {..}, <summary>, "points": [..]}.
struct Report {
    std::string command;
    Record configuration{};
    Record summary{};              ///< fields of the object itself
    std::vector<Record> points{};  ///< all with the same fields
};

/// How far a value is above the expected one, in percent; absent if that is 0 or the value is not finite.
std::optional<double> percent_above(double value, double expected);

/// Says on standard error where `what` differs from theory by many standard errors, but as expected at this dimension.
void explain_differences(const Report& report, std::string_view what);

/// A record as a JSON object on one line.
std::string to_json_text(const Record& record);

/// As an aligned table, CSV (points, then settings as columns) or JSON. A missing or non-finite value is null in JSON, empty in
/// CSV and a dash in a table. Writes the file atomically, or prints to standard output if its name is empty; a host
/// (Host::publish) gets the text instead.
void publish(const Report& report, const std::string& format, const std::string& output);

/// Writes the points as CSV. Does nothing without a file name or without points.
void write_csv(const std::string& file, const Report& report);

/// Throws if a file of this name cannot be written. An empty name stands for no file.
void check_writable(const std::string& file);

/// For outputs in HDF5, called before long work. Throws if the file cannot be written, is one of the input
/// files or has the name of a table.
void check_output_file(const std::string& output, const std::vector<std::string>& inputs);

}  // namespace bayesaim::program
