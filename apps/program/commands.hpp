// SPDX-License-Identifier: MIT
#pragma once
#include "program/command.hpp"

namespace bayesaim::program {

/// Each adds its command to the program.
void add_spectrum(Program& program);
void add_denoise(Program& program);
void add_theory(Program& program);
void add_threshold(Program& program);
void add_phase(Program& program);
void add_samples(Program& program);
void add_amp(Program& program);
void add_gd(Program& program);
void add_erm(Program& program);
void add_generate(Program& program);
void add_fit(Program& program);
void add_predict(Program& program);
void add_sweep(Program& program);
void add_merge(Program& program);
void add_rerun(Program& program);
void add_plot(Program& program);
void add_figure(Program& program);
void add_explore(Program& program);
/// Hidden: writes manual pages and completions.
void add_documentation(Program& program);

}  // namespace bayesaim::program
