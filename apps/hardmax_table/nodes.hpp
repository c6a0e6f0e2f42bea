// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace bayesaim::hardmax_table {

/// An estimate of p_T(r) and of I_out, from one shift of a net of points, or from a rule without sampling.
struct Node {
    int tokens = 0;
    double r = 0;
    std::size_t points = 0;
    int draws = 0;  ///< labels drawn at each point; 0: all labels
    int shift = 0;
    double p = 0, information = 0;
    std::string key() const;  ///< tokens,r,points,draws,shift
};

/// What is computed for T tokens, in order.
std::vector<Node> plan(int tokens);
/// Fills p and information.
Node compute(const Node& node);

}  // namespace bayesaim::hardmax_table
