// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

namespace bayesaim::priors {

/// S with independent N(0, 1/d) entries: the limit of untied attention at infinite width. Its singular values with
/// both signs follow the semicircle law, and mmse(D) = D/(1+D).
class Ginibre final : public Prior {
  public:
    Ginibre() : law_(spectral::MarchenkoPasturLaw::semicircle()) {}

    std::string name() const override { return "ginibre"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {}; }
    bool symmetric() const override { return false; }
    const spectral::SpectralLaw& law() const override { return law_; }
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    spectral::MarchenkoPasturLaw law_;
};

}  // namespace bayesaim::priors
