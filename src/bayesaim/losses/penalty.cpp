// SPDX-License-Identifier: MIT
#include "bayesaim/losses/penalty.hpp"

#include "bayesaim/core/checks.hpp"

namespace bayesaim::losses {

Penalty parse_penalty(std::string_view name, std::string_view text) {
    return static_cast<Penalty>(check_one_of(name, text, {"trace", "frobenius"}));
}

std::string_view to_string(Penalty penalty) { return penalty == Penalty::trace ? "trace" : "frobenius"; }

}  // namespace bayesaim::losses
