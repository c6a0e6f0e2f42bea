// SPDX-License-Identifier: MIT
#pragma once
#include <span>
#include <vector>

namespace bayesaim::channels {

/// A row of hardmax: Z = P(h_j is the largest), h_b ~ N(omega_b, V_b) independent, and g = d log Z/domega.
///   Z = int phi(s) prod_{b != j} Phi(t_b s + a_b) ds,    t_b = sqrt(V_j/V_b),   a_b = (omega_j - omega_b)/sqrt(V_b),
///   g_b = -E[lambda(t_b s + a_b)]/sqrt(V_b),   g_j = -sum_{b != j} g_b,     lambda = phi/Phi,
/// the mean over the law of s with this density. Its logarithm is concave, so one trapezoidal rule around the mode has
/// relative accuracy even where Z underflows; two entries have a closed form.
/// Pinned by: RowPosterior.*.
class RowPosterior {
  public:
    /// Returns log Z and fills g. `variance` has one value for each entry.
    double evaluate(std::span<const double> omega, std::size_t label, std::span<const double> variance,
                    std::span<double> g);

  private:
    std::vector<double> gap_, ratio_, argument_, scaled_, slope_, exponent_;  // workspace
};

}  // namespace bayesaim::channels
