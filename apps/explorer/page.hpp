// SPDX-License-Identifier: MIT
#pragma once
#include <string_view>

/// The page, made by apps/explorer/page/build.mjs when the program is built.
namespace bayesaim::explorer {

/// One file of HTML with its script and style inside.
std::string_view page();
/// Content-Security-Policy: allows this script and this style by their hashes, and nothing from elsewhere.
std::string_view page_policy();

}  // namespace bayesaim::explorer
