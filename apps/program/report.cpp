// SPDX-License-Identifier: MIT
#include "program/report.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/version.hpp"

#include "program/host.hpp"
#include "program/messages.hpp"
#include "program/ranks.hpp"

namespace bayesaim::program {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Value& value) {
    return std::visit(
        [](const auto& held) -> Json {
            using Held = std::remove_cvref_t<decltype(held)>;
            if constexpr (std::is_same_v<Held, std::monostate>) {
                return nullptr;
            } else if constexpr (std::is_same_v<Held, Value::List>) {
                Json list = Json::array();
                for (const Value& item : held) list.push_back(to_json(item));
                return list;
            } else {
                return held;
            }
        },
        value.variant());
}

Json to_json(const Record& record) {
    Json object = Json::object();
    for (const auto& [key, value] : record) object[key] = to_json(value);
    return object;
}

/// One value as text; numbers with `digits` significant digits, 0 for the fewest that identify the number.
std::string cell(const Value& value, int digits, const char* absent) {
    if (value.absent()) return absent;
    if (const auto* text = value.as<std::string>()) return *text;
    if (const auto* number = value.as<double>()) {
        if (!std::isfinite(*number)) return absent;
        return digits > 0 ? fmt::format("{:.{}g}", *number, digits) : fmt::format("{}", *number);
    }
    return to_json(value).dump();
}

std::string csv_quoted(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + "\"";
}

/// Adds the value; a list as fields name_1, name_2, .., a matrix as name_1_1, .. or not at all.
void add_flat(const std::string& name, const Value& value, bool with_matrices, Record& row) {
    const auto* list = value.as<Value::List>();
    if (list == nullptr) {
        row[name] = value;
    } else if (with_matrices || list->empty() || list->front().as<Value::List>() == nullptr) {
        for (std::size_t i = 0; i < list->size(); ++i)
            add_flat(fmt::format("{}_{}", name, i + 1), (*list)[i], with_matrices, row);
    }
}

/// Points as rows of single values.
std::vector<Record> as_rows(const std::vector<Record>& points, bool with_matrices) {
    std::vector<Record> rows;
    for (const Record& point : points) {
        Record& row = rows.emplace_back();
        for (const auto& [name, value] : point) add_flat(name, value, with_matrices, row);
    }
    return rows;
}

std::string format_table(const Report& report) {
    std::string text;
    std::size_t key_width = 0;
    for (const auto& [key, value] : report.summary) key_width = std::max(key_width, key.size());
    for (const auto& [key, value] : report.summary) {
        text += fmt::format("{:<{}}  {}\n", key, key_width, cell(value, 10, "-"));
    }
    if (report.points.empty()) return text;
    if (!text.empty()) text += '\n';

    const std::vector<Record> points = as_rows(report.points, false);
    std::vector<std::vector<std::string>> rows(1);
    for (const auto& [key, value] : points.front()) rows[0].push_back(key);
    for (const Record& point : points) {
        rows.emplace_back();
        for (const auto& [key, value] : point) rows.back().push_back(cell(value, 8, "-"));
    }
    std::vector<std::size_t> widths(rows[0].size(), 0);
    for (const auto& row : rows) {
        for (std::size_t column = 0; column < row.size(); ++column)
            widths[column] = std::max(widths[column], row[column].size());
    }
    for (const auto& row : rows) {
        for (std::size_t column = 0; column < row.size(); ++column)
            text += fmt::format("{}{:>{}}", column > 0 ? "  " : "", row[column], widths[column]);
        text += '\n';
    }
    return text;
}

std::string format_csv(const Report& report) {
    // A command without points has one row: its summary. Settings that a row does not have itself follow.
    const std::vector<Record> summary{report.summary};
    const std::vector<Record>& points = report.points.empty() ? summary : report.points;
    Record settings;
    for (const auto& [name, value] : report.configuration) {
        if (!points.front().contains(name)) add_flat(name, value, true, settings);
    }
    std::string text, same;  // `same` ends each row
    for (const auto& [name, value] : settings) same += ',' + csv_quoted(cell(value, 0, ""));
    for (const Record& point : points) {
        Record row;
        for (const auto& [name, value] : point) add_flat(name, value, true, row);
        if (text.empty()) {
            for (const auto& [name, value] : row) text += (text.empty() ? "" : ",") + csv_quoted(name);
            for (const auto& [name, value] : settings) text += ',' + csv_quoted(name);
            text += '\n';
        }
        const char* comma = "";
        for (const auto& [name, value] : row)
            text += std::exchange(comma, ",") + csv_quoted(cell(value, 0, ""));
        text += same + '\n';
    }
    return text;
}

std::string format_json(const Report& report) {
    Json object = {{"bayesaim", version()}, {"commit", git_commit()}, {"command", report.command}};
    object["configuration"] = to_json(report.configuration);
    for (const auto& [name, value] : report.summary) object[name] = to_json(value);
    object["points"] = Json::array();
    for (const Record& point : report.points) object["points"].push_back(to_json(point));
    return object.dump(2) + '\n';
}

}  // namespace

std::optional<double> percent_above(double value, double expected) {
    if (!(expected > 0) || !std::isfinite(value)) return std::nullopt;
    return 100 * (value / expected - 1);
}

void explain_differences(const Report& report, std::string_view what) {
    for (const Record& point : report.points) {
        const auto number = [&](const char* name) { return point.find(name)->number(); };
        const auto z = number("z_score"), percent = number("difference_percent");
        const double expected = 100 / (*number("alpha") * *number("dim"));
        if (!z || !percent || std::abs(*z) < 4 || std::abs(*percent) > expected) continue;
        tell(
            "bayesaim: theory is for large d. At alpha {:g} {} is {:.1f}% off; corrections up to the "
            "order of 1/(alpha d) = {:.0f}% are expected at d = {:g}\n",
            *number("alpha"), what, *percent, expected, *number("dim"));
        return;
    }
}

std::string to_json_text(const Record& record) { return to_json(record).dump(); }

void write_csv(const std::string& file, const Report& report) {
    if (!speaks()) return;
    if (!file.empty() && !report.points.empty()) write_whole(file, format_csv(report));
}

void check_writable(const std::string& file) {
    if (!speaks()) return;
    if (file.empty() || is_special(file)) return;
    const PartialFile partial(file);
}

void check_output_file(const std::string& output, const std::vector<std::string>& inputs) {
    if (!speaks()) return;
    namespace fs = std::filesystem;
    std::error_code ignored;
    for (const std::string& input : inputs) {
        if (fs::equivalent(input, output, ignored))
            throw_invalid("--output", "another file than the one that is read", fmt::format("'{}'", output));
    }
    if (output.ends_with(".csv") || output.ends_with(".json") || output.ends_with(".npz"))
        throw_invalid("--output", "the name of an HDF5 file, such as *.h5", fmt::format("'{}'", output));
    const PartialFile partial(output);
}

void publish(const Report& report, const std::string& format, const std::string& output) {
    if (!speaks()) return;
    const std::string text = format == "json"  ? format_json(report)
                             : format == "csv" ? format_csv(report)
                                               : format_table(report);
    if (const Host* host = Host::current()) {
        host->publish(text);
    } else if (!output.empty()) {
        write_whole(output, text);
    } else if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
        throw std::runtime_error(
            fmt::format("could not write to standard output: {}", std::generic_category().message(errno)));
    }
}

}  // namespace bayesaim::program
