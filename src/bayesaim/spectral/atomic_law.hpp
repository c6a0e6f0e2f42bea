// SPDX-License-Identifier: MIT
#pragma once
#include <span>

#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// A law made of finitely many atoms: mu = sum_i weight_i delta(x - position_i).
class AtomicLaw final : public SpectralLaw {
  public:
    /// Weights must be positive and sum to 1 within 1e-9. They are normalised, and equal positions merged.
    AtomicLaw(std::span<const double> positions, std::span<const double> weights);

    /// The empirical law of a list of eigenvalues.
    explicit AtomicLaw(std::span<const double> positions);

    double mean() const override { return mean_; }
    double variance() const override { return variance_; }
    std::vector<Interval> centred_support() const override;
    double atomic_concentration() const override;
    Transform stieltjes(Complex z) const override;
    Transform moment_transform(Complex z) const override;
    double log_potential(Complex z) const override;

    /// Smallest x with mu(-inf, x] >= level, in the original (not centred) coordinate.
    double quantile(double level) const;

  private:
    std::vector<double> positions_, weights_;  // centred, ascending
    double mean_ = 0, variance_ = 0;
};

}  // namespace bayesaim::spectral
