// SPDX-License-Identifier: MIT
#pragma once
#include <memory>
#include <span>

#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/bump_law.hpp"

namespace bayesaim::priors {

/// A spectrum made of semicircles and atoms, as `fit` learns it: S = O diag(values) O^T, or O diag(values)
/// P^T if S is not symmetric, O and P Haar distributed. At finite d the values are the quantiles (i +
/// 1/2)/d of the law of eigenvalues, or of that of |x|.
class LearnedSpectrum final : public Prior {
  public:
    /// If S is not symmetric, the law is that of its singular values with both signs: for every bump there
    /// must be its mirror image, to 1e-6 of the size of the law.
    explicit LearnedSpectrum(std::span<const spectral::Bump> bumps, bool symmetric = true);

    std::string name() const override { return "spectrum"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    bool symmetric() const override { return symmetric_; }
    const spectral::SpectralLaw& law() const override { return law_; }
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    bool symmetric_;
    spectral::BumpLaw law_;
};

/// Another prior, which a file describes: it has the name of priors that come from files, and its
/// parameters.
class StoredPrior final : public Prior {
  public:
    explicit StoredPrior(std::unique_ptr<const Prior> prior) : prior_(std::move(prior)) {}

    std::string name() const override { return "spectrum"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return prior_->parameters(); }
    bool symmetric() const override { return prior_->symmetric(); }
    const spectral::SpectralLaw& law() const override { return prior_->law(); }
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override {
        return prior_->sample(dim, seed, index, pool);
    }

  private:
    std::unique_ptr<const Prior> prior_;
};

}  // namespace bayesaim::priors
