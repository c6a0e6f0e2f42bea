// SPDX-License-Identifier: MIT
#include "bayesaim/data/input_file.hpp"

#include <fstream>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/core/hdf5_file.hpp"
#include "bayesaim/data/numpy_file.hpp"

namespace bayesaim::data {

std::unique_ptr<const InputFile> open_input(const std::string& file, std::string_view kind) {
    check_readable(kind, file);
    std::string start(6, '\0');
    std::ifstream(file, std::ios::binary).read(start.data(), static_cast<std::streamsize>(start.size()));
    if (start.starts_with("PK")) return std::make_unique<NumpyReader>(file, kind);
    const char* wanted = "an HDF5 file or an npz file of numpy";
    if (start == "\x93NUMPY")
        throw_invalid(kind, wanted, fmt::format("'{}', one array alone (numpy.savez writes several)", file));
    if (!is_hdf5(file)) throw_invalid(kind, wanted, fmt::format("'{}', another format or truncated", file));
    return std::make_unique<Hdf5Reader>(file, kind);
}

}  // namespace bayesaim::data
