// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/core/checks.hpp"
#include "bayesaim/theory/state_evolution.hpp"

#include "binding.hpp"

namespace bayesaim::python {

inline theory::Start start_of(bool informed) {
    return informed ? theory::Start::informed : theory::Start::uninformed;
}

/// Settings that all of state evolution shares.
struct TheorySettings {
    bool small_width = false;
    double tolerance = 1e-12, sampled_tolerance = 1e-6;
    int max_iterations = 1000, integration_points = 128, integration_shifts = 8;
    std::uint64_t seed = 0;
    std::size_t threads = 0;

    theory::StateEvolutionOptions options(ThreadPool* pool) const {
        check_positive("tolerance", tolerance);
        check_positive("sampled_tolerance", sampled_tolerance);
        check_at_least("max_iterations", max_iterations, 1);
        check_at_least("integration_points", integration_points, 1);
        check_at_least("integration_shifts", integration_shifts, 2);
        return {tolerance,
                sampled_tolerance,
                max_iterations,
                {integration_shifts, integration_points, seed, pool}};
    }
};

}  // namespace bayesaim::python
