// SPDX-License-Identifier: MIT
#pragma once
#include <optional>

#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// The law mu_D of BilinearLaw under noise, without a solver: Biane's curve (see FreeConvolution) is explicit in
/// s = |g|^2, 0 < s < 1/D. With g = x - i y and
///   q(s) = rho + (1 - rho - D rho) s - D s^2,
///   c(s) = D s^3 - (1 - rho + 2 D rho) s^2 + (2 rho + rho^2 + D rho^2) s - rho^2,
/// Im(w + D g) = 0 reads
///   x^2 = (rho + s) q/(4 rho (1 - D s)),   y^2 = c/(4 rho (1 - D s)),   lambda = 2 x (rho + D s^2)/(s (rho + s)),
///   density y/pi,   Hilbert transform x,   variance of x given lambda D (1 - D s),   u = lambda - D x,   v = D y.
/// c has one or three positive roots s1 < s2 < s3, the edges; q has one, s0, where lambda = 0. One root: one bulk, the
/// half with lambda > 0 on [s1, s0]. Three: a central bulk on [s3, s0], and side bulks on [s1, s2].
/// Sums over equidistant angles converge geometrically; mass 1 and second moment 1 + D tell when.
/// Pinned by: BilinearCurve.AgreesWithTheEngine.
class BilinearCurve {
  public:
    BilinearCurve(double width, double noise_variance);

    /// mmse and its slope; std::nullopt if too many nodes would be needed, as where bulks are about to merge.
    std::optional<ErrorPoint> error() const;
    /// The bulks with their nodes, u ascending; none if too many nodes would be needed.
    std::vector<CurveBulk> bulks() const;

  private:
    /// The half of a bulk with lambda > 0.
    struct Part {
        double low = 0, length = 0;  // in s
        double first = 0, last = 0;  // the other edges; without a gap c = D (s - s1) ((s - first)^2 + last)
        bool central = false;        // ends at s0, where lambda = 0
        double mean = 0, k = 0, rest = 0;  // of the map to [-1, 1]: G, k and 1 - k
    };
    struct Node {
        double room, x, y, lambda;       // room = 1 - D s
        double lambda_weight, x_weight;  // of integrals over lambda and over x
    };
    Node node(const Part& part, double above, double below, double step) const;
    /// With as many nodes of each part as are needed (0: too many), over the half lambda > 0: the mass, the integral of
    /// 1 - D s, both times pi, and that of mu_D^3 over u times pi^3.
    struct Sums {
        int nodes = 0;
        double mass = 0, room = 0, cubes = 0;
    };
    Sums sums() const;
    template <class Function>
    void for_each(int nodes, Function function) const;

    double width_, noise_;
    double zero_ = 0, other_ = 0;       // q = D (zero - s) (s + other)
    double room_ = 0;                   // 1 - D zero
    double linear_ = 0, constant_ = 0;  // c = (s - s1) (D s^2 + linear s + constant)
    Part parts_[2];
    int count_ = 1;
};

}  // namespace bayesaim::spectral
