// SPDX-License-Identifier: MIT
#pragma once
#include <vector>

/// Exact numbers of p_T at r = 1, where omega = 0 or nearly so and one label of each class stands for its class.
namespace bayesaim::hardmax_table {

/// Labels up to permutations of the tokens.
struct LabelClasses {
    explicit LabelClasses(int tokens);
    std::vector<std::vector<int>> representatives;
    std::vector<double> sizes;
};

struct NoData {
    double value, slope, curvature;  ///< p(1), p'(1), p''(1)
    double entropy;                  ///< of the labels: the integral of p
};
NoData without_data(int tokens);

}  // namespace bayesaim::hardmax_table
