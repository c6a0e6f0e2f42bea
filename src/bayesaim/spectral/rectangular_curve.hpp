// SPDX-License-Identifier: MIT
#pragma once
#include <vector>

#include "bayesaim/spectral/free_convolution.hpp"

namespace bayesaim::spectral {

/// The law mu_D of the singular values of S + sqrt(D) Z for rectangular S = W_Q W_K^T / (r^2 d1 d2)^(1/4), of size
/// d1 x d2 and rank at most r, entries of Z with variance 1/sqrt(d1 d2). b >= 1 is the ratio of the longer side to the
/// shorter one, k = sqrt(b) + 1/sqrt(b), kappa = sqrt(d1 d2)/r (0: S has independent entries). mu_D has mass 1/2 on
/// each sign and counts the singular values of the shorter side; g1 and g2 are the traces of the resolvent over the
/// shorter and the longer side. With t = g1 g2 and C = t/(1 - kappa t) + D t,
///   w^2 = (1 + sqrt(b) C)(1 + C/sqrt(b))/t,   g1 = (1 + sqrt(b) C)/w,   g2 = (1 + C/sqrt(b))/w,
///   mu_D = -Im g1/pi.
/// In the bulks w^2 is real, which with tau = |t| and V = |1 - kappa t|^2 reads
///   -1/tau^2 + D^2 + (k kappa + 2 D)/V + (1 - kappa^2 tau^2)/V^2 = 0:
/// a quadratic for 1/V whose positive root is explicit in tau, and from V follows the angle of t. Edges are real roots
/// of d(w^2)/dt: s1 (outer edge), -tau0 (inner edge, beyond the two negative zeros of w), and if noise and signal
/// have bulks of their own s2 < s3 in between. The bulk runs over tau from s1 to tau0 without [s2, s3].
/// At large D or width t runs along a circle: there its angle is the variable, and tau is solved for.
///
/// Errors are in units of sqrt(d1 d2), E = ||Shat - S||_F^2/sqrt(d1 d2):
///   f(sigma) = sigma - D (k + 2 Re C)/sigma = sigma - D Re(g1/sqrt(b) + sqrt(b) g2),
///   mmse = D - sqrt(b) D^2 int |g2|^2 dmu_D = 1 - int f^2 dmu_D/sqrt(b).
/// The first form is D - (D^2/b^(3/2)) [(4 pi^2/3) int mu_D^3 + (b-1)^2 int mu_D/x^2].
/// Sums over double-exponential rules; mass 1 and second moment 1 + D tell how many nodes are needed.
/// Pinned by: RectangularCurve.*.
class RectangularCurve {
  public:
    /// `aspect` is the ratio of the two sides in either order, 1 included; D > 0.
    RectangularCurve(double inverse_width, double aspect, double noise_variance);

    double noise_variance() const { return noise_; }

    /// mmse and its slope d mmse/dD.
    ErrorPoint error() const;
    /// I_in(1/D) = int_0^(1/D) (1 - mmse)/2 dqhat, per d1 d2; with the log-energy Sigma of mu_D
    ///   I_in = 1/(2 D) + log(D)/2 - (Sigma + (b-1) int log|x| dmu_D)/b + constant(b).
    double free_entropy() const;

    /// Density, Hilbert transform Re g1 and f at a singular value, inside or outside the bulks.
    SpectrumPoint at(double singular_value) const;
    /// The bulks with positive singular values, ascending.
    std::vector<Interval> edges() const;

    double mass() const;           ///< 1, up to the error of the quadrature
    double second_moment() const;  ///< 1 + D, by quadrature: int x^2 dmu_D / sqrt(b)

  private:
    /// A stretch of a bulk. Its variable is log(tau), or the angle of -t, which rises from `low` to `high`.
    struct Piece {
        double low = 0, high = 0;
        bool angle = false;
        double least_tau = 0;  // of an angle: where the piece starts
        double low_edge = 0,
               high_edge = 0;  // of log(tau): d cos/d log(tau) at ends that are edges, otherwise 0
        double least_w = 0;    // at `high`
    };
    struct Point {
        Complex t, t_slope;  // and dt by the variable of the piece
    };
    struct Slopes {
        double cosine, by_tau, by_v;
    };
    struct Values {
        double w, w_slope;  // by the variable of the piece
        Complex c, g1, g2;
    };
    struct Sums {
        double mass = 0, square = 0, resolvent = 0, resolvent_slope = 0, overlap = 0, energy = 0;
    };

    Complex excess(Complex t) const;  // C
    double edge_function(double t) const;
    double square_at(double t) const;  // w^2 on the real axis
    double cosine(double tau) const;
    double tau_at(double angle, double least_tau) const;
    double edge_slope(double tau) const;
    Slopes tau_slopes(double tau, double c) const;
    Point point(const Piece& piece, double from_low, double from_high) const;
    Values values(const Point& at) const;
    double denoised(Complex t, double w) const;
    double potential(Complex t) const;
    SpectrumPoint outside(double low, double high, double w) const;
    Sums sums_with(int nodes) const;
    void find_edges();
    void find_pieces();

    double inverse_width_, root_aspect_, sides_, noise_;  // kappa, sqrt(b), k, D
    double first_ = 0, last_ = 0;                         // s1, tau0
    double gap_low_ = 0, gap_high_ = 0;                   // s2, s3; 0 without a gap
    double zero_ = 0;                                     // t where w = 0, below the inner edge
    double nearly_ = 0;  // tau where two bulks nearly merge or just did; or 0
    std::vector<Piece> pieces_;
    Sums sums_;
};

}  // namespace bayesaim::spectral
