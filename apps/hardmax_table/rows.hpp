// SPDX-License-Identifier: MIT
#pragma once

namespace bayesaim::hardmax_table {

/// A row of untied attention: M entries with independent noise. In r = sqrt(E/Q), F = p(r) r/E and I_out = -int_0^r p, as
/// for tied attention. Prints the Chebyshev series of p for this M and its checks:
///   p(1) = M m_M^2/(M - 1),   p(0) = (sqrt(pi)/2) m_M 2 J_0/sqrt(2 pi),   int_0^1 p = log M,
/// m_M being the mean of the largest of M standard normals, J_0 the integral of tie_power.
void report_row(int length);

}  // namespace bayesaim::hardmax_table
