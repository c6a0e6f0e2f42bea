// SPDX-License-Identifier: MIT
#pragma once
#include <exception>

namespace bayesaim::program {

inline constexpr int interrupted_exit_code = 130;

/// From here on Ctrl-C (and SIGTERM) only raises a flag, so that what is done is kept; a second one ends the
/// program.
void catch_interrupts();
bool interrupted();

/// Ends a command of which nothing can be kept, with exit code 130.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted; nothing was written"; }
};

/// A limit on file sizes then makes writing fail, with a message, instead of ending the program. Part of
/// catch_interrupts.
void ignore_file_size_signal();

}  // namespace bayesaim::program
