// SPDX-License-Identifier: MIT
#pragma once
#include <vector>

#include "bayesaim/linalg/blas.hpp"

namespace bayesaim::program {

/// The eigenvalues; of a matrix that is not symmetric, its singular values with both signs.
std::vector<double> eigenvalues_of(linalg::Matrix matrix, bool symmetric);

}  // namespace bayesaim::program
