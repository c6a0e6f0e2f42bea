// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// The singular values of untied attention S = W_Q W_K^T / sqrt(r d), W_Q and W_K of size d x r with independent
/// N(0, 1) entries, r = width * d, each with both signs: half of its mass at sigma, half at -sigma. Mean 0, and
/// variance tr S S^T = 1 for every width.
///
/// Free cumulants kappa_2k = width^(1-k), R(g) = g/(1 - g^2/rho), so that with m = M(w) = w G(w) - 1
///   w^2 = (1 + m)^2 (m + rho) / (rho m),     G = (1 + m)/w,     int log(w - x) dmu = m - log G + (rho/2)
///   log(1 - G^2/rho),
/// a cubic for m. In the upper half plane exactly one root has Im G < 0. Outside the support roots are real; the
/// right one has dw/dG < 0, with G^2 < rho beyond the outer edge and G^2 > rho in the gap around the atom.
///
/// Edges: w = 1/g + rho g/(rho - g^2) at y = g^2 = 2 rho/(2 + rho + s) (outer), y = rho (2 + rho + s)/(2 (1 - rho))
/// (inner, for rho < 1, where an atom of weight 1 - rho sits at 0), s = sqrt(rho (rho + 8)).
/// Pinned by: BilinearLaw.*.
class BilinearLaw final : public SpectralLaw {
  public:
    explicit BilinearLaw(double width);

    double mean() const override { return 0; }
    double variance() const override { return 1; }
    std::vector<Interval> centred_support() const override;
    double atomic_concentration() const override;
    Transform stieltjes(Complex z) const override;
    Transform moment_transform(Complex z) const override;
    double log_potential(Complex z) const override;
    std::optional<ErrorPoint> known_error(double noise_variance) const override;
    std::vector<CurveBulk> known_bulks(double noise_variance) const override;

  private:
    struct Edge {
        double w = 0, m = 0;
    };
    Complex moment(Complex w) const;        // m
    double moment_outside(double u) const;  // on the axis, u > 0
    Complex moment_slope(Complex w, Complex m) const;

    double width_;
    Edge outer_, inner_;  // inner_ is 0 without a gap
};

}  // namespace bayesaim::spectral
