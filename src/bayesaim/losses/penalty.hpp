// SPDX-License-Identifier: MIT
#pragma once
#include <string_view>

namespace bayesaim::losses {

/// What regularisation weighs.
enum class Penalty {
    trace,      ///< Tr S over S >= 0: weight decay on the factors of S
    frobenius,  ///< Tr S^2/2: weight decay on the entries of S
};
/// Training needs a positive regularisation to choose one of many minima. This one stands for the limit 0+.
inline constexpr double least_regularization = 1e-3;

/// Beyond this nothing changes: S is 0.
inline constexpr double largest_regularization = 1e12;

/// From its name. Throws InvalidArgument with the argument's `name` in the message.
Penalty parse_penalty(std::string_view name, std::string_view text);
std::string_view to_string(Penalty penalty);

}  // namespace bayesaim::losses
