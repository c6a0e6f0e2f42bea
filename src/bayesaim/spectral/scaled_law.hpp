// SPDX-License-Identifier: MIT
#pragma once
#include <cmath>
#include <memory>

#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// The law of factor * x, where x has another law with transforms G_0, M_0 and log-potential L_0.
/// With z = factor w:
///   G(z) = G_0(w)/factor,   M(z) = M_0(w),   L(z) = L_0(w) + log(factor).
class ScaledLaw final : public SpectralLaw {
  public:
    /// factor > 0.
    ScaledLaw(std::shared_ptr<const SpectralLaw> law, double factor);

    double mean() const override { return factor_ * law_->mean(); }
    double variance() const override { return factor_ * factor_ * law_->variance(); }
    std::vector<Interval> centred_support() const override;
    double atomic_concentration() const override { return law_->atomic_concentration(); }
    Transform stieltjes(Complex z) const override;
    Transform moment_transform(Complex z) const override;
    double log_potential(Complex z) const override {
        return law_->log_potential(z / factor_) + std::log(factor_);
    }
    std::optional<ErrorPoint> known_error(double noise_variance) const override;
    std::vector<double> centred_peaks() const override;
    bool jumps_at_ends() const override { return law_->jumps_at_ends(); }
    double quadrature_accuracy() const override { return law_->quadrature_accuracy(); }
    double smallest_resolved_noise() const override {
        return factor_ * factor_ * law_->smallest_resolved_noise();
    }
    std::vector<CurveBulk> known_bulks(double noise_variance) const override;
    double aspect() const override { return law_->aspect(); }
    std::optional<double> known_free_entropy(double inverse_noise_variance) const override {
        return law_->known_free_entropy(factor_ * factor_ * inverse_noise_variance);
    }

    const SpectralLaw& law() const { return *law_; }  ///< of x
    double factor() const { return factor_; }

  private:
    std::shared_ptr<const SpectralLaw> law_;
    double factor_;
};

/// The law of factor * x: the given law itself if the factor is 1.
std::shared_ptr<const SpectralLaw> scaled(std::shared_ptr<const SpectralLaw> law, double factor);

}  // namespace bayesaim::spectral
