// SPDX-License-Identifier: MIT
#pragma once
#include <array>

#include "bayesaim/denoisers/joint.hpp"

/// Estimates of a square matrix S whose symmetric and antisymmetric part are seen through noise of different
/// variances, as in self-attention with the diagonal: R_sym = S_sym + sqrt(Delta_s) GOE, R_anti = S_anti + sqrt(Delta_a)
/// times its antisymmetric counterpart. S is invariant under rotations from both sides; `law` is that of its singular
/// values with both signs. No exact solution is known unless Delta_s = Delta_a, or the width is infinite.
namespace bayesaim::denoisers {

/// The two parts of a matrix: (S + S')/2 and (S - S')/2.
std::array<linalg::Matrix, 2> parts_of(const linalg::ConstMatrixRef& matrix);

/// C = diag(E_s, E_a) of the estimate below, in closed form. With mean D = Delta_s + Delta_a, asymmetry
/// c = (Delta_s - Delta_a)/D, and D_A = D - c^2 (D - mmse(D)),
///   E_s + E_a = mmse(D_A),   E_s - E_a = c mmse(D) mmse(D_A)/D_A.
/// Measured at d = 1000, width 0.5: the sum within 0.4% up to |c| = 0.7, the difference within 3%.
/// Pinned by: PartsDenoiser.*.
Overlap parts_covariance(const spectral::SpectralLaw& law, const Overlap& precision);

/// Size of what is wrong with it, with signs that make errors of state evolution add up: 0.3 k c^4 of the sum and
/// 0.6 k c^2 of the difference, k = 1 - mmse(D) (1 + D)/D, which is 0 for Gaussian S, where the closed form is exact. The
/// constants were chosen by hand at width 1/2, to cover the exact limit of small noise (where k = 1/4) and three points of
/// state evolution with errors measured on matrices of d = 700; at small width they are too small.
Overlap parts_bias(const spectral::SpectralLaw& law, const Overlap& precision);

/// Both of them, and the derivative of the first: log_slope[i][j] = d log E_i / d log Delta_j.
struct PartsPoint {
    double error[2], log_slope[2][2], bias[2];
};
PartsPoint parts_point(const spectral::SpectralLaw& law, double symmetric_noise, double antisymmetric_noise);

/// Transposed noise is subtracted, then singular values are shrunk:
///   N = R - f(R; D),   A = R - c N',   Shat = f(A; D_A).
/// `noisy` are both parts of R, the estimates both parts of Shat.
JointlyDenoised denoise_parts(const spectral::SpectralLaw& law, std::span<const linalg::Matrix> noisy,
                              const Overlap& noise_covariance, ThreadPool& pool,
                              const DenoiseOptions& options = {});

}  // namespace bayesaim::denoisers
