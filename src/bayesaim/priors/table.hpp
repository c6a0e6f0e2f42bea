// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bayesaim/priors/prior.hpp"

namespace bayesaim::priors {

/// The options of all priors; each prior uses some of them.
struct PriorOptions {
    double width = 1;        ///< r / d
    std::string spectrum{};  ///< name of a file of eigenvalues or of an estimate
    int heads = 2;           ///< M
    double aspect = 1;       ///< d2/d1: dimension of the keys over that of the queries
    double scale = 1;        ///< multiplies S
    double exponent = 1;     ///< gamma of a power-law spectrum
    double cutoff = 1e-3;    ///< x0 of a power-law spectrum
    /// Whether S is symmetric, for priors that can be either; if not given, as its file says.
    std::optional<bool> symmetric{};
};

struct PriorEntry {
    std::string name;
    std::string summary;
    std::vector<std::string> options;  ///< the names of those that it takes
    std::function<std::unique_ptr<Prior>(const PriorOptions&)> make;
    /// Whether its matrices are symmetric (tied attention), not symmetric, or as PriorOptions says.
    enum class Matrices { symmetric, general, either } matrices = Matrices::symmetric;
};

/// Every prior that can be chosen by name; see core/table.hpp.
const std::vector<PriorEntry>& prior_table();

/// Throws InvalidArgument with the known names if there is no such prior.
std::unique_ptr<Prior> make_prior(const std::string& name, const PriorOptions& options);

}  // namespace bayesaim::priors
