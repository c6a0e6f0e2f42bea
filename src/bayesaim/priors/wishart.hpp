// SPDX-License-Identifier: MIT
#pragma once
#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

namespace bayesaim::priors {

/// r = width * dim, rounded: the columns of a weight matrix. Throws InvalidArgument if it has none.
Eigen::Index weight_columns(double width, Eigen::Index dim);

/// Tied attention: S = W W^T / sqrt(r d), W of size d x r with independent N(0, 1) entries, r = width * d.
/// tr S = sqrt(width), tr S^2 = 1 + width.
class Wishart final : public Prior {
  public:
    explicit Wishart(double width) : width_(width), law_(width) {}

    std::string name() const override { return "wishart"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {{"width", width_}}; }
    const spectral::SpectralLaw& law() const override { return law_; }

    /// r is width * dim, rounded; it must be at least 1.
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    double width_;
    spectral::MarchenkoPasturLaw law_;
};

}  // namespace bayesaim::priors
