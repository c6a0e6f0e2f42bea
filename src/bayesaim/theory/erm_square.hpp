// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/theory/erm.hpp"

namespace bayesaim::theory {

/// The trace penalty with a loss of square form, without iteration. Then b = 1, mhat = A, and with c = 2 alpha coordinates
///   E(D, theta) = Q - M2 - 2 theta M1 + 2 D J,   c D = E + nu,   A = c - J,   lambda = theta (c - J).
/// For fixed u = theta/sqrt(D), (E + nu)/D decreases in D, so D(u) is one bracketing; lambda(u) crosses each lambda > 0
/// once. At fixed theta the equation for D may have none or two roots.
class SquareErm {
  public:
    SquareErm(const spectral::SpectralLaw& teacher, const losses::SquareForm& form, double alpha);

    ErmPoint solve(double regularization) const;
    ErmPoint solve_optimal() const;

  private:
    /// A point (D, theta) with its integrals.
    struct Point {
        double noise = 0, threshold = 0;  ///< D = 0: there is none
        spectral::TailMoments tail{};
        double error = 0;                                   ///< E(D, theta)
        double error_by_noise = 0, error_by_threshold = 0;  ///< its derivatives
    };
    Point point(double noise, double threshold) const;
    Point at(double u, double tolerance) const;
    double regularization(const Point& point) const { return point.threshold * (c_ - point.tail.divergence); }
    Point find(double regularization) const;
    Point polished(const Point& start, double regularization) const;
    ErmPoint finish(const Point& point, double regularization, bool interpolates) const;
    ErmPoint recovered(double lambda) const;

    const spectral::SpectralLaw* law_;
    double alpha_, coordinates_, c_, nu_, total_;
    double kernel_;  // weight of the eigenvalue 0; negative if S* has negative eigenvalues
    mutable int evaluations_ = 0;
    mutable double guess_;  // of D
};

/// The weight of the atom at 0; -1 if the law has negative eigenvalues.
double kernel_fraction(const spectral::SpectralLaw& law);

/// Q - M2 - 2 theta M1 + 2 D J
double thresholding_error(double total, double noise, double threshold, const spectral::TailMoments& tail);

/// Integrals of the semicircle on [-2, 2] above t.
struct SemicircleTail {
    explicit SemicircleTail(double t);
    double e0 = 0, e1 = 0, e2 = 0;  ///< of (x - t)_+^k
    double divergence = 0;          ///< 2 int (x - t)_+ H
};

}  // namespace bayesaim::theory
