// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <functional>

#include "bayesaim/core/parallel.hpp"

namespace bayesaim::theory {

/// Solves independent points of a curve: in parallel, or in turn if the work inside a point shares the threads. `progress`
/// receives the finished fraction. If it returns false, or the pool stops (ThreadPool::stop_when), no further point is
/// begun. Returns the number of points before the first that is missing.
std::size_t solve_points(std::size_t count, bool in_turn, ThreadPool& pool,
                         const std::function<bool(double)>& progress,
                         const std::function<void(std::size_t)>& solve);

}  // namespace bayesaim::theory
