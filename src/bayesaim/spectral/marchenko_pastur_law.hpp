// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// The spectrum of tied attention S = W W^T / sqrt(r d), W of size d x r with independent N(0, 1) entries,
/// r = width * d: Marchenko-Pastur in the normalisation with unit variance,
///   mean s = sqrt(width), bulk [1/s + s - 2, 1/s + s + 2], atom of weight 1 - width at 0 if width < 1.
/// Infinite width is the semicircle law of unit variance (mean 0): the same formulas with 1/s = 0.
///
/// Closed forms in the Joukowski variable t, |t| >= 1, of the centred point z:  z = t + 1/t + 1/s,
///   G = 1 / (t + 1/s),   M = z G - 1 = 1 / (t (t + 1/s)),   G' = -t^2 / ((t^2 - 1) (t + 1/s)^2).
class MarchenkoPasturLaw final : public SpectralLaw {
  public:
    explicit MarchenkoPasturLaw(double width);
    static MarchenkoPasturLaw semicircle();

    double mean() const override { return mean_; }
    double variance() const override { return 1; }
    std::vector<Interval> centred_support() const override;
    double atomic_concentration() const override;
    Transform stieltjes(Complex z) const override;
    Transform moment_transform(Complex z) const override;
    double log_potential(Complex z) const override;
    std::optional<ErrorPoint> known_error(double noise_variance) const override;
    double smallest_resolved_noise() const override { return 1e-26; }
    std::vector<CurveBulk> known_bulks(double noise_variance) const override;

  private:
    MarchenkoPasturLaw(double inverse_root_width, double mean, double excess)
        : inverse_root_width_(inverse_root_width), mean_(mean), excess_(excess) {}

    struct Joukowski;
    Joukowski joukowski(Complex z) const;

    double inverse_root_width_;  // 1/s
    double mean_;                // s; 0 for the semicircle
    double excess_;              // 1/s^2 - 1
};

}  // namespace bayesaim::spectral
