// SPDX-License-Identifier: MIT
#include "bayesaim/channels/rows/row_posterior.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "bayesaim/numerics/gaussian.hpp"

namespace bayesaim::channels {

double RowPosterior::evaluate(std::span<const double> omega, std::size_t label,
                              std::span<const double> variance, std::span<double> g) {
    const std::size_t others = omega.size() - 1;
    g[label] = 0;
    if (others == 0) return 0;
    if (others == 1) {
        const double scale = std::sqrt(variance[0] + variance[1]),
                     k = (omega[label] - omega[1 - label]) / scale;
        g[label] = numerics::inverse_mills_ratio(k) / scale;
        g[1 - label] = -g[label];
        return numerics::log_normal_cdf(k);
    }
    gap_.clear();
    ratio_.clear();
    double mode = 0;
    for (std::size_t b = 0; b <= others; ++b) {
        if (b == label) continue;
        ratio_.push_back(std::sqrt(variance[label] / variance[b]));
        gap_.push_back((omega[label] - omega[b]) / std::sqrt(variance[b]));
        mode = std::max(mode, -gap_.back() / (2 * ratio_.back()));
    }
    // The mode: -s + sum t lambda(t s + a) = 0, by Newton from the left of a concave function's maximum.
    double curvature = 1;
    for (int i = 0; i < 50; ++i) {
        double slope = -mode;
        curvature = 1;
        for (std::size_t b = 0; b < others; ++b) {
            const double t = ratio_[b], x = t * mode + gap_[b], hazard = numerics::inverse_mills_ratio(x);
            slope += t * hazard;
            curvature += t * t * hazard * (hazard + x);
        }
        mode += slope / curvature;
        if (std::abs(slope) < 1e-3 * std::sqrt(curvature)) break;  // the rule needs no better centre
    }
    // The logarithm of the density has a second derivative below -1, and is analytic for |Im t s| < 2.
    constexpr double reach = 8.7;
    const double widest = std::max(1.0, *std::max_element(ratio_.begin(), ratio_.end()));
    const double step = 0.5 / std::max(std::sqrt(curvature), widest);
    const auto half = static_cast<std::size_t>(reach / step) + 1, nodes = 2 * half + 1;
    const std::size_t size = nodes * others;
    for (auto* work : {&argument_, &scaled_, &slope_}) work->resize(size);
    for (std::size_t b = 0; b < others; ++b) {
        for (std::size_t k = 0; k < nodes; ++k)
            argument_[b * nodes + k] =
                ratio_[b] * (mode + step * (static_cast<double>(k) - static_cast<double>(half))) + gap_[b];
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
    for (std::size_t b = 0, entry = 0; b < others; ++b, ++entry) {
        if (entry == label) ++entry;
        double sum = 0;
        for (std::size_t k = 0; k < nodes; ++k) sum += exponent_[k] * slope_[b * nodes + k];
        g[entry] = -sum / (mass * std::sqrt(variance[entry]));
        g[label] -= g[entry];
    }
    return highest + std::log(mass * step / std::sqrt(2 * std::numbers::pi));
}

}  // namespace bayesaim::channels
