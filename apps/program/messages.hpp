// SPDX-License-Identifier: MIT
#pragma once
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace bayesaim::program {

/// Prints on standard error. Where that cannot be written (a log on a full disk), the command goes on, unlike with
/// fmt::print, which throws.
template <class... Arguments>
void tell(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
    std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace bayesaim::program
