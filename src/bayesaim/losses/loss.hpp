// SPDX-License-Identifier: MIT
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/channels/score.hpp"

/// Training losses of tied attention: what people minimise when they do not know the prior.
namespace bayesaim::losses {

using channels::ConstRowsRef;
using channels::Integration;
using channels::Overlap;
using channels::RowsRef;

/// How an estimate stands to the teacher: Q = tr S*^2, m = tr Shat S*, q = tr Shat^2.
struct Alignment {
    double total = 0;                                                    ///< Q
    double overlap = 0;                                                  ///< m
    double self_overlap = 0;                                             ///< q
    double error() const { return total - 2 * overlap + self_overlap; }  ///< ||Shat - S*||^2 / d
};

/// Means over samples, sums over pairs, with htilde* and omega of covariance 2 [[Q, m], [m, q]] in each pair.
struct ProximalMeans {
    double curvature = 0;       ///< E sum -dg/domega
    double signal = 0;          ///< E sum dg/dhtilde*; y is a function of htilde*
    double power = 0;           ///< E sum g^2
    double loss = 0;            ///< E ell(y, z)
    double relative_error = 0;  ///< estimated, of the quadrature or one standard error
};

/// A loss that is quadratic with the same weight for all that it sees: closed forms hold.
struct SquareForm {
    double coordinates = 0;     ///< combinations of htilde that it sees, of weight 1
    double noise_variance = 0;  ///< nu: residuals have the variance 2 (E + nu) each
};

/// ell(y, htilde) of one sample, summed over samples by the estimators. As a Score its step is proximal:
///   z = argmin_z ell(y, z) + |z - omega|^2/(2V),   g = (z - omega)/V = -grad ell(z),
///   log_z = -ell(y, z) - |z - omega|^2/(2V);       V = 0: z = omega, so g is minus the gradient.
/// Outputs are those of the teacher's channel: logarithms of softmax.
class Loss : public channels::Score {
  public:
    virtual std::string name() const = 0;
    /// Whether ell is convex in htilde, so that training has one minimum.
    virtual bool convex() const { return true; }

    /// At V > 0. Throws InvalidArgument where they are not available.
    virtual ProximalMeans means(const Alignment& at, double variance,
                                const Integration& integration) const = 0;
    virtual std::optional<SquareForm> square_form() const { return std::nullopt; }

    /// E ||g(htilde of Shat) - g(htilde*)||^2 of the T x T output of a new sample, without label noise.
    virtual double generalization(const Alignment& at, const Integration& integration) const = 0;
    /// Whether means() and generalization() are sampled.
    virtual bool sampled() const { return false; }
};

/// Loss::generalization for softmax outputs.
double softmax_generalization(int tokens, double beta, const Alignment& at, const Integration& integration);

}  // namespace bayesaim::losses
