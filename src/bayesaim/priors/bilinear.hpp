// SPDX-License-Identifier: MIT
#pragma once
#include <memory>

#include "bayesaim/priors/prior.hpp"

namespace bayesaim::priors {

/// Untied attention: S = W_Q W_K^T / sqrt(r d), W_Q and W_K of size d x r with independent N(0, 1) entries,
/// r = width * d. S is not symmetric; tr S S^T = 1 for every width. A scale c multiplies S.
///
/// Queries of dimension d1 and keys of dimension d2 = aspect * d1: S = W_Q W_K^T / (r^2 d1 d2)^(1/4), W_Q of size d1 x r,
/// W_K of size d2 x r, r = width * d1. ||S||_F^2/sqrt(d1 d2) -> 1; see spectral::RectangularLaw.
class Bilinear final : public Prior {
  public:
    explicit Bilinear(double width, double aspect = 1, double scale = 1);

    std::string name() const override { return "bilinear"; }
    /// The aspect and the scale only if they are not 1.
    std::vector<std::pair<std::string, double>> parameters() const override;
    bool symmetric() const override { return false; }
    const spectral::SpectralLaw& law() const override { return *law_; }

    /// dim x law().columns(dim). r is width * dim, rounded; it must be at least 1.
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    double width_, scale_;
    std::shared_ptr<const spectral::SpectralLaw> law_;
};

}  // namespace bayesaim::priors
