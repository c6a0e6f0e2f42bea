// SPDX-License-Identifier: MIT
#pragma once
#include <optional>

#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// The law mu_D of S + sqrt(D) Xi for a Marchenko-Pastur law of unit variance, 0 < width < infinity, without
/// a solver: Biane's curve v(u) (see FreeConvolution) is explicit.
///
/// With c = width^{-1/2} and t = r e^{i phi}, w = t + 1/t + c, G = 1/(t + c), the condition Im(w + D G) = 0
/// reads 1 - 1/r^2 = D/|t + c|^2. In m = r^2 - 1, a = Re t, b = Im t:
///   a = (D + D/m - 1 - m - c^2)/(2c),    b^2 = 1 + m - a^2 = (m-m1)(m2-m)(m3-m)(m4-m)/(4 c^2 m^2),
///   u = a (1 + 1/(1+m)) + c,   v = b m/(1+m),   lambda = 2a + 2c - c/(1+m),
///   mean of x given lambda (2a + c)/(1+m), its variance D/(1+m); so mmse = D E[1/(1+m)].
/// The edges m = z^2 solve z + s c z/sqrt(1+z^2) = s' sqrt(D) with signs s, s'. There are four of them and two
/// bulks, [m1, m2] and [m3, m4], if D < (c^{2/3} - 1)^3; otherwise one bulk [m1, m4], and m2, m3 are complex.
///
/// Integrals over a bulk are sums over equidistant angles in the cosine map of m or of log m made rational.
/// All singularities are known (m = 0, -1, infinity and the other edges), so the number of nodes is too.
class MarchenkoPasturCurve {
  public:
    /// inverse_root_width = c > 0; excess = c^2 - 1, given apart because the difference loses digits.
    MarchenkoPasturCurve(double inverse_root_width, double excess, double noise_variance);

    /// mmse and its slope; std::nullopt if the mass of the nodes is not 1, or if too many would be needed.
    std::optional<ErrorPoint> error() const;
    /// The bulks with their nodes, u ascending; none if too many nodes would be needed.
    std::vector<CurveBulk> bulks() const;

    /// A bulk in m, and the map m = low + half (1 + x), or the rational one, from x = cos(theta).
    struct Bulk {
        double z_low = 0, z_high = 0;  // square roots of the ends
        double low = 0, half = 0;      // the first end and half of the length
        bool rational = false;  // m = g (1 + k x)/(1 - k x) instead, which maps 0 and infinity to -1/k, 1/k
        double k = 0, rest = 0, g = 0;  // rest = 1 - k
        int nodes = 0;                  // 0: too many
        bool real = false;              // the other two edges are real: first, second; else
        double first = 0, second = 0;   // ((m + shift - first)^2 + second) is their factor
        double shift = 0;
    };

  private:
    void plan(Bulk& bulk) const;

    double c_, excess_, noise_;
    Bulk parts_[2];
    int count_ = 1;
};

}  // namespace bayesaim::spectral
