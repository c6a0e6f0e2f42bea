// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/atomic_law.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::spectral {

AtomicLaw::AtomicLaw(std::span<const double> positions)
    : AtomicLaw(positions,
                std::vector<double>(positions.size(), 1.0 / static_cast<double>(positions.size()))) {}

AtomicLaw::AtomicLaw(std::span<const double> positions, std::span<const double> weights) {
    check_at_least("number of atoms", static_cast<long long>(positions.size()), 1);
    check_size("weights", static_cast<long long>(weights.size()), static_cast<long long>(positions.size()));
    for (std::size_t i = 0; i < positions.size(); ++i) {
        check_finite(fmt::format("position of atom {}", i + 1), positions[i]);
        check_positive(fmt::format("weight of atom {}", i + 1), weights[i]);
    }
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    if (std::abs(total - 1) > 1e-9) throw_invalid("sum of the weights", "1", total);

    std::vector<std::size_t> order(positions.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](auto i, auto j) { return positions[i] < positions[j]; });
    for (const std::size_t i : order) {
        if (!positions_.empty() && positions_.back() == positions[i]) {
            weights_.back() += weights[i] / total;
        } else {
            positions_.push_back(positions[i]);
            weights_.push_back(weights[i] / total);
        }
    }
    mean_ = std::inner_product(positions_.begin(), positions_.end(), weights_.begin(), 0.0);
    for (double& x : positions_) x -= mean_;
    // Next to a mean of 1e20, atoms at 2 and 5 are one.
    std::size_t last = 0;
    for (std::size_t i = 1; i < positions_.size(); ++i) {
        if (positions_[i] == positions_[last]) {
            weights_[last] += weights_[i];
        } else {
            positions_[++last] = positions_[i];
            weights_[last] = weights_[i];
        }
    }
    positions_.resize(last + 1);
    weights_.resize(last + 1);
    for (std::size_t i = 0; i < positions_.size(); ++i)
        variance_ += weights_[i] * positions_[i] * positions_[i];
    check_finite("second moment of the atoms", second_moment());
}

std::vector<Interval> AtomicLaw::centred_support() const {
    std::vector<Interval> support;
    for (const double x : positions_) support.push_back({x, x});
    return support;
}

double AtomicLaw::atomic_concentration() const {
    return std::inner_product(weights_.begin(), weights_.end(), weights_.begin(), 0.0);
}

Transform AtomicLaw::stieltjes(Complex z) const {
    // 1/(z - x) = (a - i v)/(a^2 + v^2), written out in reals so that the loop vectorises.
    const double u = z.real(), v = z.imag();
    double re = 0, im = 0, d_re = 0, d_im = 0;
    for (std::size_t i = 0; i < positions_.size(); ++i) {
        const double a = u - positions_[i], inverse = 1 / (a * a + v * v);
        const double p = a * inverse, m = -v * inverse, w = weights_[i];
        re += w * p;
        im += w * m;
        d_re -= w * (p * p - m * m);
        d_im -= w * 2 * p * m;
    }
    return {{re, im}, {d_re, d_im}};
}

Transform AtomicLaw::moment_transform(Complex z) const {
    Transform sum{0, 0};
    for (std::size_t i = 0; i < positions_.size(); ++i) {
        const Complex inverse = 1.0 / (z - positions_[i]);
        const double weight = weights_[i] * positions_[i];
        sum.value += weight * inverse;
        sum.derivative -= weight * inverse * inverse;
    }
    return sum;
}

double AtomicLaw::log_potential(Complex z) const {
    double sum = 0;
    for (std::size_t i = 0; i < positions_.size(); ++i) {
        sum += 0.5 * weights_[i] * std::log(std::norm(z - positions_[i]));
    }
    return sum;
}

double AtomicLaw::quantile(double level) const {
    double below = 0;
    for (std::size_t i = 0; i < positions_.size(); ++i) {
        below += weights_[i];
        if (below >= level) return positions_[i] + mean_;
    }
    return positions_.back() + mean_;
}

}  // namespace bayesaim::spectral
