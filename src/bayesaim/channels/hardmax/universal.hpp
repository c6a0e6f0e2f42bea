// SPDX-License-Identifier: MIT
#pragma once

/// Hardmax of T = 2 to 6 tokens as functions of one number. At order parameters q and E = Q - q all averages
/// depend on r = sqrt(E/Q) alone:
///   F = p_T(r) r/(2E),    I_out = -int_0^r p_T,
/// because F E depends on q/E, and dI_out/dq = F. p_T is nearly flat and smooth at both ends: near-ties of
/// codimension c weigh r^c at r -> 0, and F is analytic in q at r -> 1. It is stored as a Chebyshev series in
/// 2r - 1, made by apps/hardmax_table.
namespace bayesaim::channels::hardmax_universal {

/// p_T(r), 0 <= r <= 1.
double power(int tokens, double r);
/// I_out = E sum_labels Z log Z.
double information(int tokens, double r);
/// The relative error of p_T, one for all r.
double relative_error(int tokens);

/// The probability that a row has another winner in h' than in h, when their correlation is cos(angle),
/// 0 <= angle <= pi/2. Both generalisation errors are this function: two h that share omega have
/// cos(angle) = q/Q, omega and h have cos(angle)^2 = q/Q.
double disagreement(int tokens, double angle);

/// The same for one row of untied attention, M = 2 to longest_row entries with independent noise of equal variance:
///   F = p_M(r) r/E,    I_out = -int_0^r p_M,    dI_out/dq = F/2.
inline constexpr int longest_row = 5;
double row_power(int length, double r);
double row_information(int length, double r);
double row_error(int length);  ///< relative, of row_power

}  // namespace bayesaim::channels::hardmax_universal
