// SPDX-License-Identifier: MIT
#include "program/spectra.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::program {

std::vector<double> eigenvalues_of(linalg::Matrix matrix, bool symmetric) {
    if (!symmetric) {
        const linalg::Vector squares = linalg::symmetric_eigenvalues(linalg::gram(1, matrix));
        std::vector<double> values;
        for (const double square : squares) {
            const double value = std::sqrt(std::max(square, 0.0));
            values.insert(values.end(), {value, -value});
        }
        return values;
    }
    const linalg::Vector values = linalg::symmetric_eigenvalues(std::move(matrix));
    return {values.begin(), values.end()};
}

}  // namespace bayesaim::program
