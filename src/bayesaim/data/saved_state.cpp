// SPDX-License-Identifier: MIT
#include "bayesaim/data/saved_state.hpp"

#include <bit>
#include <cstdint>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/hdf5_file.hpp"

namespace bayesaim::data {
namespace {

/// FNV-1a over the settings, and names, shapes and bits of the arrays.
std::uint64_t checksum(const Checkpoint& checkpoint) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
    const auto add_text = [&add](const std::string& text) {
        for (const char c : text) add(static_cast<unsigned char>(c));
        add(text.size());
    };
    add_text(checkpoint.settings);
    for (const auto& [name, array] : checkpoint.state.arrays) {
        add_text(name);
        add(static_cast<std::uint64_t>(array.cols()));
        for (const double value : array.reshaped()) add(std::bit_cast<std::uint64_t>(value));
    }
    return hash;
}

Checkpoint read(const std::string& file) {
    const Hdf5Reader reader(file);
    const Attributes attributes = reader.attributes();
    const auto settings = text_attribute(attributes, "settings");
    const auto sum = attributes.find("checksum");
    if (!settings || sum == attributes.end())
        throw InvalidArgument("it is an HDF5 file, but not a checkpoint");
    Checkpoint checkpoint{*settings};
    for (const std::string& name : reader.names()) {
        const InputArray array = reader.array(name, "(1, columns, rows)");
        linalg::Matrix& values = checkpoint.state.arrays[name];
        values.resize(array.shape[2], array.shape[1]);
        if (array.shape[0] != 1 || !array.values->read({0, 1}, values.data(), [](Range) {}))
            throw InvalidArgument(fmt::format("its array {} is damaged", name));
    }
    if (sum->second != Value(checksum(checkpoint)))
        throw InvalidArgument("its checksum does not fit its content: the file is damaged");
    return checkpoint;
}

}  // namespace

void saved::throw_misfit(const std::string& name, double value) {
    throw_invalid("checkpoint", "of this computation", fmt::format("{} as {}", value, name));
}

void check_resumed(const char* name, const Eigen::Ref<const linalg::Matrix>& array, Eigen::Index rows,
                   Eigen::Index columns) {
    if (array.rows() == rows && array.cols() == columns) return;
    throw_invalid(fmt::format("resumed {}", name), fmt::format("of shape ({}, {})", rows, columns),
                  fmt::format("({}, {})", array.rows(), array.cols()));
}

const linalg::Matrix& SavedState::at(const std::string& name) const {
    const auto found = arrays.find(name);
    if (found == arrays.end()) throw_invalid("checkpoint", "complete", fmt::format("no array '{}'", name));
    return found->second;
}

bool SavedState::has_part(const std::string& name) const {
    const auto part = arrays.lower_bound(name + ".");
    return has(name) || (part != arrays.end() && part->first.starts_with(name + "."));
}

SavedState SavedState::below(const std::string& prefix) const {
    SavedState result;
    for (auto at = arrays.lower_bound(prefix); at != arrays.end() && at->first.starts_with(prefix); ++at)
        result.arrays[at->first.substr(prefix.size())] = at->second;
    return result;
}

void SavedState::add_below(const std::string& prefix, SavedState other) {
    for (auto& [name, array] : other.arrays) arrays[prefix + name] = std::move(array);
}

void write_checkpoint(const std::string& file, const Checkpoint& checkpoint) {
    std::size_t bytes = checkpoint.settings.size();
    constexpr std::size_t of_dataset = 1024;  // what HDF5 adds to each
    for (const auto& [name, array] : checkpoint.state.arrays)
        bytes += static_cast<std::size_t>(array.size()) * sizeof(double) + of_dataset;
    Hdf5Writer out(file, static_cast<std::ptrdiff_t>(bytes));
    for (const auto& [name, array] : checkpoint.state.arrays)
        out.write(name.c_str(), {1, array.cols(), array.rows()}, array.data());
    out.finish({{"settings", checkpoint.settings}, {"checksum", checksum(checkpoint)}});
}

Checkpoint read_checkpoint(const std::string& file) {
    try {
        return read(file);
    } catch (const InvalidArgument& error) {
        throw InvalidArgument(fmt::format("checkpoint '{}': {}", file, error.what()));
    }
}

}  // namespace bayesaim::data
