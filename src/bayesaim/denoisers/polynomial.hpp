// SPDX-License-Identifier: MIT
#pragma once
#include <span>
#include <vector>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/linalg/blas.hpp"
#include "bayesaim/linalg/overlap.hpp"
#include "bayesaim/spectral/free_moments.hpp"

namespace bayesaim::denoisers {

using linalg::Overlap;
using spectral::Laws;

/// The best estimator of (S_1 .. S_L) among the polynomials of a degree in the noisy matrices R_l = S_l +
/// N_l, Cov(N) = Delta x GOE, and its exact error for large d (free cumulants). The oracle of the joint
/// denoisers, which are cheaper and reach recovery: at fixed degree C/Delta -> 1 as Delta -> 0.
struct Polynomial {
    std::vector<spectral::Word> words;  ///< w; the basis is (w + w*)/2, by degree, the empty word first
    Eigen::MatrixXd coefficients;       ///< words x L, in the letters x_l = (R_l - mean_l)/scale_l
    std::vector<double> means, scales;  ///< kappa1_l and sqrt(Var_l + Delta_ll)
    std::vector<Overlap> errors;        ///< C = Q - q of degree 0, 1, .. D
    Overlap divergence;                 ///< (k, m): (1/d^2) div_{R_m} of the estimate of S_k

    const Overlap& error() const { return errors.back(); }
};

/// With G_vw = tr(v w) and b_w = tr((S_k - kappa1) w) the coefficients are G^-1 b; one Cholesky factor gives
/// every degree. At any degree the posterior covariance is also C_lk = sum_m Delta_km div_m Shat_l (Stein).
/// Pinned by: PolynomialEstimator.*.
Polynomial polynomial_estimator(Laws laws, const Overlap& noise_covariance, int degree);

/// The estimates of all layers from noisy matrices, by Horner's rule.
std::vector<linalg::Matrix> evaluate(const Polynomial& polynomial, std::span<const linalg::Matrix> noisy);

}  // namespace bayesaim::denoisers
