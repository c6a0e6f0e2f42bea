// SPDX-License-Identifier: MIT
#pragma once

namespace bayesaim::program {

inline constexpr int interrupted_exit_code = 130;

/// From here on Ctrl-C (and SIGTERM) only raises a flag, so that what is done is kept; a second one ends the
/// program.
void catch_interrupts();
bool interrupted();

}  // namespace bayesaim::program
