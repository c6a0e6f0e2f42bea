// SPDX-License-Identifier: MIT
#pragma once
#include <functional>

#include "program/command.hpp"

namespace bayesaim::program {

/// Runs a command after its arguments are parsed; returns the exit code.
using Action = std::function<int()>;

/// Each adds its subcommand to the program and returns the function that runs it.
Action add_spectrum(Program& program);
Action add_denoise(Program& program);
Action add_theory(Program& program);
Action add_threshold(Program& program);
Action add_phase(Program& program);
Action add_amp(Program& program);
Action add_gd(Program& program);
Action add_generate(Program& program);
Action add_fit(Program& program);
Action add_predict(Program& program);
Action add_sweep(Program& program);
Action add_merge(Program& program);
Action add_rerun(Program& program);
Action add_figure(Program& program);

}  // namespace bayesaim::program
