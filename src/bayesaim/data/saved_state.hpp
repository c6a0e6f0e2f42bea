// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bayesaim/core/outcome.hpp"
#include "bayesaim/linalg/blas.hpp"
#include "bayesaim/linalg/overlap.hpp"

/// The state of a computation between two of its steps, as named arrays. A type lists its parts once, for both ways:
///
///   template <class Archive>
///   void visit(Archive& archive, Descent& descent) {
///       archive("step", descent.step);
///       archive("weights", descent.weights);
///   }
///   save(state, "descent", descent);   // state.arrays: descent.step, descent.weights
///   load(state, "descent", descent);
///
/// Parts are numbers, matrices, types with a visit() of their own, and optionals and vectors of parts. Every bit comes
/// back, also of numbers that are not finite. Arrays that do not fit a part throw InvalidArgument; whether parts fit
/// each other, in shape above all, is for their owner to check (check_resumed).
namespace bayesaim::data {

struct SavedState {
    std::map<std::string, linalg::Matrix> arrays{};  ///< none is empty

    bool empty() const { return arrays.empty(); }
    bool has(const std::string& name) const { return arrays.contains(name); }
    /// Whether there is an array of this name, or one of its parts.
    bool has_part(const std::string& name) const;
    /// Throws InvalidArgument if there is no such array.
    const linalg::Matrix& at(const std::string& name) const;

    /// The arrays whose names begin so, without that beginning.
    SavedState below(const std::string& prefix) const;
    /// Adds arrays under names that begin so.
    void add_below(const std::string& prefix, SavedState other);
};

namespace saved {

template <class Part>
concept Number = std::is_arithmetic_v<Part> || std::is_enum_v<Part>;

template <class Part>
struct IsVector : std::false_type {};
template <class Item>
struct IsVector<std::vector<Item>> : std::true_type {};
template <class Part>
struct IsOptional : std::false_type {};
template <class Item>
struct IsOptional<std::optional<Item>> : std::true_type {};

template <class Part>
constexpr bool is_matrix = std::is_base_of_v<Eigen::MatrixBase<Part>, Part>;

/// A type says `static constexpr bool one_row = true` if its parts are numbers, optional numbers and overlaps, which all
/// items of a vector have or have not. The vector is then one array, and each item a column of it.
template <class Part>
concept OneRow = requires {
    requires Part::one_row;
};

/// "checkpoint must be of this computation, got {value} as {name}"
[[noreturn]] void throw_misfit(const std::string& name, double value);

/// A number of the file as a part of this type.
template <Number Part>
Part number_as(const std::string& name, double value) {
    if constexpr (std::is_floating_point_v<Part>) {
        return static_cast<Part>(value);
    } else {
        static_assert(!std::is_enum_v<Part> || std::is_same_v<Part, Termination>);
        double lowest = 0, end = std::ldexp(1.0, std::numeric_limits<Part>::digits);
        if constexpr (std::is_signed_v<Part>) lowest = -end;
        if constexpr (std::is_enum_v<Part>) end = static_cast<double>(Termination::stopped) + 1;
        if (!(value >= lowest && value < end && value == std::floor(value))) throw_misfit(name, value);
        return static_cast<Part>(value);
    }
}

constexpr std::size_t most_empty_items = 1000;  // of a vector; the others have arrays

/// Appends the numbers of an item to a column.
struct ColumnWriter {
    std::vector<double>& numbers;

    template <class Part>
    void operator()(const char*, const Part& part) const {
        if constexpr (Number<Part>) {
            numbers.push_back(static_cast<double>(part));
        } else if constexpr (IsOptional<Part>::value) {
            numbers.push_back(part.has_value() ? 1 : 0);
            if (part || Number<typename Part::value_type>)
                (*this)("", part.value_or(typename Part::value_type()));
        } else {
            numbers.push_back(static_cast<double>(part.rows()));
            numbers.insert(numbers.end(), part.data(), part.data() + part.size());
        }
    }
};

/// Takes them again. Missing numbers are 0: the checksum of a file tells that it is damaged.
struct ColumnReader {
    const double *next, *end;

    double take() { return next != end ? *next++ : 0; }

    template <class Part>
    void operator()(const char* name, Part& part) {
        if constexpr (Number<Part>) {
            part = number_as<Part>(name, take());
        } else if constexpr (IsOptional<Part>::value) {
            const bool there = take() != 0;
            if (there || Number<typename Part::value_type>) (*this)(name, part.emplace());
            if (!there) part.reset();
        } else {
            const auto size = number_as<unsigned>(name, take());
            if (size > static_cast<unsigned>(linalg::max_layers)) throw_misfit(name, size);
            part.resize(size, size);
            for (double& number : part.reshaped()) number = take();
        }
    }
};

struct Writer {
    SavedState& state;
    std::string prefix;

