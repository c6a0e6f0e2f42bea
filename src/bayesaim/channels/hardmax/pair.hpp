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

/// Averages over omega and the labels, for any law of the two differences h_aa - h_ab: their means are normal with
/// `ratio` times the variance that is left, and with a correlation of their own.
///   squares = E (r1^2 + r2^2) = 2 sum_{s = +-1} int N(k) Phi2(k; s c) (r1^2 + r2^2) dk,
///   product = E s_1 s_2 r1 r2,   information = E log Z,
/// c the correlation of what is left, N the normal law of variance `ratio` and correlation s c_omega.
struct Averages {
    double squares = 0, product = 0, information = 0;
};
Averages averages(double ratio, double omega_correlation, double correlation, Score score);

/// Tied attention, where both correlations are 1/3 and the ratio is 2q/V: power = V E sum g^2.
struct TiedAverages {
    double power = 0, information = 0;
};
TiedAverages tied_averages(double overlap_over_variance, Score score);

}  // namespace bayesaim::channels::hardmax_pair
