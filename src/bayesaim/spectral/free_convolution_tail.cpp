// SPDX-License-Identifier: MIT
// Integrals of mu_D above a threshold.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "bayesaim/spectral/free_convolution.hpp"

namespace bayesaim::spectral {

/// The nodes of a bulk on one side of x, by new panels if x cuts it.
template <class Function>
void FreeConvolution::for_each_beyond(const Bulk& bulk, double x, bool above, Function f) const {
    const auto begin = nodes_.begin() + static_cast<std::ptrdiff_t>(bulk.first),
               end = nodes_.begin() + static_cast<std::ptrdiff_t>(bulk.last);
    if (begin == end) return;
    if (x <= bulk.lambda.low || x >= bulk.lambda.high) {
        if ((x <= bulk.lambda.low) == above) std::for_each(begin, end, f);
        return;
    }
    constexpr double pi = std::numbers::pi;
    const double part = (curve_point(x).real() - bulk.u.low) / (bulk.u.high - bulk.u.low);
    const double theta = 2 * std::asin(std::sqrt(std::clamp(part, 0.0, 1.0)));
    const double from = above ? theta : 0, to = above ? pi : theta;
    std::vector<Node> nodes;
    constexpr int most_halvings = 1000;
    add_panels(bulk.u, from, to, panel(bulk.u, from, to, {begin, end}), 0, most_halvings, nodes);
    std::for_each(nodes.begin(), nodes.end(), f);
}

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
    for (const Bulk& bulk : bulks_) for_each_beyond(bulk, x, true, add);
    return tail;
}

double FreeConvolution::thresholding_error(double threshold) const {
    const double x = threshold - law_->mean();
    double sum = 0;
    const auto add = [&](const Node& node, double miss) {
        sum += node.probability() * (miss * miss + node.variance);
    };
    for (const Bulk& bulk : bulks_) {
        for_each_beyond(bulk, x, true,
                        [&](const Node& node) { add(node, node.lambda - node.denoised - threshold); });
        for_each_beyond(bulk, x, false, [&](const Node& node) { add(node, node.denoised + law_->mean()); });
    }
    return sum / (std::numbers::pi * noise_);
}

}  // namespace bayesaim::spectral