    template <class Part>
    void operator()(const std::string& name, const Part& part) const {
        const std::string full = prefix + name;
        if constexpr (Number<Part>) {
            state.arrays[full] = linalg::Matrix::Constant(1, 1, static_cast<double>(part));
        } else if constexpr (is_matrix<Part>) {
            if (part.size() > 0) state.arrays[full] = part;
        } else if constexpr (IsOptional<Part>::value) {
            if (part) (*this)(name, *part);
        } else if constexpr (IsVector<Part>::value) {
            write_items(name, part);
        } else {
            // visit() takes what it may change; writing changes nothing.
            Writer inner{state, full + "."};
            visit(inner, const_cast<Part&>(part));
        }
    }

    template <class Item>
    void write_items(const std::string& name, const std::vector<Item>& items) const {
        if (items.empty()) return;
        if constexpr (Number<Item> || OneRow<Item>) {
            std::vector<double> numbers;
            ColumnWriter writer{numbers};
            for (const Item& item : items) {
                if constexpr (Number<Item>) {
                    writer("", item);
                } else {
                    visit(writer, const_cast<Item&>(item));
                }
            }
            const auto columns = static_cast<Eigen::Index>(items.size());
            state.arrays[prefix + name] = Eigen::Map<const linalg::Matrix>(
                numbers.data(), static_cast<Eigen::Index>(numbers.size()) / columns, columns);
        } else {
            (*this)(name + ".count", items.size());
            for (std::size_t i = 0; i < items.size(); ++i) (*this)(name + "." + std::to_string(i), items[i]);
        }
    }
};

struct Reader {
    const SavedState& state;
    std::string prefix;

    template <class Part>
    void operator()(const std::string& name, Part& part) const {
        const std::string full = prefix + name;
        if constexpr (Number<Part>) {
            part = number_as<Part>(full, state.at(full)(0, 0));
        } else if constexpr (is_matrix<Part>) {
            if (state.has(full)) {
                const linalg::Matrix& array = state.at(full);
                // The storage of an Overlap has a fixed size.
                if (Part::MaxRowsAtCompileTime != Eigen::Dynamic &&
                    (array.rows() > Part::MaxRowsAtCompileTime || array.cols() > Part::MaxColsAtCompileTime))
                    throw_misfit(full, static_cast<double>(array.rows()));
                part = array;
            } else {
                part.resize(0, 0);
            }
        } else if constexpr (IsOptional<Part>::value) {
            part.reset();
            if (state.has_part(full)) (*this)(name, part.emplace());
        } else if constexpr (IsVector<Part>::value) {
            read_items(name, part);
        } else {
            Reader inner{state, full + "."};
            visit(inner, part);
        }
    }

    template <class Item>
    void read_items(const std::string& name, std::vector<Item>& items) const {
        items.clear();
        if constexpr (Number<Item> || OneRow<Item>) {
            if (!state.has(prefix + name)) return;
            const linalg::Matrix& array = state.at(prefix + name);
            for (Eigen::Index column = 0; column < array.cols(); ++column) {
                const double* first = array.col(column).data();
                ColumnReader reader{first, first + array.rows()};
                Item item{};
                if constexpr (Number<Item>) {
                    reader("", item);
                } else {
                    visit(reader, item);
                }
                items.push_back(std::move(item));
            }
        } else {
            if (!state.has(prefix + name + ".count")) return;
            std::size_t count = 0;
            (*this)(name + ".count", count);
            if (count > state.arrays.size() + most_empty_items)
                throw_misfit(prefix + name + ".count", static_cast<double>(count));
            for (std::size_t i = 0; i < count; ++i)
                (*this)(name + "." + std::to_string(i), items.emplace_back());
        }
    }
};

}  // namespace saved

template <class Part>
void save(SavedState& state, const std::string& name, const Part& part) {
    saved::Writer{state, ""}(name, part);
}

template <class Part>
void load(const SavedState& state, const std::string& name, Part& part) {
    saved::Reader{state, ""}(name, part);
}

/// Throws InvalidArgument, "resumed weights must be of shape (10, 5), got (10, 4)", unless they are.
void check_resumed(const char* name, const Eigen::Ref<const linalg::Matrix>& array, Eigen::Index rows,
                   Eigen::Index columns);

/// A computation that was interrupted.
struct Checkpoint {
    std::string settings;  ///< of the whole computation, in the caller's format; must be equal to resume
    SavedState state{};
};

/// One HDF5 file: each array as a dataset, settings and a checksum as attributes. Written under a temporary name, then
/// renamed: a program that dies leaves the old file or the new one. See core/hdf5_file.hpp for errors.
void write_checkpoint(const std::string& file, const Checkpoint& checkpoint);

/// Throws InvalidArgument, "checkpoint '{file}': ..", if the file is damaged.
Checkpoint read_checkpoint(const std::string& file);

}  // namespace bayesaim::data
