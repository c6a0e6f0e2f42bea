// SPDX-License-Identifier: MIT
#pragma once
#include <span>

#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/atomic_law.hpp"

namespace bayesaim::priors {

/// A spectrum given by the user: S = O diag(eigenvalues) O^T with O Haar distributed. At finite d the
/// eigenvalues are the quantiles (i + 1/2)/d of the given law; only the eigenvectors are random.
/// See UserSingularValues for matrices that are not symmetric.
class UserSpectrum final : public Prior {
  public:
    UserSpectrum(std::span<const double> eigenvalues, std::span<const double> weights)
        : law_(eigenvalues, weights) {}
    explicit UserSpectrum(std::span<const double> eigenvalues) : law_(eigenvalues) {}

    std::string name() const override { return "spectrum"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    const spectral::SpectralLaw& law() const override { return law_; }
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    spectral::AtomicLaw law_;
};

/// Singular values given by the user: S = O diag(values) P^T with O and P Haar distributed and independent.
class UserSingularValues final : public Prior {
  public:
    /// The values must not be negative.
    UserSingularValues(std::span<const double> values, std::span<const double> weights);

    std::string name() const override { return "spectrum"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    bool symmetric() const override { return false; }
    const spectral::SpectralLaw& law() const override { return law_; }
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    spectral::AtomicLaw values_, law_;  // of the values, and of the values with both signs
};

}  // namespace bayesaim::priors
