// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/experiments/estimator_table.hpp"

namespace bayesaim::experiments {

/// Rows of the table for several layers: `deep-theory` and `deep-amp`.
std::vector<EstimatorEntry> deep_estimators();

}  // namespace bayesaim::experiments
