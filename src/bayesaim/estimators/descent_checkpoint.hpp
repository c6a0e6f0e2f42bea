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

/// One HDF5 file: /starts, /weights, /first_moment, /second_moment and /record, the texts and a checksum as
/// attributes. Written under a temporary name, then renamed: a program that dies leaves the old one or the
/// new one. The numbers of a descent that diverged, of no use, become 0. See data/hdf5_file for errors.
void write_descent_checkpoint(const std::string& file, const DescentCheckpoint& checkpoint);

/// InvalidArgument in one line that names the file when it is no checkpoint, incomplete or damaged.
DescentCheckpoint read_descent_checkpoint(const std::string& file);

}  // namespace bayesaim::estimators
