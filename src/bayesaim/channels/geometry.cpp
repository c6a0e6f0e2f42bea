// SPDX-License-Identifier: MIT
#include "bayesaim/channels/geometry.hpp"

#include "bayesaim/core/checks.hpp"

namespace bayesaim::channels {

Attention parse_attention(std::string_view name, std::string_view text) {
    return static_cast<Attention>(check_one_of(name, text, {"tied", "cross", "masked", "self", "causal"}));
}

std::string_view to_string(Attention attention) {
    constexpr std::string_view names[] = {"tied", "cross", "masked", "self", "causal"};
    return names[static_cast<std::size_t>(attention)];
}

}  // namespace bayesaim::channels
