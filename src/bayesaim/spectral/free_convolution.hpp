// SPDX-License-Identifier: MIT
#pragma once
#include <array>
#include <span>
#include <vector>

#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::spectral {

/// Density, Hilbert transform and shrinkage at one point of the spectrum of S + sqrt(D) Xi.
struct SpectrumPoint {
    double density = 0;
    double hilbert = 0;   ///< PV int mu_D(t) / (lambda - t) dt
    double denoised = 0;  ///< lambda - 2 D hilbert: the Bayes-optimal shrinkage of this eigenvalue
};

/// Integrals over the part of mu_D above a threshold.
struct TailMoments {
    double mass = 0;           ///< N = mu_D(threshold, inf)
    double first = 0;          ///< M1 = int (x - threshold)_+ dmu_D
    double second = 0;         ///< M2 = int (x - threshold)_+^2 dmu_D
    double hilbert = 0;        ///< int_{x > threshold} H dmu_D, H the Hilbert transform
    double divergence = 0;     ///< J = 2 int (x - threshold)_+ H dmu_D, the mean slope of (x - threshold)_+, 0 to 1
    /// dJ/dD = 2 int_{x > threshold} (H^2 - (pi mu_D)^2/3) dmu_D, by Burgers' equation. The other derivatives are
    /// dM1/dD = int H, dM2/dD = J and, against the threshold, -N, -2 M1 and dJ = -2 int H.
    double divergence_growth = 0;
};

/// The law mu_D of S + sqrt(D) Xi for large d, where Xi ~ GOE(d) has its spectrum on [-2, 2] and S has the
/// eigenvalue law mu.
///
/// Biane's parametrisation (Indiana Univ. Math. J. 46, 1997), real and free of branch choices. With
/// G(w) = int dmu(x)/(w - x), every point of the closed set {w = u + i v : v = v(u)}, where v(u) >= 0 solves
///   int dmu(x) / ((u-x)^2 + v^2) = 1/D        (v = 0 where the integral at v = 0 is below 1/D),
/// gives one point of the spectrum, lambda = psi(u) = w + D G(w), increasing in u, and there
///   density = v/(pi D),   hilbert = Re G(w),   denoised = u - D Re G(w).
///
/// The conditional law of an eigenvalue x of S given one of the noisy matrix has weight D dmu(x)/|w - x|^2;
/// `denoised` is its mean, and mmse the average over lambda of its variance D (1 - D |G(w)|^2).
///
/// The constructor takes the bulks and nodes that the law knows (SpectralLaw::known_bulks), or finds the bulks
/// and an adapted quadrature rule on them; all integrals are then sums. The law must outlive the object.
///
/// Accepts D from 1e-30 to 1e30, for laws of variance about 1. mmse is right to 1e-12 or so for D from 1e-10
/// to 1e10. Below, the relative error is at most about 1e-16/sqrt(D), because lambda has lost those digits:
/// 1e-7 at D = 1e-20, some percent at 1e-30. Above, continuous laws keep their accuracy; laws of atoms lose
/// digits (1e-10 is left at D = 1e20), and with many atoms take seconds at D = 1e16 and much longer beyond.
class FreeConvolution {
  public:
    /// D = noise_variance > 0. The rule aims at errors of law.quadrature_accuracy(), 1e-13, relative to 1
    /// for the mass and to min(D, Var) for mmse.
    FreeConvolution(const SpectralLaw& law, double noise_variance);

    double noise_variance() const { return noise_; }

    /// The spectrum at lambda, inside or outside the bulks.
    SpectrumPoint at(double lambda) const;

    /// mu_D(-inf, lambda]. With Re G known, Im int log(w - x) dmu = pi/2 - int_v^inf Re G(u + i y) dy, and
    ///   mu_D(lambda, inf) = Im [int log(w - x) dmu + D G(w)^2/2]/pi.
    /// Right to 1e-9 inside the bulks. Pinned by: FreeConvolution.CumulativeIsTheIntegralOfTheDensity.
    double cumulative(double lambda) const;

    /// U(lambda) = int log|lambda - t| dmu_D(t) = Re [int log(w - x) dmu + D G(w)^2/2]: G is constant along
    /// the characteristics w + D G(w) of Burgers' equation, and the potential grows by G^2/2 per unit of D.
    double log_potential(double lambda) const;

    /// Integrals above a threshold, to the accuracy of the rule.
    /// Pinned by: FreeConvolutionTail.*
    TailMoments above(double threshold) const;

