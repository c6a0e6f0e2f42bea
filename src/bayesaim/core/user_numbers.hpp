// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>
#include <string_view>

#include "bayesaim/core/checks.hpp"

/// Numbers that a user gives in arrays.
namespace bayesaim {

/// The estimators take fourth powers; in single precision, sums of squares.
template <class Scalar>
inline constexpr Scalar largest_number = 1e70;
template <>
inline constexpr float largest_number<float> = 1e15F;

template <class Scalar>
bool is_usable(Scalar value) {
    return std::abs(value) <= largest_number<Scalar>;
}

/// Throws unless the number is usable. Callers who format the name ask is_usable first.
template <class Scalar>
void check_usable(std::string_view name, Scalar value) {
    check_finite(name, static_cast<double>(value));
    check_between(name, static_cast<double>(value), -largest_number<Scalar>, largest_number<Scalar>);
}

}  // namespace bayesaim
