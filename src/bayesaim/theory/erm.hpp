// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bayesaim/core/outcome.hpp"
#include "bayesaim/core/record.hpp"
#include "bayesaim/losses/loss.hpp"
#include "bayesaim/losses/penalty.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

/// What training reaches: regularised empirical risk minimisation (ERM) for large d, n = alpha d^2,
///   Shat = argmin sum_samples ell(y, htilde(S)) + lambda d penalty(S),
/// penalty trace: Tr S over S >= 0, that is weight decay on W of width >= d with S = W W'/sqrt(m d);
/// penalty frobenius: Tr S^2/2 over symmetric S, the entries of S trained themselves.
///
/// With q = tr Shat^2, m = tr Shat S*, V the response, and the means of the loss over htilde* and omega of
/// covariance 2 [[Q, m], [m, q]]:
///   A = 2 alpha E sum -dg/domega,  mhat = 2 alpha E sum dg/dhtilde*,  chi = alpha E sum g^2,
///   b = mhat/A,  D = chi/mhat^2,  theta = lambda/mhat,  Y = S* + sqrt(D) Xi
///   trace:      Shat = b (Y - theta)_+,  q = b^2 M2,  m = b (M2 + theta M1 - D J),  V = J/A
///   frobenius:  Shat = mhat Y/(A + lambda),  V = 1/(A + lambda)
/// with the integrals N, M1, M2, J of spectral::TailMoments. Derived by the replica method, and checked by direct
/// minimisation; not proved. The loss `square` of softmax is not convex: replica symmetry is assumed there.
/// Compare arXiv:2509.24914.
namespace bayesaim::theory {

using losses::Penalty;

struct ErmOptions {
    Penalty penalty = Penalty::trace;
    losses::Integration integration{};
    int max_iterations = 500;
    double tolerance = 1e-10;  ///< of E, m and V, relative, where they are iterated
};

struct ErmPoint {
    double alpha = 0;
    double regularization = 0;      ///< lambda; 0 is the limit 0+
    losses::Alignment alignment{};  ///< Q, m, q
    double error = 0;               ///< Q - 2 m + q
    double training_loss = 0;       ///< mean of ell at the minimum
    double zero_fraction = 0;       ///< of the eigenvalues of Shat
    double trace = 0;               ///< tr Shat
    double generalization_error = 0;
    // Of Shat = gain (Y - threshold)_+ or gain Y:
    double gain = 0, noise_variance = 0, threshold = 0;
    double curvature = 0,
           response = 0;        ///< A and V; 0 and infinity at lambda = 0+ if the minimum interpolates
    double divergence = 0;      ///< J
    double relative_error = 0;  ///< of the error, estimated; 0 for closed forms
    int iterations = 0;
    Termination status = Termination::converged;

    /// The minimum per d^2, alpha training_loss + lambda penalty.
    double objective = 0;
};

/// regularization = 0 is the limit lambda -> 0+: the interpolator of least penalty, or least squares. At alpha = 0 Shat is 0. Throws
/// InvalidArgument for negative values, and for laws of matrices that are not symmetric.
ErmPoint solve_erm(const spectral::SpectralLaw& teacher, const losses::Loss& loss, double alpha,
                   double regularization, const ErmOptions& options = {});

/// At the lambda >= 0 of least error.
ErmPoint solve_optimal_erm(const spectral::SpectralLaw& teacher, const losses::Loss& loss, double alpha,
                           const ErmOptions& options = {});

/// A curve, at one lambda, or at the best of each alpha if none is given; see solve_curve for threads and progress.
std::vector<ErmPoint> solve_erm_curve(const spectral::SpectralLaw& teacher, const losses::Loss& loss,
                                      std::span<const double> alphas, std::optional<double> regularization,
                                      ErmOptions options, ThreadPool& pool,
                                      const std::function<bool(double)>& progress = {});

struct ErmThresholds {
    /// Without label noise: from this alpha on the error vanishes as lambda -> 0+.
    std::optional<double> recovery;
    /// With label noise: up to this alpha training reaches zero loss, and the error of lambda -> 0+ has its peak here.
    std::optional<double> interpolation;
};
ErmThresholds erm_thresholds(const spectral::SpectralLaw& teacher, const losses::Loss& loss, Penalty penalty);

/// c* of the trace penalty without noise, alpha = c*/(2 coordinates): the minimum over t of
///   E0(t) = 1 - (1-rho)^2 + rho (1-rho) t^2 + (1-rho)^2 e2(t),   e2(t) = int (x - t)_+^2 of the semicircle.
/// It depends on the fraction rho of nonzero eigenvalues only. Bayes-optimal: 1 - (1-rho)^2.
double trace_recovery_ratio(double rank_fraction);

/// The density of the eigenvalues of Shat at s; the zero_fraction, an atom at 0, is not part of it.
class TrainedSpectrum {
  public:
    TrainedSpectrum(const spectral::SpectralLaw& teacher, const ErmPoint& point, Penalty penalty);
    ~TrainedSpectrum();
    double density(double s) const;
    std::vector<spectral::Interval> edges() const;  ///< of the continuous part

  private:
    struct Impl;
    std::unique_ptr<const Impl> impl_;
};

/// Named values, as of a point of theory: alpha, regularization, estimation_error, standard_error,
/// generalization_error, training_loss, zero_fraction, overlap (m), self_overlap (q), trace, objective, noise_variance,
/// gain, threshold, iterations, status.
Record values(const ErmPoint& point);

}  // namespace bayesaim::theory
