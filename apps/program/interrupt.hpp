// SPDX-License-Identifier: MIT
#pragma once
#include <exception>
#include <string_view>

namespace bayesaim::program {

inline constexpr int interrupted_exit_code = 130;

/// From here on Ctrl-C (and SIGTERM, and SIGHUP unless it is ignored) only raises a flag, so that finished work is
/// kept, and says so on standard error. A second Ctrl-C ends the program at once.
void catch_interrupts();
/// Ctrl-C, or the host of the command (Host::stopped).
bool interrupted();
/// Whether any rank was. All ranks ask together, and from then on all were.
bool any_rank_interrupted();

/// The exit code of a command: 0 if its results are good, 2 if not; 130 if it was stopped, which is then
/// said together with a remark.
int exit_code(bool good, bool stopped, std::string_view remark);

/// Ends a command without partial results; the exit code is 130.
struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted; nothing was written"; }
};

/// After this, a limit on file sizes makes writing fail with a message instead of ending the program.
/// catch_interrupts calls it.
void ignore_file_size_signal();

}  // namespace bayesaim::program
