// SPDX-License-Identifier: MIT
#pragma once
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
    switch (termination) {
        case Termination::converged:
            return "converged";
        case Termination::exact_recovery:
            return "exact recovery";
        case Termination::iteration_limit:
            return "iteration limit";
        case Termination::diverged:
            return "diverged";
        case Termination::stopped:
            return "stopped";
    }
    return "unknown";
}

/// Whether the computation reached its goal (the program then exits with code 0, otherwise with 2).
constexpr bool succeeded(Termination termination) {
    return termination == Termination::converged || termination == Termination::exact_recovery;
}

}  // namespace bayesaim
