// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <string_view>

namespace bayesaim {

/// How an iterative computation ended. Not converging is data, not an exception.
enum class Termination {
    converged,
    exact_recovery,   ///< the error is exactly zero
    iteration_limit,  ///< the result is the best value found; it is not within the tolerance
    diverged,
    stopped,  ///< the caller asked to stop
};

constexpr std::string_view to_string(Termination termination) {
    constexpr std::string_view names[] = {"converged", "exact recovery", "iteration limit", "diverged",
                                          "stopped"};
    return names[static_cast<std::size_t>(termination)];
}

/// Whether the computation reached its goal. If not, the program says so; with --strict it exits with 2.
constexpr bool succeeded(Termination termination) {
    return termination == Termination::converged || termination == Termination::exact_recovery;
}

}  // namespace bayesaim
