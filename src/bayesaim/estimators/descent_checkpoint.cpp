// SPDX-License-Identifier: MIT
#include "bayesaim/estimators/descent_checkpoint.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::estimators {
namespace {

/// While it lives, HDF5 reports errors by return values alone.
class QuietErrors {
  public:
    QuietErrors() {
        H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    }
    ~QuietErrors() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
    QuietErrors(const QuietErrors&) = delete;
    QuietErrors& operator=(const QuietErrors&) = delete;

  private:
    H5E_auto2_t function_ = nullptr;
    void* data_ = nullptr;
};

/// An HDF5 identifier and what closes it.
class Handle {
  public:
    Handle(hid_t id, herr_t (*closer)(hid_t)) : id_(id), close_(closer) {}
    ~Handle() { close(); }
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    bool valid() const { return id_ >= 0; }
    hid_t get() const { return id_; }
    bool close() { return !valid() || close_(std::exchange(id_, H5I_INVALID_HID)) >= 0; }

  private:
    hid_t id_;
    herr_t (*close_)(hid_t);
};

/// What a file holds: rows of numbers by name. Texts are numbers too, one per byte.
struct Table {
    std::size_t columns = 1;
    std::vector<double> values{};
};
using Tables = std::map<std::string, Table>;

/// FNV-1a over names, shapes and bits of all tables.
std::uint64_t checksum(const Tables& tables) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
    for (const auto& [name, table] : tables) {
        for (const char c : name) add(static_cast<unsigned char>(c));
        add(table.columns);
        for (const double value : table.values) add(std::bit_cast<std::uint64_t>(value));
    }
    return hash;
}

Table text_table(const std::string& text) {
    Table table;
    for (const char c : text) table.values.push_back(static_cast<unsigned char>(c));
    return table;
}

std::string text_of(const Table& table) {
    std::string text;
    for (const double value : table.values) text += static_cast<char>(value);
    return text;
}

void append(Table& table, std::initializer_list<double> row) {
    table.columns = row.size();
    table.values.insert(table.values.end(), row);
}

void append(Table& table, const linalg::Matrix& matrix) {
    table.columns = static_cast<std::size_t>(std::max<Eigen::Index>(1, matrix.rows()));
    table.values.insert(table.values.end(), matrix.data(), matrix.data() + matrix.size());
}

Tables to_tables(const DescentCheckpoint& checkpoint) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    Tables tables = {{"settings", text_table(checkpoint.settings)},
                     {"finished", text_table(checkpoint.finished)},
                     {"starts", {6}},
                     {"record", {4}}};
    for (const char* name : {"weights", "first_moment", "second_moment"}) tables[name];
    for (const Descent& descent : checkpoint.descents) {
        append(tables["starts"],
               {static_cast<double>(descent.start), static_cast<double>(descent.step),
                descent.status ? static_cast<double>(*descent.status) : -1, descent.seconds,
                static_cast<double>(descent.weights.cols()), static_cast<double>(descent.record.size())});
        append(tables["weights"], descent.weights);
        append(tables["first_moment"], descent.first_moment);
        append(tables["second_moment"], descent.second_moment);
        for (const DescentStep& row : descent.record) {
            append(tables["record"], {static_cast<double>(row.step), row.loss, row.gradient_norm,
                                      row.true_error.value_or(none)});
        }
    }
    return tables;
}

/// Takes the next numbers of a table; nothing can be taken beyond its end.
class Reader {
  public:
    Reader(const std::string& file, const Table& table) : file_(file), table_(table) {}

    std::span<const double> take(std::size_t count) {
        if (count > table_.values.size() - used_)
            throw_invalid("checkpoint", "complete", fmt::format("'{}', with numbers missing", file_));
        return std::span(table_.values).subspan(std::exchange(used_, used_ + count), count);
    }

    linalg::Matrix matrix(std::size_t columns) {
        const std::size_t rows = table_.values.empty() ? 0 : table_.columns;
        const auto values = take(rows * (rows == 0 ? 0 : columns));
        return Eigen::Map<const linalg::Matrix>(values.data(), static_cast<Eigen::Index>(rows),
                                                rows == 0 ? 0 : static_cast<Eigen::Index>(columns));
    }

  private:
    const std::string& file_;
    const Table& table_;
    std::size_t used_ = 0;
};

