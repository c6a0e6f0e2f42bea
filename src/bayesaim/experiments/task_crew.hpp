// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bayesaim/core/communicator.hpp"
#include "bayesaim/core/parallel.hpp"

/// Tasks of a study over several ranks. The first rank hands them out, and computes too.
namespace bayesaim::experiments {

/// A task by its number: small ones run one per thread, a large one with all threads.
struct Assignment {
    std::size_t task = 0;
    bool small = true;
};

/// The first rank: hands out the tasks in this order, large ones before small ones, until all are done.
struct HandOut {
    std::vector<Assignment> tasks{};
    std::size_t threads = 1;
    /// Computes a task here. Several threads call it.
    std::function<void(std::size_t task, ThreadPool& pool)> run;
    /// Takes the result of a task that another rank computed.
    std::function<void(std::size_t task, const std::string& result)> accept;
    /// Asked often; once it is true no task is begun, and those that run are stopped.
    std::function<bool()> stops;
};
void hand_out(const HandOut& work, Communicator& ranks);

/// The other ranks: computes what it gets until nothing is left. `compute` returns the result as text, std::nullopt if
/// it was stopped; it asks `stopped` now and then.
void compute_tasks(std::size_t threads, Communicator& ranks,
                   const std::function<std::optional<std::string>(
                       std::size_t task, ThreadPool& pool, const std::function<bool()>& stopped)>& compute);

}  // namespace bayesaim::experiments
