// SPDX-License-Identifier: MIT
#pragma once
#include <string>
#include <vector>

#include "bayesaim/estimators/gradient_descent.hpp"

namespace bayesaim::estimators {

/// Unfinished descents, with every number that their next steps depend on.
struct DescentCheckpoint {
    std::string settings;  ///< of the whole computation, in the caller's format; must be equal to resume
    std::string finished;  ///< finished work of the caller, in its own format
    std::vector<Descent> descents{};
};

/// One HDF5 file: /starts, /weights, /first_moment, /second_moment and /record, the texts and a checksum as
/// attributes. Written under a temporary name, then renamed: a program that dies leaves the old file or the
/// new one. The numbers of a diverged descent are written as 0. See core/hdf5_file.hpp for errors.
void write_descent_checkpoint(const std::string& file, const DescentCheckpoint& checkpoint);

/// Throws InvalidArgument, with the name of the file, if it is not a checkpoint, incomplete or damaged.
DescentCheckpoint read_descent_checkpoint(const std::string& file);

}  // namespace bayesaim::estimators
