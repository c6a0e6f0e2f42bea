// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>

#include <rapidcheck.h>

namespace bayesaim::test {

/// Uniform on [low, high], at every size of the test case.
inline double uniform(double low, double high) {
    constexpr int cells = 1'000'000;
    const int cell = *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0, cells + 1));
    return low + (high - low) * cell / cells;
}

inline double log_uniform(double low, double high) {
    return std::exp(uniform(std::log(low), std::log(high)));
}

inline int integer(int low, int high) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high + 1));
}

}  // namespace bayesaim::test
