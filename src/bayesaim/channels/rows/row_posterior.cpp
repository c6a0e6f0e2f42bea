// SPDX-License-Identifier: MIT
#include "bayesaim/channels/rows/row_posterior.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "bayesaim/numerics/gaussian.hpp"

namespace bayesaim::channels {

double RowPosterior::evaluate(std::span<const double> omega, std::size_t label, double variance,
                              std::span<double> g) {
    const std::size_t others = omega.size() - 1;
    const double deviation = std::sqrt(variance);
    if (others == 1) {
        const double scale = std::numbers::sqrt2 * deviation, k = (omega[label] - omega[1 - label]) / scale;
        g[label] = numerics::inverse_mills_ratio(k) / scale;
        g[1 - label] = -g[label];
        return numerics::log_normal_cdf(k);
    }
    gap_.clear();
    for (std::size_t b = 0; b <= others; ++b) {
        if (b != label) gap_.push_back((omega[label] - omega[b]) / deviation);
    }
    // The mode: -s + sum lambda(s + a) = 0, by Newton from the left of a concave function's maximum.
    double mode = std::max(0.0, -*std::min_element(gap_.begin(), gap_.end())) / 2, curvature = 1;
    for (int i = 0; i < 50; ++i) {
        double slope = -mode;
        curvature = 1;
        for (const double a : gap_) {
            const double hazard = numerics::inverse_mills_ratio(mode + a);
            slope += hazard;
            curvature += hazard * (hazard + mode + a);
        }
        mode += slope / curvature;
        if (std::abs(slope) < 1e-3 * std::sqrt(curvature)) break;  // the rule needs no better centre
    }
    // The logarithm of the density has a second derivative below -1, and is analytic for |Im s| < 2.
    constexpr double reach = 8.7;
    const double step = 0.5 / std::sqrt(curvature);
    const auto half = static_cast<std::size_t>(reach / step) + 1, nodes = 2 * half + 1;
    const std::size_t size = nodes * others;
    for (auto* work : {&argument_, &scaled_, &slope_}) work->resize(size);
    for (std::size_t b = 0; b < others; ++b) {
        for (std::size_t k = 0; k < nodes; ++k)
            argument_[b * nodes + k] =
                mode + step * (static_cast<double>(k) - static_cast<double>(half)) + gap_[b];
    }
    numerics::scaled_log_normal_cdf(argument_, scaled_, slope_);
    exponent_.resize(nodes);
    double highest = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < nodes; ++k) {
        const double s = mode + step * (static_cast<double>(k) - static_cast<double>(half));
        double sum = -0.5 * s * s;
        for (std::size_t b = 0; b < others; ++b) {
            const double negative = std::min(argument_[b * nodes + k], 0.0);
            sum += scaled_[b * nodes + k] - 0.5 * negative * negative;
        }
        exponent_[k] = sum;
        highest = std::max(highest, sum);
    }
    double mass = 0;
    for (double& weight : exponent_) mass += weight = std::exp(weight - highest);
    g[label] = 0;
    for (std::size_t b = 0, entry = 0; b < others; ++b, ++entry) {
        if (entry == label) ++entry;
        double sum = 0;
        for (std::size_t k = 0; k < nodes; ++k) sum += exponent_[k] * slope_[b * nodes + k];
        g[entry] = -sum / (mass * deviation);
        g[label] -= g[entry];
    }
    return highest + std::log(mass * step / std::sqrt(2 * std::numbers::pi));
}

}  // namespace bayesaim::channels
