// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/data/tokens.hpp"
#include "bayesaim/experiments/task.hpp"

/// What tasks cost: rough counts of operations, for estimates of time, and memory within a factor of 2.
namespace bayesaim::experiments {

data::Precision precision_of(const Task& task);
bool untied(const Task& task);
Eigen::Index student_columns(const Task& task);  ///< of gradient descent

double theory_operations(const Task& task);
double amp_operations(const Task& task);
double erm_operations(const Task& task);
double erm_theory_operations(const Task& task);
double gd_operations(const Task& task);

double theory_bytes(const Task& task);
double amp_bytes(const Task& task);
double gd_bytes(const Task& task);

}  // namespace bayesaim::experiments
