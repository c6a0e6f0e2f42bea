// SPDX-License-Identifier: MIT
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <optional>
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

/// mmse(D), the error of estimating S from S + sqrt(D) Xi, and d mmse / dD.
struct ErrorPoint {
    double error = 0, slope = 0;
};

/// A node of an integral over the law mu_D of S + sqrt(D) Xi; see FreeConvolution.
struct CurveNode {
    double u = 0, v = 0, lambda = 0;
    double slope = 0;     ///< psi'(u)
    double weight = 0;    ///< in integrals over u
    double denoised = 0;  ///< mean and variance of x given lambda
    double variance = 0;
    double probability() const { return weight * slope * v; }  ///< pi D times its mass under mu_D
};

/// One bulk of mu_D: its ends, and its nodes, ascending.
struct CurveBulk {
    Interval u{}, lambda{};
    std::vector<CurveNode> nodes{};
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

    /// mmse(D) and its slope, if the law has them without the engine of FreeConvolution.
    virtual std::optional<ErrorPoint> known_error(double /*noise_variance*/) const { return std::nullopt; }
    /// The error that the rule of FreeConvolution aims at. A law that is itself an estimate needs no more
    /// digits than the estimate has.
    virtual double quadrature_accuracy() const { return 1e-13; }
    /// Places inside the intervals of the support where mass is concentrated, atoms above all.
    /// FreeConvolution looks for narrow peaks there.
    virtual std::vector<double> centred_peaks() const { return {}; }
    /// Whether the density jumps at ends of the support. There v(u) varies on the scale of D times the density:
    /// if D is small, a rule of equal steps only looks converged.
    virtual bool jumps_at_ends() const { return false; }
    /// The smallest D at which mmse(D)/D differs from its limit by digits that can be trusted.
    virtual double smallest_resolved_noise() const { return 1e-10 * variance(); }
    /// The bulks of mu_D of the centred law, if they are known without that engine; otherwise none.
    virtual std::vector<CurveBulk> known_bulks(double /*noise_variance*/) const { return {}; }

    /// d2/d1 of weights of size d1 x d2; 1 for square ones. FreeConvolution takes square laws only. A rectangular law
    /// has its own known_error and known_free_entropy; see RectangularLaw.
    virtual double aspect() const { return 1; }
    /// d2 for d1 rows: aspect * d1, rounded, at least 1.
    std::ptrdiff_t columns(std::ptrdiff_t rows) const {
        return std::max<std::ptrdiff_t>(1, std::llround(aspect() * static_cast<double>(rows)));
    }
    /// prior_free_entropy, if the law has it without the engine of FreeConvolution.
    virtual std::optional<double> known_free_entropy(double /*inverse_noise_variance*/) const {
        return std::nullopt;
    }

    double second_moment() const { return variance() + mean() * mean(); }  ///< kappa2 = tr S^2
};

/// One prior law per layer.
using Laws = std::span<const SpectralLaw* const>;

}  // namespace bayesaim::spectral
