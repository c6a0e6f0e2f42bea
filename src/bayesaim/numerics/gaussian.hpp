// SPDX-License-Identifier: MIT
#pragma once
#include <span>

/// The standard normal law in one and two dimensions. The results have relative accuracy even where the law
/// itself underflows:
///   phi(x) = exp(-x^2/2) / sqrt(2 pi),   Phi(x) = int_{-inf}^x phi.
/// All functions use the Mills ratio Phi(-x)/phi(x), which neither underflows nor overflows for x >= 0.
namespace bayesaim::numerics {

double normal_density(double x);
double normal_cdf(double x);

/// log Phi(x), x from -1e150 to +infinity.
double log_normal_cdf(double x);

/// M(x) = Phi(-x) / phi(x); decreasing, sqrt(pi/2) at 0, ~ 1/x for large x. Overflows below x = -38.
double mills_ratio(double x);

/// phi(x) / Phi(x) = d log Phi(x) / dx; ~ -x for x -> -infinity.
double inverse_mills_ratio(double x);

/// scaled_i = log Phi(x_i) + min(x_i, 0)^2/2, which varies slowly, and slope_i = phi(x_i) / Phi(x_i), for
/// finite x, several at a time in vector registers. The error of `scaled` is absolute, 1e-16.
void scaled_log_normal_cdf(std::span<const double> x, std::span<double> scaled, std::span<double> slope);

/// Phi2(k1, k2; c) = P(X1 <= k1, X2 <= k2), X standard bivariate normal of correlation c, phi2 its density.
/// The gradient and the Hessian of log Phi2 follow without another evaluation:
///   d/dk1       = r1                        d/dk2       = r2
///   d^2/dk1^2   = -r1 (k1 + r1) - c p       d^2/dk2^2   = -r2 (k2 + r2) - c p
///   d^2/dk1 dk2 = p - r1 r2                 with r1 = ratio1, r2 = ratio2, p = density_ratio.
struct BivariateNormalCdf {
    double log_probability;  ///< log Phi2
    double ratio1;           ///< phi(k1) Phi((k2 - c k1) / sqrt(1 - c^2)) / Phi2
    double ratio2;           ///< phi(k2) Phi((k1 - c k2) / sqrt(1 - c^2)) / Phi2
    double density_ratio;    ///< phi2(k1, k2; c) / Phi2
};

/// All four have relative accuracy for |k1|, |k2| <= 1e150 and |c| < 1; digits are lost only as c -> -1.
/// Pinned by: BivariateNormalCdf.AgreesWithHighPrecisionQuadrature.
BivariateNormalCdf bivariate_normal_cdf(double k1, double k2, double c);

}  // namespace bayesaim::numerics
