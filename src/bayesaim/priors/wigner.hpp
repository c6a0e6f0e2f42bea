// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

namespace bayesaim::priors {

/// S ~ GOE(d): off-diagonal variance 1/d, semicircle spectrum on [-2, 2]. It is the limit of tied attention
/// at infinite width, minus its mean. Entries are independent Gaussians, hence mmse(D) = D/(1+D).
class Wigner final : public Prior {
  public:
    Wigner() : law_(spectral::MarchenkoPasturLaw::semicircle()) {}

    std::string name() const override { return "wigner"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {}; }
    const spectral::SpectralLaw& law() const override { return law_; }
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    spectral::MarchenkoPasturLaw law_;
};

}  // namespace bayesaim::priors
