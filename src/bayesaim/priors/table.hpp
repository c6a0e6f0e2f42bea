// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bayesaim/priors/prior.hpp"

namespace bayesaim::priors {

/// What a prior chosen by name may need.
struct PriorOptions {
    double width = 1;             ///< r / d
    std::string spectrum_file{};  ///< for the prior `spectrum`
};

struct PriorEntry {
    std::string name;
    std::string summary;
    std::function<std::unique_ptr<Prior>(const PriorOptions&)> make;
};

/// Every prior that can be chosen by name: help texts, Python and the contract tests iterate over this.
const std::vector<PriorEntry>& prior_table();

std::vector<std::string> prior_names();

/// Throws InvalidArgument with the known names when there is no such prior.
std::unique_ptr<Prior> make_prior(const std::string& name, const PriorOptions& options);

}  // namespace bayesaim::priors
