// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/linalg/blas.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

namespace bayesaim::denoisers {

struct DenoiseOptions {
    /// Continue f beyond the edges of the limiting spectrum as a straight line with the slope Var/(Var + D)
    /// of linear shrinkage, instead of its own infinite one. Without effect for large d. At small d
    /// eigenvalues do lie there, and iterations stay steady; as D -> 0 they are kept as they are.
    bool linear_outside_support = false;
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
