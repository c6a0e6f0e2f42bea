// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>

namespace bayesaim {

/// Throws std::bad_alloc unless the process may have this much more memory. For libraries that do not return from such a
/// lack: OpenBLAS tries for ever, HDF5 crashes.
void check_memory(std::size_t bytes);

}  // namespace bayesaim
