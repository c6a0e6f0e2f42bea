// SPDX-License-Identifier: MIT
#pragma once
#include <complex>
#include <span>
#include <vector>

namespace bayesaim::spectral {

using Complex = std::complex<double>;

/// Closed interval of the real line; low == high for an atom.
struct Interval {
    double low = 0, high = 0;
};

/// A transform and its derivative at one point.
struct Transform {
    Complex value, derivative;
};

/// A probability law mu of eigenvalues: the large-d spectrum of a weight matrix S.
///
/// The transforms belong to the centred law, the law of x - mean(): shrinkage and information do not depend
/// on the mean, and a large mean would cost digits. They are evaluated at z in the closed upper half plane,
/// on the real axis only outside the support. To define a law of your own, implement these functions.
class SpectralLaw {
  public:
    virtual ~SpectralLaw() = default;

    virtual double mean() const = 0;      ///< kappa1 = tr S
    virtual double variance() const = 0;  ///< kappa2 - kappa1^2

    /// Support of the centred law: sorted, disjoint; the density is positive inside each interval.
    virtual std::vector<Interval> centred_support() const = 0;

    /// Sum over the atoms of weight^2 (0 without atoms). As D -> 0, mmse(D)/D tends to 1 minus this sum.
    virtual double atomic_concentration() const = 0;

    /// Stieltjes transform G(z) = int dmu(x) / (z - x) of the centred law.
    virtual Transform stieltjes(Complex z) const = 0;

    /// M(z) = z G(z) - 1 = int x dmu(x) / (z - x) of the centred law. It must have relative accuracy even if
    /// |z| is large, where the difference z G(z) - 1 would cancel.
    virtual Transform moment_transform(Complex z) const = 0;

    /// Re int log(z - x) dmu(x) of the centred law.
    virtual double log_potential(Complex z) const = 0;

    double second_moment() const { return variance() + mean() * mean(); }  ///< kappa2 = tr S^2
};

/// One prior law per layer.
using Laws = std::span<const SpectralLaw* const>;

}  // namespace bayesaim::spectral
