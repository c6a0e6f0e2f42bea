// SPDX-License-Identifier: MIT
#pragma once
#include <algorithm>
#include <cmath>

#include <Eigen/Core>

/// The law of the sum of a Gumbel and a normal variable. Its use: softmax(h)_b is the probability that h_b +
/// G_b is the largest entry if the G_j are independent Gumbel variables, and h is normal.
namespace bayesaim::channels {

/// The interval outside which the law of Gumbel + normal of this deviation has mass below exp(-36).
inline double left_reach(double deviation) { return 3.6 + 8.5 * deviation; }
inline double right_reach(double deviation) { return 36 + 8.5 * deviation; }

/// The multiples step x (first, first + 1, ...) of a step.
struct Lattice {
    double step = 1;
    Eigen::Index first = 0, size = 0;

    Lattice() = default;
    Lattice(double spacing, Eigen::Index start, Eigen::Index count)
        : step(spacing), first(start), size(count) {}
    Lattice(double low, double high, double spacing)
        : step(spacing),
          first(static_cast<Eigen::Index>(std::floor(low / spacing))),
          size(static_cast<Eigen::Index>(std::ceil(high / spacing)) - first + 1) {}

    double at(Eigen::Index i) const { return static_cast<double>(first + i) * step; }
    Eigen::ArrayXd points() const {
        return Eigen::ArrayXd::NullaryExpr(size, [this](Eigen::Index i) { return at(i); });
    }
    /// The index of a multiple, clamped to the ends of the lattice.
    Eigen::Index clamp(double multiple) const {
        return std::clamp(static_cast<Eigen::Index>(std::ceil(multiple)) - first, Eigen::Index{0}, size);
    }
};

/// Distribution and density at x of a Gumbel plus a normal variable, by the trapezoidal rule over the
/// narrower of the two.
struct NoisyGumbel {
    NoisyGumbel(const Eigen::ArrayXd& x, double deviation);

    Eigen::ArrayXd cdf, density;
};

}  // namespace bayesaim::channels
