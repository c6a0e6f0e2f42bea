// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/spectral/rectangular_curve.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// The singular values of rectangular weights S = W_Q W_K^T / (r^2 d1 d2)^(1/4), of size d1 x d2, r = width * d1,
/// aspect = d2/d1: those of the shorter side, each with both signs. Entries of S have variance 1/sqrt(d1 d2); an
/// infinite width makes them independent. S and its transpose have the same law.
///
/// The noise in this law's errors is rectangular too, with entries of variance D/sqrt(d1 d2): mu_D is the rectangular
/// free convolution of RectangularCurve, not that of FreeConvolution, which refuses this law. Errors, `variance` and
/// `second_moment` are in units of sqrt(d1 d2), variance() = ||S||_F^2/sqrt(d1 d2) = 1; the law itself, which the
/// transforms belong to, has the second moment sqrt(b), b = max(aspect, 1/aspect). With m = w G(w) - 1 and
/// rho = r/min(d1, d2),
///   w^2 = sqrt(b) (1 + m)(1 + m/b)(1 + m/rho)/m.
/// As D -> 0, mmse/D -> 1 - (1 - r/d1)(1 - r/d2) if r is below both: matrices of rank r have r (d1 + d2 - r) parameters.
/// Pinned by: RectangularLaw.*.
class RectangularLaw final : public SpectralLaw {
  public:
    /// aspect other than 1 by at least 1e-6, between 1e-3 and 1e3: square weights have laws of their own.
    RectangularLaw(double width, double aspect);

    double mean() const override { return 0; }
    double variance() const override { return 1; }
    double aspect() const override { return aspect_; }
    std::vector<Interval> centred_support() const override;
    double atomic_concentration() const override;
    /// On the real axis the branch is that of a point 1e-9 above.
    Transform stieltjes(Complex z) const override;
    Transform moment_transform(Complex z) const override;
    double log_potential(Complex z) const override;
    std::optional<ErrorPoint> known_error(double noise_variance) const override;
    std::optional<double> known_free_entropy(double inverse_noise_variance) const override;

    /// The singular values of S + sqrt(D) Z.
    RectangularCurve with_noise(double noise_variance) const;

  private:
    Complex moment(Complex w) const;  // m

    double width_, aspect_;
    double longer_, inverse_width_;  // b, 1/rho
};

}  // namespace bayesaim::spectral