    /// ||(Y - threshold)_+ - S||^2 / d of Y = S + sqrt(D) Xi, the mean over lambda of a square and of the variance of x: it
    /// keeps its digits if it is small. Equals kappa2 - M2 - 2 threshold M1 + 2 D J.
    double thresholding_error(double threshold) const;

    /// Support of mu_D, one interval per bulk. Bulks of atoms of next to no weight are left out.
    std::vector<Interval> edges() const;

    /// mmse(D) = int Var(x | lambda) dmu_D = D - (4 pi^2 D^2 / 3) int mu_D^3: the error ||Shat - S||^2 / d.
    double mmse() const;

    /// d mmse / dD = 1 - (8 pi^2 D / 3) int mu_D^3 du, the integral over u instead of lambda
    /// (Burgers' equation for G_D and integration by parts).
    double mmse_derivative() const;

    double integral_of_density_cubed() const;

    /// Sigma(mu_D) = int int log|x - y| dmu_D dmu_D, the average of U.
    double log_energy() const;

    double mass() const;           ///< 1, up to the error of the quadrature
    double mean() const;           ///< tr S, by quadrature
    double second_moment() const;  ///< tr S^2 + D, by quadrature

    std::size_t quadrature_size() const { return nodes_.size(); }

  private:
    struct Singularity {
        double theta;     // in the cosine map of the bulk, the real part of the nearest complex singularity
        double distance;  // and its distance from the real axis
    };
    struct Bulk {
        Interval u;                              // where v(u) > 0
        std::vector<Singularity> singularities;  // in theta, ascending
        Interval lambda;                         // psi of the ends
        std::size_t first = 0, last = 0;         // its nodes, ascending; none if it is below round-off
    };
    using Node = CurveNode;
    struct Height {
        double u, y, low, high;  // y = v^2 in (low, high)
        std::size_t node;
    };

    bool take_known_bulks();
    double clearance(double u) const;
    void find_bulks();
    void find_singularities(Bulk& bulk, double gap_below, double gap_above,
                            const std::vector<double>& pinches) const;
    double edge(double support_end, double beyond) const;
    bool improve_height(Height& height) const;
    void complete(std::span<Node> nodes) const;
    void complete_in_passes(std::vector<Node>& nodes) const;
    void condition_on(Complex w, Complex g, double& mean, double& variance) const;
    double quadrature_tolerance(const Interval& u) const;
    std::array<double, 2> convergence_probes(const Node& node) const;
    bool add_trapezoid_rule(const Bulk& bulk);
    std::vector<Node> twice_as_many(const Interval& u, const std::vector<Node>& nodes) const;
    bool add_graded_rule(const Bulk& bulk);
    void add_adaptive_rule(const Bulk& bulk);
    std::vector<Node> panel(const Interval& u, double theta_low, double theta_high,
                            const std::vector<Node>& wider) const;
    int add_panels(const Interval& u, double theta_low, double theta_high, const std::vector<Node>& whole,
                   int depth, int halvings, std::vector<Node>& nodes) const;
    double centred(double lambda) const;
    Complex curve_point(double x) const;
    double potential(Complex w, Complex g) const;
    Complex solve_inside(const Bulk& bulk, double lambda) const;
    double solve_outside(double u_low, double u_high, double lambda) const;
    double derivative_by_double_sum() const;
    template <class Function>
    void for_each_beyond(const Bulk& bulk, double x, bool above, Function f) const;
    template <class Function>
    double average(Function f) const;  // int f dmu_D

    const SpectralLaw* law_;
    double noise_;  // D
    std::vector<Bulk> bulks_;
    std::vector<Node> nodes_;
};

/// mmse(D) and its slope: by SpectralLaw::known_error if the law has it, otherwise by FreeConvolution.
ErrorPoint error_point(const SpectralLaw& law, double noise_variance);

/// Bayes-optimal error of estimating S from S + sqrt(D) Xi, per dimension.
double mmse(const SpectralLaw& law, double noise_variance);

/// Free entropy of the prior, per d^2, at inverse noise variance qhat:
///   I_in(qhat) = kappa2 qhat/4 - log(qhat)/4 - Sigma(mu_{1/qhat})/2 - 1/8,
///   I_in(0) = 0,   I_in' = (kappa2 - mmse)/4.
double prior_free_entropy(const SpectralLaw& law, double inverse_noise_variance);

}  // namespace bayesaim::spectral
