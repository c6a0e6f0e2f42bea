// SPDX-License-Identifier: MIT
#include "bayesaim/numerics/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::numerics {

Estimate combine(std::span<const double> independent_estimates) {
    check_at_least("number of independent estimates", static_cast<long long>(independent_estimates.size()),
                   2);
    // A plain loop, because Eigen sums in an order that depends on the address of the numbers.
    const auto count = static_cast<double>(independent_estimates.size());
    double mean = 0, squares = 0;
    for (const double estimate : independent_estimates) mean += estimate / count;
    for (const double estimate : independent_estimates) squares += (estimate - mean) * (estimate - mean);
    return {mean, std::sqrt(squares / (count * (count - 1)))};
}

std::optional<double> Mean::z_score(double expected) const {
    constexpr std::size_t fewest = 4;
    if (count < fewest || !(standard_error.value_or(0) > 0)) return std::nullopt;
    return (value - expected) / *standard_error;
}

std::optional<Mean> mean_of(std::span<const double> values) {
    std::vector<double> finite;
    std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
                 [](double value) { return std::isfinite(value); });
    if (finite.empty()) return std::nullopt;
    if (finite.size() == 1) return Mean{finite.front()};
    const Estimate all = combine(finite);
    return Mean{all.value, all.standard_error, finite.size()};
}

}  // namespace bayesaim::numerics
