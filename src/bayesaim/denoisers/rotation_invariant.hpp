// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/linalg/blas.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

namespace bayesaim::denoisers {

struct DenoiseOptions {
    /// Move eigenvalues that lie outside the limiting spectrum to its nearest edge before shrinking. Without
    /// effect for large d; steadies iterations at small d.
    bool clamp_to_support = false;
};

struct Denoised {
    linalg::Matrix estimate;        ///< E[S | R]
    double posterior_variance = 0;  ///< mmse(D): the expected ||estimate - S||^2 / d
    linalg::Vector eigenvalues;     ///< of R, ascending
    linalg::Vector shrunk;          ///< of the estimate, in the same order
};

/// Bayes-optimal estimate of S from R = S + sqrt(D) Xi, Xi ~ GOE(d), S rotationally invariant with the given
/// law: the eigenvectors of R are kept, an eigenvalue lambda becomes
///   f(lambda) = lambda - 2 D PV int mu_D(t) / (lambda - t) dt.
/// Pinned by: RotationInvariantDenoiser.MeasuredErrorIsTheMmse.
Denoised denoise(const spectral::SpectralLaw& law, const linalg::ConstMatrixRef& noisy, double noise_variance,
                 ThreadPool& pool, const DenoiseOptions& options = {});

}  // namespace bayesaim::denoisers
