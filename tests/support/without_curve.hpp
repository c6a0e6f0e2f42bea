// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::test {

/// A law that hides what it knows of itself under noise, so that FreeConvolution needs its engine.
class WithoutCurve : public spectral::SpectralLaw {
  public:
    explicit WithoutCurve(const SpectralLaw& law) : law_(law) {}
    double mean() const override { return law_.mean(); }
    double variance() const override { return law_.variance(); }
    std::vector<spectral::Interval> centred_support() const override { return law_.centred_support(); }
    double atomic_concentration() const override { return law_.atomic_concentration(); }
    spectral::Transform stieltjes(spectral::Complex z) const override { return law_.stieltjes(z); }
    spectral::Transform moment_transform(spectral::Complex z) const override {
        return law_.moment_transform(z);
    }
    double log_potential(spectral::Complex z) const override { return law_.log_potential(z); }
    std::vector<double> centred_peaks() const override { return law_.centred_peaks(); }
    bool jumps_at_ends() const override { return law_.jumps_at_ends(); }

  private:
    const SpectralLaw& law_;
};

}  // namespace bayesaim::test
