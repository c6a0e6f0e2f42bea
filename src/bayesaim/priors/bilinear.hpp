// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/bilinear_law.hpp"

namespace bayesaim::priors {

/// Untied attention: S = W_Q W_K^T / sqrt(r d), W_Q and W_K of size d x r with independent N(0, 1) entries,
/// r = width * d. S is not symmetric; tr S S^T = 1 for every width.
class Bilinear final : public Prior {
  public:
    explicit Bilinear(double width) : width_(width), law_(width) {}

    std::string name() const override { return "bilinear"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {{"width", width_}}; }
    bool symmetric() const override { return false; }
    const spectral::SpectralLaw& law() const override { return law_; }

    /// r is width * dim, rounded; it must be at least 1.
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    double width_;
    spectral::BilinearLaw law_;
};

}  // namespace bayesaim::priors
