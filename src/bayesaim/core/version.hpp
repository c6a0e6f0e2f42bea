// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace bayesaim {

/// Version of the library, for instance "1.0.0".
std::string_view version();

/// The git commit from which the library was built: the full hash, with "+" appended if a tracked file was
/// modified, or "unknown" if it was built outside a git checkout.
std::string_view git_commit();

}  // namespace bayesaim
