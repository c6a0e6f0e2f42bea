// SPDX-License-Identifier: MIT
#pragma once
#include <string>

#include "program/command.hpp"

/// Manual pages and completions, from the same tables as --help.
namespace bayesaim::program {

/// bayesaim.1
std::string man_page(const ProgramDescription& program);
/// bayesaim-theory.1
std::string man_page(const ProgramDescription& program, const CommandDescription& command);

std::string bash_completion(const ProgramDescription& program);
std::string zsh_completion(const ProgramDescription& program);

}  // namespace bayesaim::program
