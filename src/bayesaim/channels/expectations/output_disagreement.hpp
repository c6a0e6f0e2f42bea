// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/channel.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

/// How far apart the outputs g of two correlated attention rows are. The T entries of a row h are independent
/// and Gaussian, h_1 (the diagonal one) of variance 2v and the others of variance v. Both generalisation
/// errors are of this kind, with T rows in a sample:
///   Bayes-optimal  E ||E[g(h)|omega] - g(h)||^2 = (T/2) E |g(h) - g(h')|^2, law {Q, Q, q, 2 (Q - q)}:
///                  h and h' are two draws that share omega;
///   plug-in        E ||g(omega) - g(h)||^2 = T E |g(omega) - g(h)|^2, law {q, Q, q, Q - q}.
namespace bayesaim::channels {

/// Second moments of a pair (h_j, h'_j) of entries; the pair of diagonal entries has twice these.
struct PairLaw {
    double first_variance = 0;       ///< a
    double second_variance = 0;      ///< b
    double covariance = 0;           ///< c
    double difference_variance = 0;  ///< a + b - 2c, apart: the sum would lose the digits of a small one
};

/// E sum_b (softmax(beta h)_b - softmax(beta h')_b)^2 by quadrature, with standard error 0: to 1e-12 of the
/// value for T = 2, to 1e-9 of it for T >= 3, however small the difference is.
///
/// Only where T >= 3 and the rows share less than beta sqrt(c) = 0.01 or so, at the very start of learning,
/// is it quasi-Monte Carlo, to about 1e-4. The points are cheap: 128 for each one of `integration`.
/// Pinned by: SoftmaxDisagreement.ReproducesTwoTokenErrors, AgreesWithPlainMonteCarlo.
numerics::Estimate softmax_disagreement(int tokens, double beta, const PairLaw& law,
                                        const Integration& integration = {});

/// P(argmax h != argmax h') by quadrature, to 1e-14 of the value for any T >= 2, however small it is.
/// A row of variance 0 is taken as the limit in which it has become independent of the other.
/// Pinned by: HardmaxDisagreement.ReproducesTwoTokenErrors, AgreesWithPlainMonteCarlo.
double hardmax_disagreement(int tokens, const PairLaw& law);

}  // namespace bayesaim::channels
