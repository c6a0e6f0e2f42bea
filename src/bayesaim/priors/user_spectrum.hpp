// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <span>

#include "bayesaim/priors/prior.hpp"
#include "bayesaim/spectral/atomic_law.hpp"

namespace bayesaim::priors {

/// A spectrum given by the user: S = O diag(eigenvalues) O^T with O Haar distributed. At finite d the
/// eigenvalues are the quantiles (i + 1/2)/d of the given law; only the eigenvectors are random.
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

/// Reads one eigenvalue per line, or an eigenvalue and its weight on every line, separated by blanks or a
/// comma. Empty lines, and text after a '#', are skipped. Errors name the file and the line.
UserSpectrum read_spectrum(const std::filesystem::path& file);

}  // namespace bayesaim::priors
