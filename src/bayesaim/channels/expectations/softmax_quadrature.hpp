// SPDX-License-Identifier: MIT
#pragma once

/// Quadratures behind the disagreement of softmax outputs (output_disagreement.hpp).
namespace bayesaim::channels {

/// Two correlated attention rows in units where the softmax has beta = 1: T independent pairs of Gaussian
/// entries with deviations p and w and correlation r; the diagonal entry has `diagonal` times these variances.
struct LogitPair {
    double first_deviation = 0;   ///< p
    double second_deviation = 0;  ///< w
    double excess = 0;            ///< p - w, stored because the difference would lose digits
    double gap = 0;               ///< 1 - r, from 0 to 2
    double diagonal = 2;
};

/// E |softmax(h) - softmax(h')|^2 for T = 2, to 1e-13 of the value, even if the value is tiny.
///
/// It is 2 E (f(u) - f(u'))^2 with u = h_1 - h_2, f(x) = 1/(1 + e^-x) - 1/2. Here let p and w be the
/// deviations of u and u', and z, z' normal variables of correlation r. There are two positive terms,
///   E (f(p z) - f(w z'))^2 = E (f(p z) - f(w z))^2 + [2 E f(p z) f(w z) - 2 E f(p z) f(w z')],
/// the second by the Fourier transform X(k) = pi k/sinh(pi k) of f', with kappa = (1 - r) p w:
///   kappa/(2 pi^2) int int X(k) X(l) exp(-(p k + w l)^2/2) (e^(kappa k l) - 1)/(kappa k l) dk dl.
/// For r < 0 the same with -z' in place of z', as f is odd.
/// Pinned by: SoftmaxDisagreement.TwoTokensReproduceThePlainDoubleSum.
double two_token_softmax_disagreement(const LogitPair& rows);

/// Whether softmax_agreement applies: the common part of the rows, of deviations p sqrt(r) and w sqrt(r), is
/// large enough.
bool strongly_coupled(const LogitPair& rows);

/// N = E sum_b softmax(h)_b softmax(h')_b for strongly coupled rows, T >= 2, to about 1e-14 (absolute).
///
/// softmax(h)_b is the probability that h_b + G_b is the largest when the G_j are independent Gumbel
/// variables. If the second row has its own Gumbel variables G'_j, N is the probability that the two rows
/// have the same winner,
///   N = sum_b int int f_b(x, x') prod_{j != b} F_j(x, x') dx dx',
/// F_j and f_j the distribution and the density of the pair (h_j + G_j, h'_j + G'_j). A normal z common to
/// the pair, h = c z + ... and h' = R c z + ... with c = p sqrt(r) and R = w/p, leaves independent
/// remainders of laws A and B, Gumbel plus normal of variances p^2 (1 - r) and w^2 (1 - r). With y = x - c z
/// and xi = x' - R x,
///   F = int N(x - y; c^2) A(y) B(xi + R y) dy,    f = the same with the densities of A and B.
/// Pinned by: SoftmaxAgreement.ReproducesTwoTokens.
double softmax_agreement(int tokens, const LogitPair& rows);

}  // namespace bayesaim::channels
