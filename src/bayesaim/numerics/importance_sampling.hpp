// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>

#include <Eigen/Core>

namespace bayesaim::numerics {

/// A function f >= 0 to integrate, and the reference, a probability density that is positive where f is.
class ImportanceTarget {
  public:
    struct Logarithms {
        double target;     ///< log f; -infinity where f = 0
        double reference;  ///< log of the reference's density
    };

    virtual ~ImportanceTarget() = default;
    virtual int dimension() const = 0;
    virtual Logarithms at(const Eigen::VectorXd& x) const = 0;
    /// A point of the reference from independent standard normal numbers.
    virtual Eigen::VectorXd draw_reference(const Eigen::VectorXd& normal) const = 0;
    /// Points that may lead to maxima of f, one per column.
    virtual Eigen::MatrixXd starts() const { return {}; }
};

struct WeightedPoints {
    Eigen::MatrixXd points;   ///< one per column
    Eigen::VectorXd weights;  ///< sum to 1; averages over f are weighted means
    double log_integral = 0;  ///< log int f; -infinity if f vanished at every point
    double effective = 0;     ///< effective number of samples, (sum w)^2 / sum w^2
};

/// Importance sampling with a mixture of Gaussians that learns the shape of f, for few dimensions and any
/// number of bumps. Gaussians are put on the maxima that Newton's method finds from the target's starts and
/// from the best points of the reference; a few rounds of expectation-maximisation on weighted points fit
/// means, covariances and shares (population Monte Carlo: Cappé, Douc, Guillin, Marin and Robert 2008). The
/// points of the result come from the last mixture, which keeps a share of the reference and wider copies of
/// the Gaussians so that no weight is large by accident. Sobol points: the same seed gives the same bits.
/// Pinned by: AdaptiveImportance.*.
class AdaptiveImportance {
  public:
    AdaptiveImportance(int dimension, int points, std::uint64_t seed = 0);

    WeightedPoints operator()(const ImportanceTarget& target) const;

  private:
    Eigen::MatrixXd pilot_, points_;  // standard normal, one point per column
};

}  // namespace bayesaim::numerics
