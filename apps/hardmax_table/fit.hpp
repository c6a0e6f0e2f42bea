// SPDX-License-Identifier: MIT
#pragma once
#include <span>
#include <vector>

#include "hardmax_table/nodes.hpp"

namespace bayesaim::hardmax_table {

/// Fits the series of p_T to what was measured and to the exact numbers; prints them, the checks and the
/// coefficients.
void report(int tokens, const std::vector<Node>& nodes);

/// Coefficients of the interpolation in the Chebyshev nodes of the first kind, from its values there, from the right.
std::vector<double> chebyshev_interpolation(std::span<const double> values);
void print_coefficients(const char* name, int tokens, std::span<const double> coefficients, int digits);

/// Prints the series of the probability that a row changes its winner, over the angle.
void report_disagreement(int tokens);

}  // namespace bayesaim::hardmax_table
