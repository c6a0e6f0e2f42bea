// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::theory {

/// What state evolution needs of a prior: the best error of estimating S from S + sqrt(D) Xi, as a function
/// of D.
class EstimationCurve {
  public:
    struct Point {
        double error = 0;  ///< E(D) = Q - q
        double slope = 0;  ///< dE/dD
    };

    virtual ~EstimationCurve() = default;
    virtual double known_overlap() const = 0;   ///< q without data: kappa1^2
    virtual double prior_error() const = 0;     ///< E without data: kappa2 - kappa1^2 = Q - known_overlap
    virtual double recovery_ratio() const = 0;  ///< lim E(D)/D for D -> 0
    /// Exact, or to about 1e-8 where an iteration is still under way and that is cheaper.
    enum class Accuracy { full, coarse };
    virtual Point at(double noise_variance, Accuracy accuracy = Accuracy::full) const = 0;
    virtual double free_entropy(double inverse_noise_variance) const = 0;  ///< I_in(qhat), I_in' = q/4

    double total() const { return known_overlap() + prior_error(); }  ///< Q
};

/// Any rotationally invariant prior, through the spectral engine. The law must outlive the curve.
class SpectralCurve final : public EstimationCurve {
  public:
    explicit SpectralCurve(const spectral::SpectralLaw& law) : law_(&law) {}
    double known_overlap() const override { return law_->mean() * law_->mean(); }
    double prior_error() const override { return law_->variance(); }
    double recovery_ratio() const override { return 1 - law_->atomic_concentration(); }
    Point at(double noise_variance, Accuracy accuracy = Accuracy::full) const override;
    double free_entropy(double inverse_noise_variance) const override;

  private:
    const spectral::SpectralLaw* law_;
};

/// Tied attention of small width, rho -> 0 with alpha/rho fixed. In units where alpha and qhat count in rho
/// and D in 1/rho, so that D stands for t = rho/qhat:
///   E(t) = t (2 - t) for t <= 1, 1 beyond;   I_in(x) = (x - 2 log x - 1/x)/4 for x = 1/t >= 1, 0 below.
/// Large width needs no curve of its own: it is the semicircle law.
class SmallWidthCurve final : public EstimationCurve {
  public:
    double known_overlap() const override { return 0; }
    double prior_error() const override { return 1; }
    double recovery_ratio() const override { return 2; }
    Point at(double noise_variance, Accuracy accuracy = Accuracy::full) const override;
    double free_entropy(double inverse_noise_variance) const override;
};

}  // namespace bayesaim::theory
