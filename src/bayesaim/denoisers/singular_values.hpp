// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/denoisers/rotation_invariant.hpp"

namespace bayesaim::denoisers {

/// Bayes-optimal estimate of a square matrix S from R = S + sqrt(D) Z, Z with independent N(0, 1/d) entries, S
/// invariant under rotations from the left and from the right; `law` is that of its singular values with both signs.
/// It keeps the singular vectors of R and replaces each singular value sigma by
///   f(sigma) = sigma - 2 D PV int mu_D(t) / (sigma - t) dt,
/// the same function of mu_D as for symmetric matrices. No singular value decomposition is needed: with
/// R^T R = V diag(sigma^2) V^T,
///   Shat = R V diag(f(sigma)/sigma) V^T,
/// where f(sigma)/sigma is even and smooth at 0, so that squaring costs no digits.
///
/// A rectangular S (spectral::RectangularLaw, or that scaled) of size d1 x d2, the noise with entries of
/// variance D/sqrt(d1 d2), has the
/// f of spectral::RectangularCurve. The decomposition is that of the smaller one of R R^T and R^T R; R must have
/// law.columns(d1) columns.
/// `eigenvalues` and `shrunk` of the result are singular values. Pinned by: SingularValueDenoiser.*.
Denoised denoise_singular_values(const spectral::SpectralLaw& law, const linalg::ConstMatrixRef& noisy,
                                 double noise_variance, ThreadPool& pool, const DenoiseOptions& options = {});

}  // namespace bayesaim::denoisers
