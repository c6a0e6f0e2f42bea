// SPDX-License-Identifier: MIT
#pragma once

namespace bayesaim {

/// Of the numbers of an array, in memory or in a file.
enum class Precision { double_precision, float_precision };

}  // namespace bayesaim
