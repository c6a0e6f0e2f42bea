// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace bayesaim {

/// Version of the library, for instance "0.1.0".
std::string_view version();

/// Git commit the library was built from: the full hash, "+" appended when a tracked file was modified,
/// "unknown" when it was built outside a git checkout.
std::string_view git_commit();

}  // namespace bayesaim
