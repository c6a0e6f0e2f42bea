// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/losses/softmax_loss.hpp"

namespace bayesaim::losses {

/// omega = a x, htilde* = b x + c x', with x and x' standard normal: covariance 2 [[q, m], [m, Q]].
struct Roots {
    double omega, shared, rest;
    explicit Roots(const Alignment& at);
};

/// SoftmaxLoss::means() of two tokens: an integral over four normal variables, s and t of omega, with u_1,2 = s +-
/// t/sqrt(2), and those of the rest of u*.
///
/// The trapezoidal rule converges geometrically, because poles of the integrand are at a distance of pi/(beta sd(u)) from
/// the real axis; unlike Gauss's rule it wastes no nodes where the weight is nothing. Where it would need too many, and
/// that grows as beta^4, shifted Sobol points take its place, and relative_error is their standard error.
///
/// Where the square loss is not convex, the step jumps as a function of omega. The means of its derivatives count jumps,
/// which the derivatives themselves do not show; so they are taken from Stein's identities,
///   E sum g omega = -2 q curvature + 2 m signal,   E sum g htilde* = -2 m curvature + 2 Q signal.
ProximalMeans two_token_means(SoftmaxLoss::Kind kind, double beta, const Alignment& at, double variance,
                              const Integration& integration);

}  // namespace bayesaim::losses
