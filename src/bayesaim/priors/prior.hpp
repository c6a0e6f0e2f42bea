// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/linalg/blas.hpp"
#include "bayesaim/spectral/spectral_law.hpp"

namespace bayesaim::priors {

/// A rotationally invariant prior on d x d weight matrices S: its law for large d, and draws at finite d. Matrices of
/// untied attention have d rows and law().columns(d) columns.
class Prior {
  public:
    virtual ~Prior() = default;

    virtual std::string name() const = 0;

    /// The parameters that every result reports, e.g. {{"width", 0.5}}.
    virtual std::vector<std::pair<std::string, double>> parameters() const = 0;

    /// Whether S is symmetric, as in tied attention.
    virtual bool symmetric() const { return true; }

    /// Law of the eigenvalues of S for large d; if S is not symmetric, of its singular values with both signs.
    /// The prior owns it.
    virtual const spectral::SpectralLaw& law() const = 0;

    /// A draw of S. The same (dim, seed, index) gives the same bits for any number of threads.
    virtual linalg::Matrix sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                  ThreadPool& pool) const = 0;
};

}  // namespace bayesaim::priors
