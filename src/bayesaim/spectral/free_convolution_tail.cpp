// SPDX-License-Identifier: MIT
// Integrals of mu_D above a threshold.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "bayesaim/spectral/free_convolution.hpp"

namespace bayesaim::spectral {

TailMoments FreeConvolution::above(double threshold) const {
    constexpr double pi = std::numbers::pi;
    const double x = threshold - law_->mean();
    TailMoments tail;
    const auto add = [&](const Node& node) {
        const double weight = node.probability() / (pi * noise_), excess = node.lambda - x;
        const double hilbert = law_->stieltjes({node.u, node.v}).value.real();
        tail.mass += weight;
        tail.first += weight * excess;
        tail.second += weight * excess * excess;
        tail.hilbert += weight * hilbert;
        tail.divergence += 2 * weight * excess * hilbert;
        tail.divergence_growth += 2 * weight * (hilbert * hilbert - std::pow(node.v / noise_, 2) / 3);
    };
    for (const Bulk& bulk : bulks_) {
        if (x >= bulk.lambda.high) continue;
        const auto begin = nodes_.begin() + static_cast<std::ptrdiff_t>(bulk.first),
                   end = nodes_.begin() + static_cast<std::ptrdiff_t>(bulk.last);
        if (x <= bulk.lambda.low) {
            std::for_each(begin, end, add);
            continue;
        }
        const double part = (curve_point(x).real() - bulk.u.low) / (bulk.u.high - bulk.u.low);
        const double theta = 2 * std::asin(std::sqrt(std::clamp(part, 0.0, 1.0)));
        std::vector<Node> nodes;
        add_panels(bulk.u, theta, pi, panel(bulk.u, theta, pi, {begin, end}), 0, nodes);
        std::for_each(nodes.begin(), nodes.end(), add);
    }
    return tail;
}

double FreeConvolution::thresholding_error(double threshold) const {
    constexpr double pi = std::numbers::pi;
    const double mean = law_->mean(), x = threshold - mean;
    double sum = 0;
    const auto add = [&](const Node& node) {
        const double distance =
            node.lambda > x ? 2 * noise_ * law_->stieltjes({node.u, node.v}).value.real() - threshold
                            : node.denoised + mean;
        sum += node.probability() / (pi * noise_) * (distance * distance + node.variance);
    };
    for (const Bulk& bulk : bulks_) {
        const auto begin = nodes_.begin() + static_cast<std::ptrdiff_t>(bulk.first),
                   end = nodes_.begin() + static_cast<std::ptrdiff_t>(bulk.last);
        if (x <= bulk.lambda.low || x >= bulk.lambda.high) {
            std::for_each(begin, end, add);
            continue;
        }
        const double part = (curve_point(x).real() - bulk.u.low) / (bulk.u.high - bulk.u.low);
        const double theta = 2 * std::asin(std::sqrt(std::clamp(part, 0.0, 1.0)));
        std::vector<Node> nodes;
        add_panels(bulk.u, 0, theta, panel(bulk.u, 0, theta, {begin, end}), 0, nodes);
        add_panels(bulk.u, theta, pi, panel(bulk.u, theta, pi, {begin, end}), 0, nodes);
        std::for_each(nodes.begin(), nodes.end(), add);
    }
    return sum;
}

}  // namespace bayesaim::spectral
