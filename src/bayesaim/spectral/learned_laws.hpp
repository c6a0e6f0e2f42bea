// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <span>

#include "bayesaim/spectral/bump_law.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

/// Laws of S learned from the eigenvalues of one noisy matrix R = S + sqrt(D) Xi. tr = (1/d) Tr.
namespace bayesaim::spectral {

/// What is known: D and the eigenvalues of R, Xi ~ GOE(d); or, if `singular`, the singular values of a
/// square R, its noise with independent N(0, D/d) entries. The law of S is then symmetric, each singular
/// value counts with both signs.
struct NoisySpectrum {
    std::span<const double> values;  ///< ascending; at least two
    double noise_variance = 0;       ///< D > 0
    bool singular = false;
};

/// Moments of the law of S: kappa1 = tr S, kappa2 = tr S^2 (tr S S' of singular values, with kappa1 = 0).
struct Moments {
    double mean = 0, second = 0;
};

/// kappa1 = tr R, kappa2 = tr R^2 - D (1 + 1/d) by E tr Xi^2 = 1 + 1/d; singular values: kappa1 = 0, kappa2
/// = tr R R' - D. kappa2 is at least kappa1^2 and 1e-4 tr R^2. Pinned by:
/// LearnedLaws.MomentsAreThoseOfTheSignal.
Moments moments_of(const NoisySpectrum& spectrum);

/// Two-parameter families: scale times Wishart or bilinear weights of this width (r = width * d).
struct WishartFit {
    double width = 0, scale = 0;
    bool family_fits = true;  ///< false: the moments are not those of any width, and the width was clipped
};

/// S = c W W'/sqrt(r d): kappa1 = c width^{1/2}, kappa2 = c^2 (1 + width). With x = kappa1^2/kappa2 clipped
/// to [0.005, 0.98], width = x/(1-x) and c = (kappa2/(1+width))^{1/2}. The family does not fit if kappa1 <=
/// 0 or x was clipped.
WishartFit wishart_from(const Moments& moments);

/// S = c W_Q W_K'/sqrt(r d), from singular values. For Gaussian weights and noise, m2 = tr R R'
/// and m4 = tr (R R')^2,
///   E m2 = c^2 + D,   E m4 = s4 + (4 + 2/d) D c^2 + (2 + 1/d) D^2,
///   s4 = c^4 [(1 + 2/d)/width + 2 + 1/d] + O(1/d^2).
/// Without the terms in 1/d this says that noise changes the free cumulant kappa2 only, kappa4 = m4 - 2 m2^2
/// = c^4/width. The width is clipped to [0.005, 200]. Pinned by:
/// LearnedLaws.BilinearWidthIsThatOfTheWeights.
WishartFit bilinear_from(const NoisySpectrum& spectrum);

/// The laws of these families.
std::unique_ptr<SpectralLaw> wishart_law(const WishartFit& fit);
std::unique_ptr<SpectralLaw> bilinear_law(const WishartFit& fit);

/// Shifted Wigner: the semicircle around kappa1 with variance kappa2 - kappa1^2, whose denoiser is linear.
std::unique_ptr<SpectralLaw> linear_law(const Moments& moments);

/// A mixture of 60 bumps and an atom at 0. With the empirical G_R, w(z) = z - D G_R(z) is known, and G_R(z)
/// = G_S(w(z)) is linear in the law of S: nonnegative least squares for its weights v_j >= 0,
///   (1/80) sum_k |sum_j v_j phi_j(w_k) - G_R(z_k)|^2 + 30^2 (sum v_j - 1)^2
///     + 10^2 ((sum v_j x_j - kappa1)/s)^2 + 10^2 ((sum v_j (x_j^2 + b^2) - kappa2)/s^2)^2,
/// with semicircles phi_j of standard deviation b = max(relative_width D^{1/2}, 0.02 span) at equidistant
/// x_j over the spectrum of R, span its length, s = max|lambda|, and 80 points z_k = t_k + i eta, eta = span
/// d^{-1/3}/8, t_k equidistant from lambda_min - 2 eta to lambda_max + 2 eta. Singular values: 30 pairs of
/// bumps at +-x_j with equal weights. Weights are then divided by their sum, and the law is scaled to keep
/// its second moment. Pinned by: LearnedLaws.SmoothLawDenoisesLikeTheTrueLaw.
BumpLaw smooth_law(const NoisySpectrum& spectrum, double relative_width = 0.6);

/// d times the largest distance between the cumulative of the values and that of mu_D. Eigenvalues are
/// rigid: for the right law it hardly grows with d. At d = 100 it is 2.4 on average, and below 2.9 (D = 0.1) to 3.3 (D = 0.5) in 95% of
/// the draws. Pinned by: LearnedLaws.MisfitRejectsAWrongWidth.
double spectral_misfit(const SpectralLaw& law, const NoisySpectrum& spectrum);

/// (2/d) sum_i U(lambda_i) - int U dmu_D, where U(x) = int log|x - t| dmu_D(t). Up to a term that does not
/// depend on the law this is the logarithmic energy -int int log|x - y| of the difference between the
/// spectrum of R and mu_D, which is not negative and 0 for equal laws. The log-evidence of a law is -(d^2/2)
/// times it, up to a constant; -d^2 times it for singular values, whose matrices have twice as many entries.
double log_energy_distance(const SpectralLaw& law, const NoisySpectrum& spectrum);

struct EvidenceFit {
    WishartFit fit;           ///< family_fits is false if the width is an end of the range
    double log_width_sd = 0;  ///< standard deviation of log(width); infinite if the evidence is flat
};

/// The width with the largest evidence, Wishart or (singular values) bilinear, between 0.005 and 49 or 200
/// as above; the scale follows from kappa2 = moments.second. With E the distance above,
///   sd(log width) = [(d^2/2) E'']^{-1/2}   (singular values: [d^2 E'']^{-1/2}),
/// E'' the second difference in log(width) with step 0.15. In samples (ten draws each) the spread was 0.5 to
/// 1.3 times that, but much smaller where the zero eigenvalues of S stand apart from the others: the evidence
/// then counts them. At width 0.2, D = 0.06, d = 120 the width is 0.2001 +- 0.0007; the formula says 0.005.
/// Pinned by: LearnedLaws.EvidenceReadsTheWidth.
EvidenceFit wishart_by_evidence(const NoisySpectrum& spectrum, const Moments& moments);

}  // namespace bayesaim::spectral
