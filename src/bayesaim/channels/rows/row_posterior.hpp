// SPDX-License-Identifier: MIT
#pragma once
#include <span>
#include <vector>

namespace bayesaim::channels {

/// A row of hardmax: Z = P(h_j is the largest), h_b ~ N(omega_b, V) independent, and g = d log Z/domega.
///   Z = int phi(s) prod_{b != j} Phi(s + a_b) ds,    a_b = (omega_j - omega_b)/sqrt(V),
///   g_b = -E[lambda(s + a_b)]/sqrt(V),   g_j = -sum_{b != j} g_b,     lambda = phi/Phi,
/// the mean over the law of s with this density. Its logarithm is concave, so one trapezoidal rule around the mode has
/// relative accuracy even where Z underflows; two entries have a closed form.
/// Pinned by: RowPosterior.*.
class RowPosterior {
  public:
    /// Returns log Z and fills g.
    double evaluate(std::span<const double> omega, std::size_t label, double variance, std::span<double> g);

  private:
    std::vector<double> gap_, argument_, scaled_, slope_, exponent_;  // workspace
};

}  // namespace bayesaim::channels
