// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <string>

#include "bayesaim/core/communicator.hpp"

/// The program among several ranks: each runs the same command, and the first one alone speaks and writes.
namespace bayesaim::program {

/// Joins the other processes if a launcher (mpirun, srun) started this one. From here on ranks but the first print
/// nothing. The object must live until the program ends.
std::unique_ptr<Communicator> join_ranks();

/// Throws on the first rank if ranks have different versions of the program or round differently.
void check_ranks();

/// Throws if srun started several processes, but not in the way that lets them find each other.
void check_found_each_other();

/// The ranks that were joined; without a launcher one process.
Communicator& ranks();

/// Whether this process speaks and writes files.
inline bool speaks() { return ranks().first(); }

/// Prints the message and returns the exit code. Among several ranks it ends all of them: the others may wait for this
/// one for ever. If all have the same message, it is printed once.
int fail(const std::string& message, int exit_code);

}  // namespace bayesaim::program