DescentCheckpoint from_tables(const std::string& file, Tables& tables) {
    DescentCheckpoint checkpoint{text_of(tables["settings"]), text_of(tables["finished"])};
    Reader starts(file, tables["starts"]), weights(file, tables["weights"]),
        first(file, tables["first_moment"]), second(file, tables["second_moment"]),
        record(file, tables["record"]);
    for (std::size_t m = 0; m < tables["starts"].values.size() / 6; ++m) {
        const auto row = starts.take(6);
        Descent descent;
        descent.start = static_cast<std::uint64_t>(row[0]);
        descent.step = static_cast<int>(row[1]);
        if (row[2] >= 0) descent.status = static_cast<Termination>(static_cast<int>(row[2]));
        descent.seconds = row[3];
        const auto columns = static_cast<std::size_t>(row[4]);
        descent.weights = weights.matrix(columns);
        descent.first_moment = first.matrix(columns);
        descent.second_moment = second.matrix(columns);
        for (auto rows = static_cast<std::size_t>(row[5]); rows > 0; --rows) {
            const auto values = record.take(4);
            DescentStep step{static_cast<int>(values[0]), values[1], values[2]};
            if (!std::isnan(values[3])) step.true_error = values[3];
            descent.record.push_back(step);
        }
        checkpoint.descents.push_back(std::move(descent));
    }
    return checkpoint;
}

bool write_array(hid_t file, const char* name, hid_t stored, hid_t memory, std::array<hsize_t, 2> shape,
                 const void* values) {
    const Handle space(H5Screate_simple(2, shape.data(), nullptr), H5Sclose);
    Handle dataset(H5Dcreate2(file, name, stored, space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                   H5Dclose);
    if (!dataset.valid()) return false;
    const bool empty = shape[0] == 0;
    return (empty || H5Dwrite(dataset.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0) &&
           dataset.close();
}

bool write_file(const std::string& name, const Tables& tables) {
    Handle file(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    if (!file.valid()) return false;
    for (const auto& [key, table] : tables) {
        const std::array<hsize_t, 2> shape = {table.values.size() / table.columns, table.columns};
        if (!write_array(file.get(), key.c_str(), H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, shape,
                         table.values.data()))
            return false;
    }
    const std::uint64_t sum = checksum(tables);
    return write_array(file.get(), "checksum", H5T_STD_U64LE, H5T_NATIVE_UINT64, {1, 1}, &sum) &&
           file.close();
}

/// The shape of a dataset of two dimensions; nothing if it is something else, or too large to be ours.
std::optional<std::array<hsize_t, 2>> shape_of(const Handle& dataset) {
    if (!dataset.valid()) return std::nullopt;
    const Handle space(H5Dget_space(dataset.get()), H5Sclose);
    std::array<hsize_t, 2> shape{};
    if (H5Sget_simple_extent_ndims(space.get()) != 2 ||
        H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr) < 0)
        return std::nullopt;
    constexpr hsize_t largest = hsize_t{1} << 40;
    if (shape[1] == 0 || shape[0] > largest / shape[1]) return std::nullopt;
    return shape;
}

/// Nothing if a table is missing or cannot be read, or the checksum is another one.
std::optional<Tables> read_file(const std::string& name) {
    const Handle file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (!file.valid()) return std::nullopt;
    Tables tables;
    for (const char* key :
         {"settings", "finished", "starts", "weights", "first_moment", "second_moment", "record"}) {
        const Handle dataset(H5Dopen2(file.get(), key, H5P_DEFAULT), H5Dclose);
        const auto shape = shape_of(dataset);
        if (!shape) return std::nullopt;
        Table table{(*shape)[1], std::vector<double>((*shape)[0] * (*shape)[1])};
        if (!table.values.empty() &&
            H5Dread(dataset.get(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, table.values.data()) < 0)
            return std::nullopt;
        tables.emplace(key, std::move(table));
    }
    const Handle dataset(H5Dopen2(file.get(), "checksum", H5P_DEFAULT), H5Dclose);
    std::uint64_t sum = 0;
    if (shape_of(dataset) != std::array<hsize_t, 2>{1, 1} ||
        H5Dread(dataset.get(), H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &sum) < 0 ||
        sum != checksum(tables))
        return std::nullopt;
    return tables;
}

}  // namespace

void write_descent_checkpoint(const std::string& file, const DescentCheckpoint& checkpoint) {
    const QuietErrors quiet;
    const std::string partial = fmt::format("{}.{}.part", file, getpid());
    std::error_code error;
    if (!write_file(partial, to_tables(checkpoint))) {
        std::filesystem::remove(partial, error);
        throw std::runtime_error(fmt::format("could not write '{}'", file));
    }
    std::filesystem::rename(partial, file, error);
    if (!error) return;
    const std::string reason = error.message();
    std::filesystem::remove(partial, error);
    throw std::runtime_error(fmt::format("could not write '{}': {}", file, reason));
}

DescentCheckpoint read_descent_checkpoint(const std::string& file) {
    const QuietErrors quiet;
    if (access(file.c_str(), R_OK) != 0 || std::filesystem::is_directory(file))
        throw_invalid("checkpoint", "a readable file", fmt::format("'{}'", file));
    if (H5Fis_hdf5(file.c_str()) <= 0)
        throw_invalid("checkpoint", "an HDF5 file", fmt::format("'{}', another format or truncated", file));
    auto tables = read_file(file);
    if (!tables)
        throw_invalid("checkpoint", "complete", fmt::format("'{}', another kind of file or damaged", file));
    return from_tables(file, *tables);
}

}  // namespace bayesaim::estimators
