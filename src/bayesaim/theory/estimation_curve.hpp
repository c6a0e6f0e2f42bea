// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "bayesaim/channels/geometry.hpp"
#include "bayesaim/linalg/overlap.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::denoisers {
struct PartsPoint;
}

namespace bayesaim::theory {

using linalg::Overlap;
using spectral::Laws;

/// The priors as state evolution sees them: the best error C of estimating S_1 .. S_L from S_l + N_l, where
/// Cov(N) = qhat^-1 x GOE, as a function of the precision qhat. All matrices are 1 x 1 for one layer.
class EstimationCurve {
  public:
    /// One layer: the error E = Q - q at one noise variance D = 1/qhat, and dE/dD.
    using Point = spectral::ErrorPoint;

    virtual ~EstimationCurve() = default;
    /// Layers, or the two parts of S in self-attention (channels::Geometry): the size of all matrices here.
    virtual int components() const { return 1; }
    virtual Overlap known_overlap() const = 0;  ///< q without data: kappa1 kappa1'
    /// C without data: diag(kappa2 - kappa1^2) = Q - known_overlap.
    virtual Overlap prior_error() const = 0;
    /// lim Tr(C qhat) as qhat grows: the sum over layers of lim E(D)/D for D -> 0.
    virtual double recovery_ratio() const = 0;

    virtual Overlap covariance(const Overlap& precision) const;  ///< C(qhat); the default is for one layer
    /// Estimate of the relative error of Tr C; 0 for one layer.
    virtual double covariance_error(const Overlap&) const { return 0; }
    /// Estimate of what must be added to covariance(); 0 unless it is an approximation with a known bias.
    virtual Overlap covariance_bias(const Overlap&) const { return linalg::zero_overlap(components()); }

    /// Two parts of S: the diagonals of both, and the derivative; std::nullopt for others.
    virtual std::optional<denoisers::PartsPoint> parts_at(double symmetric_noise,
                                                          double antisymmetric_noise) const;

    virtual Point at(double noise_variance) const = 0;  ///< one layer
    /// The smallest D at which E(D)/D differs from recovery_ratio() by digits that can be trusted; one layer.
    virtual double smallest_noise() const { return 1e-10 * prior_error()(0, 0); }
    /// I_in(qhat), I_in' = q/4, of one layer.
    virtual double free_entropy(double inverse_noise_variance) const = 0;

    /// d2/d1 of weights of size d1 x d2. A few singular values, of size sqrt(d1 d2)/r, show in noise below
    /// D = sqrt(d2/d1)/width: weak recovery is at alpha/width times 1/sqrt(aspect).
    virtual double aspect() const { return 1; }

    Overlap total() const { return known_overlap() + prior_error(); }  ///< Q
};

/// Any rotationally invariant priors, through the spectral engine: mmse of one layer, cavity_covariance of
/// several. The laws must outlive the curve.
class SpectralCurve final : public EstimationCurve {
  public:
    explicit SpectralCurve(const spectral::SpectralLaw& law) : laws_{&law} {}
    explicit SpectralCurve(Laws laws) : laws_(laws.begin(), laws.end()) {}

    int components() const override { return static_cast<int>(laws_.size()); }
    Overlap known_overlap() const override;
    Overlap prior_error() const override;
    double recovery_ratio() const override;
    Overlap covariance(const Overlap& precision) const override;
    double covariance_error(const Overlap& precision) const override;
    Point at(double noise_variance) const override;
    double smallest_noise() const override { return only_law().smallest_resolved_noise(); }
    double aspect() const override { return laws_.front()->aspect(); }
    double free_entropy(double inverse_noise_variance) const override;

  private:
    const spectral::SpectralLaw& only_law() const;

    std::vector<const spectral::SpectralLaw*> laws_;
};

/// Self-attention with the diagonal: the symmetric and the antisymmetric part of S as two components. An approximation
/// (denoisers::parts_covariance). The law must outlive the curve.
class PartsCurve final : public EstimationCurve {
  public:
    explicit PartsCurve(const spectral::SpectralLaw& law) : law_(law) {}

    int components() const override { return 2; }
    Overlap known_overlap() const override { return linalg::zero_overlap(2); }
    Overlap prior_error() const override;
    double recovery_ratio() const override;
    Overlap covariance(const Overlap& precision) const override;
    Overlap covariance_bias(const Overlap& precision) const override;
    std::optional<denoisers::PartsPoint> parts_at(double symmetric_noise,
                                                  double antisymmetric_noise) const override;
    Point at(double noise_variance) const override;
    double free_entropy(double inverse_noise_variance) const override;

  private:
    const spectral::SpectralLaw& law_;
};

/// The curve of a model with these priors and this geometry. The laws must outlive the curve.
std::unique_ptr<EstimationCurve> make_curve(Laws laws, const channels::Geometry& geometry);

/// Tied or untied attention of small width, rho -> 0 with alpha/rho fixed. alpha and qhat are in units of rho, D in
/// units of 1/rho, so that D stands for t = rho/qhat:
///   E(t) = t (2 - t) for t <= 1, 1 beyond;   I_in(x) = (x - 2 log x - 1/x)/4 for x = 1/t >= 1, 0 below.
/// Large width needs no curve of its own: it is the semicircle law.
class SmallWidthCurve final : public EstimationCurve {
  public:
    Overlap known_overlap() const override { return linalg::scalar_overlap(0); }
    Overlap prior_error() const override { return linalg::scalar_overlap(1); }
    double recovery_ratio() const override { return 2; }
    Point at(double noise_variance) const override;
    double free_entropy(double inverse_noise_variance) const override;
};

}  // namespace bayesaim::theory
