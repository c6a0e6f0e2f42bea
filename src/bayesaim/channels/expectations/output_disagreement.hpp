// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/channels/channel.hpp"
#include "bayesaim/numerics/quasi_monte_carlo.hpp"

/// Mean squared distance between the outputs g of two correlated attention rows. The T entries of a row h are
/// independent and Gaussian; h_1, the diagonal entry of tied attention, has variance 2v and the others v. Both
/// generalisation errors are such distances, with T rows in a sample:
///   Bayes-optimal  E ||E[g(h)|omega] - g(h)||^2 = (T/2) E |g(h) - g(h')|^2, law {Q, Q, q, 2 (Q - q)}:
///                  h and h' are two draws that share omega;
///   plug-in        E ||g(omega) - g(h)||^2 = T E |g(omega) - g(h)|^2, law {q, Q, q, Q - q}.
namespace bayesaim::channels {

/// Second moments of a pair (h_j, h'_j) of entries; the pair of diagonal entries has `diagonal` times these.
struct PairLaw {
    double first_variance = 0;       ///< a
    double second_variance = 0;      ///< b
    double covariance = 0;           ///< c
    double difference_variance = 0;  ///< a + b - 2c, stored because the sum would lose digits
    double diagonal = 2;             ///< 2 for tied attention, 1 if all entries are alike
};

/// E sum_b (softmax(beta h)_b - softmax(beta h')_b)^2 by quadrature, with standard error 0: to 1e-13 of the
/// value for T = 2, to 1e-9 of it for T >= 3, even if the difference is tiny.
///
/// If T >= 3 and beta sqrt(c) is below about 0.01 (the very start of learning), quasi-Monte Carlo replaces
/// the quadrature, with an error of about 1e-4. It takes 128 cheap points for each point of `integration`.
/// Pinned by: SoftmaxDisagreement.ReproducesTwoTokenErrors, AgreesWithPlainMonteCarlo.
numerics::Estimate softmax_disagreement(int tokens, double beta, const PairLaw& law,
                                        const Integration& integration = {});

/// P(argmax h != argmax h') by quadrature, to 1e-14 of the value for any T >= 2, even if the value is tiny.
/// A row of variance 0 is treated as the limit in which it is independent of the other row.
/// Pinned by: HardmaxDisagreement.ReproducesTwoTokenErrors, AgreesWithPlainMonteCarlo.
double hardmax_disagreement(int tokens, const PairLaw& law);

}  // namespace bayesaim::channels
