// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/core/hdf5_file.hpp"

namespace bayesaim {

/// Access to files that are written. HDF5 (1.10) crashes when the program ends if it could not flush a file, on a full
/// disk say. Through this driver no write fails: the first error is kept in `error`, an errno, which must live as long as
/// the file, and what follows is left out. A new file keeps the space that was reserved for it under its name.
Hdf5Handle access_that_keeps_errors(int& error);

}  // namespace bayesaim
