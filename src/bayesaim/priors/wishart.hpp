// SPDX-License-Identifier: MIT
#pragma once
#include <memory>

#include "bayesaim/priors/prior.hpp"

namespace bayesaim::priors {

/// r = width * dim, rounded: the columns of a weight matrix. Throws InvalidArgument if it has none.
Eigen::Index weight_columns(double width, Eigen::Index dim);

/// Tied attention: S = W W^T / sqrt(r d), W of size d x r with independent N(0, 1) entries, r = width * d.
/// tr S = sqrt(width), tr S^2 = 1 + width. A scale c multiplies S.
class Wishart final : public Prior {
  public:
    explicit Wishart(double width, double scale = 1);

    std::string name() const override { return "wishart"; }
    /// The scale only if it is not 1.
    std::vector<std::pair<std::string, double>> parameters() const override;
    const spectral::SpectralLaw& law() const override { return *law_; }

    /// r is width * dim, rounded; it must be at least 1.
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    double width_, scale_;
    std::shared_ptr<const spectral::SpectralLaw> law_;
};

}  // namespace bayesaim::priors
