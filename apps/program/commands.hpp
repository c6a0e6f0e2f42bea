// SPDX-License-Identifier: MIT
#pragma once
#include <functional>

#include <CLI/CLI.hpp>

namespace bayesaim::program {

/// What a command does once its arguments are parsed; returns the exit code.
using Action = std::function<int()>;

/// Each adds its subcommand to the program and returns what to run for it.
Action add_spectrum(CLI::App& app);
Action add_denoise(CLI::App& app);
Action add_theory(CLI::App& app);
Action add_threshold(CLI::App& app);
Action add_phase(CLI::App& app);
Action add_amp(CLI::App& app);
Action add_gd(CLI::App& app);
Action add_generate(CLI::App& app);
Action add_fit(CLI::App& app);
Action add_predict(CLI::App& app);
Action add_sweep(CLI::App& app);
Action add_merge(CLI::App& app);
Action add_rerun(CLI::App& app);
Action add_figure(CLI::App& app);

}  // namespace bayesaim::program
