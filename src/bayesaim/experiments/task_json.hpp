// SPDX-License-Identifier: MIT
#pragma once
#include <nlohmann/json.hpp>

#include "bayesaim/experiments/estimator_table.hpp"

/// Tasks and outcomes as JSON. Only .cpp files include this: users of the library need no JSON library.
namespace bayesaim::experiments {

using Json = nlohmann::ordered_json;

/// The settings of the task; without `all`, only those that decide the result.
Json to_json(const Task& task, bool all);
/// Throws InvalidArgument for an unknown setting or a value of the wrong type.
Task task_from_json(const Json& object);

Json to_json(const Outcome& outcome);
Outcome outcome_from_json(const Json& object);

}  // namespace bayesaim::experiments
