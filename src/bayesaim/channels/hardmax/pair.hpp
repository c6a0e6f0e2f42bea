// SPDX-License-Identifier: MIT
#pragma once
#include <Eigen/Core>

/// Hardmax for two tokens. Row a is decided by the sign s_a of h_aa - h_12, so with
///   k_a = s_a (sqrt2 omega_aa - omega_12) / sqrt(3 V),   c = s_1 s_2 / 3:   Z = Phi2(k1, k2; c),
/// and with r_a = d log Phi2 / d k_a = phi(k_a) Phi((k_b - c k_a)/sqrt(1 - c^2)) / Z
///   g_11 = sqrt2 s_1 r_1 / sqrt(3V),  g_22 = sqrt2 s_2 r_2 / sqrt(3V),  g_12 = -(s_1 r_1 + s_2 r_2) /
///   sqrt(3V).
namespace bayesaim::channels::hardmax_pair {

/// Which r_a: the derivative, or the density ratio phi2/Phi2 that the paper prints.
enum class Score { exact, as_printed };

/// slope, of the exact score: -sum_pairs dg/domega = (k1 r1 + k2 r2 + r1^2 + r2^2 + 2 c r1 r2) / V.
struct Evaluated {
    double log_z;
    double g[3];  ///< over the pairs (11, 12, 22)
    double slope;
};
Evaluated evaluate(bool diagonal_wins_1, bool diagonal_wins_2, const double* omega, double variance,
                   Score score);

/// dg/domega of the exact score.
Eigen::Matrix3d slope(bool diagonal_wins_1, bool diagonal_wins_2, const double* omega, double variance);

/// Averages over omega ~ N(0, 2q) and the labels, as functions of the one ratio q/V:
///   power = V E sum g^2 = 2 sum_{c = +-1/3} int N(k) Phi2 (r1^2 + r2^2 + 2 c r1 r2) dk,
///   information = E log Z = 2 sum_c int N(k) Phi2 log Phi2 dk,
/// N the normal law of variance 2q/V and correlation c.
struct Averages {
    double power = 0, information = 0;
};
Averages averages(double overlap_over_variance, Score score);

}  // namespace bayesaim::channels::hardmax_pair
