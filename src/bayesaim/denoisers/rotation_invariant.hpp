// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <vector>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/linalg/blas.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/rectangular_curve.hpp"

namespace bayesaim::denoisers {

struct DenoiseOptions {
    /// Continue f beyond the edges of the limiting spectrum as a straight line with the slope Var/(Var + D)
    /// of linear shrinkage; the slope of f itself is infinite there. This has no effect for large d. At small
    /// d some eigenvalues lie beyond the edges, and the line keeps iterations steady; as D -> 0 it leaves
    /// those eigenvalues unchanged.
    bool linear_outside_support = false;
};

struct Denoised {
    linalg::Matrix estimate;        ///< E[S | R]
    double posterior_variance = 0;  ///< mmse(D): the expected ||estimate - S||^2 / d
    linalg::Vector eigenvalues;     ///< of R, ascending
    linalg::Vector shrunk;          ///< eigenvalues of the estimate, in the same order
};

/// f at an eigenvalue or a singular value, with the line of the options.
class Shrinkage {
  public:
    /// The arguments must outlive the object.
    Shrinkage(const spectral::SpectralLaw& law, const spectral::FreeConvolution& spectrum,
              const DenoiseOptions& options);
    Shrinkage(const spectral::SpectralLaw& law, const spectral::RectangularCurve& spectrum,
              const DenoiseOptions& options);
    double operator()(double lambda) const;

  private:
    std::function<double(double)> denoised_;  // f
    std::vector<spectral::Interval> bulks_;   // empty: no line
    double slope_;
};

/// Bayes-optimal estimate of S from R = S + sqrt(D) Xi, Xi ~ GOE(d), S rotationally invariant with the given
/// law. It keeps the eigenvectors of R and replaces each eigenvalue lambda by
///   f(lambda) = lambda - 2 D PV int mu_D(t) / (lambda - t) dt.
/// Pinned by: RotationInvariantDenoiser.MeasuredErrorIsTheMmse.
Denoised denoise(const spectral::SpectralLaw& law, const linalg::ConstMatrixRef& noisy, double noise_variance,
                 ThreadPool& pool, const DenoiseOptions& options = {});

}  // namespace bayesaim::denoisers
