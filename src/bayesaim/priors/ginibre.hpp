// SPDX-License-Identifier: MIT
#pragma once
#include <memory>

#include "bayesaim/priors/prior.hpp"

namespace bayesaim::priors {

/// S with independent N(0, 1/d) entries: the limit of untied attention at infinite width. Its singular values with
/// both signs follow the semicircle law, and mmse(D) = D/(1+D). With keys of
/// dimension d2 = aspect * d1: entries of variance 1/sqrt(d1 d2), the same mmse.
class Ginibre final : public Prior {
  public:
    explicit Ginibre(double aspect = 1);

    std::string name() const override { return "ginibre"; }
    std::vector<std::pair<std::string, double>> parameters() const override;
    bool symmetric() const override { return false; }
    const spectral::SpectralLaw& law() const override { return *law_; }
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    std::shared_ptr<const spectral::SpectralLaw> law_;
};

}  // namespace bayesaim::priors
