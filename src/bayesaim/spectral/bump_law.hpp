// SPDX-License-Identifier: MIT
#pragma once
#include <span>

#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// A semicircle of the given variance around a centre, or an atom if the variance is 0.
struct Bump {
    double centre = 0, weight = 0, variance = 0;
};

/// A mixture of semicircles and atoms, mu = sum_j weight_j bump_j. For one semicircle of variance b^2 around
/// x, with u = z - x and s = (u - 2b)^{1/2} (u + 2b)^{1/2},
///   phi = 2/(u + s),   phi' = -phi/s,   1/phi + b^2 phi = u,   log-potential -log|phi| + b^2 Re(phi^2)/2,
///   M = z phi - 1 = x phi + b^2 phi^2 = x phi (x + b^2 phi)/z + b^2 phi^2 + x/z;
/// the sum of weight_j x_j/z is 0 for the centred law, and the other terms of the last form do not cancel
/// for large |z|. Pinned by: BumpLaw.*.
class BumpLaw final : public SpectralLaw {
  public:
    /// Weights must be positive and sum to 1 within 1e-9; they are normalised.
    explicit BumpLaw(std::span<const Bump> bumps);

    double mean() const override { return mean_; }
    double variance() const override { return variance_; }
    /// The union of the intervals of the bumps; an atom inside one of them is part of it.
    std::vector<Interval> centred_support() const override { return support_; }
    /// Atoms and narrow bumps inside an interval.
    std::vector<double> centred_peaks() const override { return peaks_; }
    double atomic_concentration() const override { return atomic_concentration_; }
    Transform stieltjes(Complex z) const override;
    Transform moment_transform(Complex z) const override;
    double log_potential(Complex z) const override;
    /// Every end of a bump is a singularity below the curve v(u), and costs nodes. This leaves errors of
    /// 1e-6 or so in mass and mmse/D, and takes about half the time of 1e-13.
    double quadrature_accuracy() const override { return 1e-7; }

    /// Smallest x with mu(-inf, x] >= level, to rounding, in the original (not centred) coordinate. With
    /// t = (x - centre)/2b a semicircle has F = 1/2 + (t sqrt(1 - t^2) + asin t)/pi.
    double quantile(double level) const;

    /// In the original (not centred) coordinate, ascending.
    std::vector<Bump> bumps() const;

  private:
    double cumulative(double x) const;  // mu(-inf, x] of the centred law

    std::vector<double> centres_, weights_, variances_;  // centred, ascending; filled up with weight 0
    std::vector<double> radii_;                          // 2b
    std::size_t size_ = 0;
    std::vector<Interval> support_;
    std::vector<double> peaks_;
    double mean_ = 0, variance_ = 0, atomic_concentration_ = 0, radius_ = 0;
};

}  // namespace bayesaim::spectral
