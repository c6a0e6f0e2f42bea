// SPDX-License-Identifier: MIT
#pragma once
#include <memory>

#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/power_law.hpp"

namespace bayesaim::priors {

/// A power-law spectrum: S = O diag(lambda) O^T, O Haar distributed. The eigenvalues are c (x + x0)^(-gamma), x
/// uniform on (0, width), with gamma the exponent and x0 the cutoff; the others are 0. tr S^2 = 1 for large d. A
/// scale multiplies S. At finite d the eigenvalues are those of x = (i + 1/2)/d, i < r = width * d. They follow
/// the law if d is large against 1/x0. Otherwise x = 1/(2d) decides the largest, and tr S^2 is below 1.
class PowerLaw final : public Prior {
  public:
    explicit PowerLaw(double exponent, double width = 1, double cutoff = 1e-3, double scale = 1);

    std::string name() const override { return "power-law"; }
    /// The scale only if it is not 1.
    std::vector<std::pair<std::string, double>> parameters() const override;
    const spectral::SpectralLaw& law() const override { return *scaled_; }

    /// r is width * dim, rounded; it must be at least 1.
    linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                          ThreadPool& pool) const override;

  private:
    double exponent_, width_, cutoff_, scale_;
    std::shared_ptr<const spectral::PowerLaw> law_;
    std::shared_ptr<const spectral::SpectralLaw> scaled_;
};

}  // namespace bayesaim::priors
