// SPDX-License-Identifier: MIT
#pragma once
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/priors/prior.hpp"

#include "binding.hpp"

namespace bayesaim::python {

/// A prior for each layer.
using Priors = std::vector<std::shared_ptr<priors::Prior>>;
using LawList = std::vector<const spectral::SpectralLaw*>;

/// Asks priors written in Python for their laws while the lock is held.
inline LawList laws_of(const Priors& priors) {
    LawList laws;
    for (const auto& prior : priors) laws.push_back(&prior->law());
    return laws;
}

inline LawList laws_of(const Priors& priors, const channels::Channel& channel) {
    check_size("priors", static_cast<long long>(priors.size()), channel.layers());
    return laws_of(priors);
}

inline std::vector<const priors::Prior*> pointers_to(const Priors& priors) {
    std::vector<const priors::Prior*> pointers;
    for (const auto& prior : priors) pointers.push_back(prior.get());
    return pointers;
}

}  // namespace bayesaim::python
