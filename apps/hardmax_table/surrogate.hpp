// SPDX-License-Identifier: MIT
#pragma once
#include <vector>

#include "hardmax_table/label_sums.hpp"

namespace bayesaim::hardmax_table {

/// J(k) = phi(k)^2 / (Phi(k) Phi(-k)), the power of one threshold.
double tie_power(double k);
/// E J(k), k ~ N(0, 2s).
double mean_tie_power(double s);
/// A_T: phi_T(s) = A_T E J + O(1/s), because for large s only single ties count.
double tie_count(int tokens);
/// p_T(0) = A_T int J / sqrt(2 pi).
double value_without_error(int tokens);
/// d p_T/dr at r = 0: pairs of ties with a common entry.
double slope_without_error(int tokens);

/// The control variate: the power of each tie times the probability that the other entries of its row are
/// below. Its mean is A_T E J for every s, because the gap k of a tie is independent of the rest.
class Surrogate {
  public:
    explicit Surrogate(int tokens);

    /// The sum over all labels at one omega.
    double of_all_labels(const double* omega) const;
    /// The sum over draws, the columns of x, where x - omega is the noise: J becomes (phi/Phi)^2 of the side that x
    /// is on.
    double of_labels(const Eigen::VectorXd& omega, const Eigen::MatrixXd& x) const;

  private:
    template <class Power>
    double sum(const double* omega, Power power) const;
    double cdf(double x) const;

    int tokens_;
    std::vector<double> node_, weight_;  // Gauss-Hermite
    std::vector<double> cdf_, density_;  // on a fine grid
};

}  // namespace bayesaim::hardmax_table
