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
    double tolerance = 1e-12;
    int max_iterations = 1000, integration_points = 128;
    std::uint64_t seed = 0;
    std::size_t threads = 0;

    theory::StateEvolutionOptions options(ThreadPool* pool) const {
        check_positive("tolerance", tolerance);
        check_at_least("max_iterations", max_iterations, 1);
        check_at_least("integration_points", integration_points, 1);
        return {.tolerance = tolerance,
                .max_iterations = max_iterations,
                .integration = {.points = integration_points, .seed = seed, .pool = pool}};
    }
};

}  // namespace bayesaim::python
