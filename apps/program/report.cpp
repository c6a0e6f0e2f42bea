// SPDX-License-Identifier: MIT
#include "program/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/version.hpp"

namespace bayesaim::program {
namespace {

/// One value as text; `digits` significant ones for numbers, 0 for as many as identify the number.
std::string cell(const Json& value, int digits, const char* absent) {
    if (value.is_null()) return absent;
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number_float()) {
        const double number = value.get<double>();
        if (!std::isfinite(number)) return absent;
        return digits > 0 ? fmt::format("{:.{}g}", number, digits) : fmt::format("{}", number);
    }
    return value.dump();
}

std::string csv_quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
}

/// Points as rows of single values: an array becomes columns key_1, key_2, .., a matrix key_1_1, .. or
/// nothing.
std::vector<Json> as_rows(const std::vector<Json>& points, bool with_matrices) {
    std::vector<Json> rows;
    for (const Json& point : points) {
        Json& row = rows.emplace_back(Json::object());
        const std::function<void(const std::string&, const Json&)> add = [&](const std::string& key,
                                                                             const Json& value) {
            if (!value.is_array()) {
                row[key] = value;
            } else if (with_matrices || value.empty() || !value[0].is_array()) {
                for (std::size_t i = 0; i < value.size(); ++i)
                    add(fmt::format("{}_{}", key, i + 1), value[i]);
            }
        };
        for (const auto& [key, value] : point.items()) add(key, value);
    }
    return rows;
}

}  // namespace

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string format_table(const Report& report) {
    std::string text;
    std::size_t key_width = 0;
    for (const auto& [key, value] : report.summary.items()) key_width = std::max(key_width, key.size());
    for (const auto& [key, value] : report.summary.items()) {
        text += fmt::format("{:<{}}  {}\n", key, key_width, cell(value, 10, "-"));
    }
    if (report.points.empty()) return text;
    if (!text.empty()) text += '\n';

    const std::vector<Json> points = as_rows(report.points, false);
    std::vector<std::vector<std::string>> rows(1);
    for (const auto& [key, value] : points.front().items()) rows[0].push_back(key);
    for (const Json& point : points) {
        rows.emplace_back();
        for (const auto& [key, value] : point.items()) rows.back().push_back(cell(value, 8, "-"));
    }
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column) {
            std::size_t width = 0;
            for (const auto& other : rows) width = std::max(width, other[column].size());
            line += fmt::format("{}{:>{}}", column > 0 ? "  " : "", row[column], width);
        }
        text += line + '\n';
    }
    return text;
}

std::string format_csv(const Report& report) {
    // A command without points has one row: its summary.
    const std::vector<Json> rows =
        as_rows(report.points.empty() ? std::vector{report.summary} : report.points, true);
    std::string text;
    for (const auto& [key, value] : rows.front().items()) text += (text.empty() ? "" : ",") + csv_quoted(key);
    text += '\n';
    for (const Json& row : rows) {
        std::string line;
        bool first = true;
        for (const auto& [key, value] : row.items()) {
            line += (first ? "" : ",") + csv_quoted(cell(value, 0, ""));
            first = false;
        }
        text += line + '\n';
    }
    return text;
}

std::string format_json(const Report& report) {
    Json object = {{"bayesaim", version()}, {"commit", git_commit()}, {"command", report.command}};
    object["configuration"] = report.configuration;
    for (const auto& [key, value] : report.summary.items()) object[key] = value;
    object["points"] = report.points;
    return object.dump(2) + '\n';
}

void check_writable(const std::string& file) {
    const std::string partial = fmt::format("{}.{}.part", file, getpid());
    const bool writable = std::ofstream(partial).good() && !std::filesystem::is_directory(file);
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    if (!writable) throw std::runtime_error(fmt::format("could not write '{}'", file));
}

void check_output_file(const std::string& output, const std::vector<std::string>& inputs) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    for (const std::string& input : inputs) {
        if (fs::equivalent(input, output, ignored))
            throw_invalid("--output", "another file than the one that is read", fmt::format("'{}'", output));
    }
    const fs::path folder = fs::absolute(output).parent_path();
    if (access(folder.c_str(), W_OK) != 0)
        throw std::runtime_error(fmt::format("could not write '{}'", output));
}

void publish(const Report& report, const std::string& format, const std::string& output) {
    const std::string text = format == "json"  ? format_json(report)
                             : format == "csv" ? format_csv(report)
                                               : format_table(report);
    if (!output.empty()) {
        write_whole(output, text);
    } else if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
        throw std::runtime_error("could not write to standard output");
    }
}

}  // namespace bayesaim::program
