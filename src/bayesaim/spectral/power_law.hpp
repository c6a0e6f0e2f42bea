// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// Eigenvalues that decay as a power: lambda(x) = c (x + x0)^(-gamma), x uniform on (0, width), and an atom
/// of weight 1 - width at 0. The cutoff x0 > 0 bounds them; c > 0 is such that int lambda^2 dmu = 1.
///
/// In q = log(x + x0) the eigenvalues are c exp(-gamma q). With w = z + mean, and without the atom's share
/// (1 - width)/w, the Stieltjes transform is
///   G = int e^q dq / (w - lambda) = (1/w) int e^q dq / (1 - e^(-X)),   X = log(w/lambda) = gamma (q - q*).
/// The integrand has a pole at the complex q* where lambda = w, and others at distances 2 pi i/gamma. Gauss's
/// rule on equal panels of q sums 1/(w - lambda) where the pole is far from the panel. On a panel near it the
/// pole is subtracted, and the integral of what is subtracted is known:
///   int e^q dq/(w - lambda) = (1/w) int [e^q/(1 - e^(-X)) - e^(q*)/X] dq + e^(q*)/(gamma w) [log X].
/// Brackets are differences between the ends. Integration by parts gives, over any range of q,
///   G' = -(1 + 1/gamma) G/w + [e^q/(w - lambda)]/(gamma w),
///   int log(w - lambda) e^q dq = [e^q log(w - lambda)] - gamma (w G - [e^q]).
/// Pinned by: PowerLaw.*.
class PowerLaw final : public SpectralLaw {
  public:
    /// exponent gamma from 0.05 to 5, width in (0, 1], cutoff x0 from 1e-6 to 100. With smaller cutoffs the
    /// few large eigenvalues would be lost in the quadrature of FreeConvolution.
    PowerLaw(double exponent, double width, double cutoff);

    double mean() const override { return mean_; }
    double variance() const override { return variance_; }
    std::vector<Interval> centred_support() const override;
    double atomic_concentration() const override { return (1 - width_) * (1 - width_); }
    Transform stieltjes(Complex z) const override;
    Transform moment_transform(Complex z) const override;
    double log_potential(Complex z) const override;
    std::vector<double> centred_peaks() const override { return {ends_.low, ends_.high}; }
    bool jumps_at_ends() const override { return true; }
    double smallest_resolved_noise() const override;

    double eigenvalue(double x) const;  ///< lambda(x)

  private:
    struct Place {
        double position, eigenvalue;  // x + x0 and lambda
    };
    struct Near;
    Near near_part(Complex z) const;
    Complex subtracted_panel(std::size_t panel, Complex w, Complex x_middle, Complex y_pole,
                             Complex residue) const;
    Transform far_part(const std::vector<double>& weights, Complex z, const Near& near) const;
    Transform bulk(Complex z) const;

    double exponent_, width_, cutoff_;
    double largest_;  // eigenvalue, lambda(0)
    double mean_, variance_ = 0;
    Interval ends_;                       // of the centred support without the atom
    double panel_;                        // half the length of a panel in q
    std::vector<Place> edges_, middles_;  // of the panels; eigenvalues descend, here and below
    // At the nodes: eigenvalue, x + x0, mass, and mass times powers of lambda - mean.
    std::vector<double> eigenvalues_, positions_, masses_, first_moments_, second_moments_;
};

}  // namespace bayesaim::spectral
