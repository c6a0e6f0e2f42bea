// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "bayesaim/denoisers/polynomial.hpp"
#include "bayesaim/denoisers/rotation_invariant.hpp"

/// Estimates of several layers at once: R_l = S_l + N_l, the S_l independent with rotationally invariant
/// priors, the noise correlated between layers, Cov(N_l, N_k) = Delta_lk x GOE. qhat = Delta^-1.
namespace bayesaim::denoisers {

/// Posterior covariance C of (S_1 .. S_L) for large d, each layer seen through the Gaussian field of the
/// others. With c_j = mmse_j(1/qhat_jj), so that 1/c_j - qhat_jj is the precision of the Gaussian prior that
/// would give the same error, and W = [diag(1/c - diag qhat) + qhat]^-1 over the layers other than k,
///   C_kk = mmse_k(1/(qhat_kk - qhat_k. W qhat_.k)),   C_k. = -C_kk qhat_k. W,   symmetrised.
/// For L = 2: C_11 = mmse_1(1/(qhat_11 - qhat_12^2 c_2)), C_12 = -qhat_12 (C_11 c_2 + C_22 c_1)/2. Exact for
/// one layer, for Gaussian priors, and to second order in the couplings; 0.1% at correlations of Delta of
/// 0.2, wrong by 10% at 0.8. Pinned by: CavityCovariance.*.
Overlap cavity_covariance(Laws laws, const Overlap& precision);

/// Estimate of the relative error of Tr cavity_covariance. With the largest correlation c of Delta, 0.3 c^4
/// bounds the errors measured (5e-4 at 0.2, 0.12 at 0.8). Polynomials of degree 4 bound the optimal error
/// from above; if they are closer, as with much noise, their distance is the estimate.
double cavity_error(Laws laws, const Overlap& precision);

enum class JointMethod {
    /// A_k = R_k + sum_j (qhat_kj/qhat_kk) (R_j - f_j(R_j)), f_j the denoiser of layer j alone at noise
    /// Delta_jj; Shat_k = f_k(A_k) at noise 1/qhat_kk + sum_j (qhat_kj/qhat_kk)^2 mmse_j(Delta_jj). Equal to
    /// E[S_k | R] to first order in the couplings, so its error is right to third. Two eigendecompositions
    /// per layer; the covariance is cavity_covariance.
    innovation,
    /// The best linear combination of 1, R_l, f_l(R_l) and the innovation estimates. Stein's formula gives
    /// its coefficients and covariance: b_i = tr(R_k phi_i) - sum_m Delta_km div_m phi_i. A random direction
    /// per layer gives the divergences. For strong couplings; 2 + 4 L eigendecompositions per layer.
    combination,
    /// The combination if a correlation of Delta exceeds 0.25 and each Delta_ll is below the variance of its
    /// prior; otherwise the innovation.
    automatic,
};

struct JointOptions {
    JointMethod method = JointMethod::automatic;
    bool linear_outside_support = false;  ///< see DenoiseOptions
    std::uint64_t seed = 0;               ///< of the directions of the combination
};

struct JointlyDenoised {
    std::vector<linalg::Matrix> estimates;  ///< Shat_l
    Overlap posterior_covariance;           ///< C = Q - q, L x L
    JointMethod method = JointMethod::innovation;
};

/// Above this correlation of Delta `automatic` may choose the combination.
inline constexpr double strong_coupling = 0.25;

/// L = 1 is denoise(). Pinned by: JointDenoiser.*.
JointlyDenoised denoise_jointly(Laws laws, std::span<const linalg::Matrix> noisy,
                                const Overlap& noise_covariance, ThreadPool& pool,
                                const JointOptions& options = {});

}  // namespace bayesaim::denoisers
