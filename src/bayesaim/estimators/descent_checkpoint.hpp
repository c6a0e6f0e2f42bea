// SPDX-License-Identifier: MIT
#pragma once
#include <string>
#include <vector>

#include "bayesaim/estimators/gradient_descent.hpp"

namespace bayesaim::estimators {

/// Descents in the middle of a computation, with all bits that their next steps depend on.
struct DescentCheckpoint {
    std::string
        settings;  ///< of the whole computation, in the caller's words: a resumed one must have the same
    std::string finished;  ///< what the caller has done already, in its words
    std::vector<Descent> descents{};
};

/// One HDF5 file: /settings, /finished, /starts, /weights, /first_moment, /second_moment, /record, /checksum.
/// Written under a temporary name, then renamed: a program that dies leaves the old one or the new one.
/// std::runtime_error when it cannot be written. HDF5 is not thread-safe: use these from one thread.
void write_descent_checkpoint(const std::string& file, const DescentCheckpoint& checkpoint);

/// InvalidArgument in one line that names the file when it is no checkpoint, incomplete or damaged.
DescentCheckpoint read_descent_checkpoint(const std::string& file);

}  // namespace bayesaim::estimators
