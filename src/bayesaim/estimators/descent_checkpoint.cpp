// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/descent_checkpoint.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/hdf5_file.hpp"

namespace bayesaim::estimators {
namespace {

/// Rows of numbers, one or more per descent (the columns of matrices). An empty table is not written.
struct Table {
    std::size_t columns = 1;
    std::vector<double> values{};
    std::size_t used = 0;  ///< numbers taken

    void append(std::initializer_list<double> row) {
        columns = row.size();
        values.insert(values.end(), row);
    }

    void append(const linalg::Matrix& matrix) {
        if (matrix.size() == 0) return;
        columns = static_cast<std::size_t>(matrix.rows());
        if (matrix.allFinite()) {
            values.insert(values.end(), matrix.data(), matrix.data() + matrix.size());
        } else {
            values.insert(values.end(), static_cast<std::size_t>(matrix.size()), 0);
        }
    }

    /// The next rows. Throws if none is left.
    std::span<const double> take(std::size_t rows) {
        const std::size_t count = rows * columns;
        if (count > values.size() - used) throw_invalid("checkpoint", "complete", "too few numbers");
        return std::span(values).subspan(std::exchange(used, used + count), count);
    }

    /// The next matrix, with this many columns; empty if the table is empty.
    linalg::Matrix take_matrix(std::size_t count) {
        if (values.empty()) return {};
        return Eigen::Map<const linalg::Matrix>(take(count).data(), static_cast<Eigen::Index>(columns),
                                                static_cast<Eigen::Index>(count));
    }
};
using Tables = std::map<std::string, Table>;
constexpr double none = -1;  // stands for a missing status or error, which are never negative

/// FNV-1a over the texts, and names, shapes and bits of the tables.
std::uint64_t checksum(const DescentCheckpoint& texts, const Tables& tables) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
    const auto add_text = [&add](const std::string& text) {
        for (const char c : text) add(static_cast<unsigned char>(c));
        add(text.size());
    };
    add_text(texts.settings);
    add_text(texts.finished);
    for (const auto& [name, table] : tables) {
        add_text(name);
        add(table.columns);
        for (const double value : table.values) add(std::bit_cast<std::uint64_t>(value));
    }
    return hash;
}

Tables to_tables(const std::vector<Descent>& descents) {
    Tables tables;
    for (const Descent& descent : descents) {
        tables["starts"].append({static_cast<double>(descent.start), static_cast<double>(descent.step),
                                 descent.status ? static_cast<double>(*descent.status) : none,
                                 descent.seconds, static_cast<double>(descent.weights.cols()),
                                 static_cast<double>(descent.record.size()),
                                 static_cast<double>(descent.factors)});
        tables["weights"].append(descent.weights);
        tables["first_moment"].append(descent.first_moment);
        tables["second_moment"].append(descent.second_moment);
        for (const DescentStep& row : descent.record) {
            tables["record"].append(
                {static_cast<double>(row.step), row.loss, row.gradient_norm, row.true_error.value_or(none)});
        }
    }
    std::erase_if(tables, [](const auto& entry) { return entry.second.values.empty(); });
    return tables;
}

std::vector<Descent> from_tables(Tables& tables) {
    std::vector<Descent> descents;
    Table& starts = tables["starts"];
    for (std::size_t m = starts.values.size() / starts.columns; m > 0; --m) {
        const auto row = starts.take(1);
        Descent descent;
        descent.start = static_cast<std::uint64_t>(row[0]);
        descent.step = static_cast<int>(row[1]);
        if (row[2] != none) descent.status = static_cast<Termination>(static_cast<int>(row[2]));
        descent.seconds = row[3];
        const auto columns = static_cast<std::size_t>(row[4]);
        if (row.size() > 6) descent.factors = static_cast<int>(row[6]);  // older files: tied attention
        descent.weights = tables["weights"].take_matrix(columns);
        descent.first_moment = tables["first_moment"].take_matrix(columns);
        descent.second_moment = tables["second_moment"].take_matrix(columns);
        for (auto rows = static_cast<std::size_t>(row[5]); rows > 0; --rows) {
            const auto values = tables["record"].take(1);
            DescentStep step{static_cast<int>(values[0]), values[1], values[2]};
            if (values[3] != none) step.true_error = values[3];
            descent.record.push_back(step);
        }
        descents.push_back(std::move(descent));
    }
    return descents;
}

DescentCheckpoint read(const std::string& file) {
    const Hdf5Reader reader(file);
    const Attributes attributes = reader.attributes();
    const auto settings = text_attribute(attributes, "settings"),
               finished = text_attribute(attributes, "finished");
    const auto sum = attributes.find("checksum");
    if (!settings || !finished || sum == attributes.end())
        throw InvalidArgument("it is an HDF5 file, but not a checkpoint");
    DescentCheckpoint checkpoint{*settings, *finished};
    Tables tables;
    for (const char* name : {"starts", "weights", "first_moment", "second_moment", "record"}) {
        if (!reader.has(name)) continue;
        const InputArray array = reader.array(name, "(1, rows, columns)");
        const auto rows = static_cast<std::size_t>(array.shape[0] * array.shape[1]);
        Table table{static_cast<std::size_t>(array.shape[2]), {}};
        table.values.resize(rows * table.columns);
        read_all(array, table.values.data());
        tables.emplace(name, std::move(table));
    }
    if (sum->second != Value(checksum(checkpoint, tables)))
        throw InvalidArgument("its checksum does not fit its content: the file is damaged");
    checkpoint.descents = from_tables(tables);
    return checkpoint;
}

}  // namespace

void write_descent_checkpoint(const std::string& file, const DescentCheckpoint& checkpoint) {
    const Tables tables = to_tables(checkpoint.descents);
    std::size_t bytes = checkpoint.settings.size() + checkpoint.finished.size();
    for (const auto& [name, table] : tables) bytes += table.values.size() * sizeof(double);
    Hdf5Writer out(file, static_cast<Eigen::Index>(bytes));
    for (const auto& [name, table] : tables) {
        const auto columns = static_cast<Eigen::Index>(table.columns),
                   rows = static_cast<Eigen::Index>(table.values.size()) / columns;
        out.write(name.c_str(), {1, rows, columns}, table.values.data());
    }
    out.finish({{"settings", checkpoint.settings},
                {"finished", checkpoint.finished},
                {"checksum", checksum(checkpoint, tables)}});
}

DescentCheckpoint read_descent_checkpoint(const std::string& file) {
    try {
        return read(file);
    } catch (const InvalidArgument& error) {
        throw InvalidArgument(fmt::format("checkpoint '{}': {}", file, error.what()));
    }
}

}  // namespace bayesaim::estimators
