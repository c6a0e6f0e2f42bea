// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "bayesaim/priors/prior.hpp"
#include "bayesaim/testing/channel_contract.hpp"

namespace bayesaim::testing {

struct PriorContractOptions {
    Eigen::Index dim = 300;
    int draws = 12;
    double smallest_noise_variance = 1e-10;  ///< of the checks that use only the law
    double largest_noise_variance = 1e10;
};

struct PriorCheck {
    std::string name;
    std::function<Violations(const priors::Prior&, const PriorContractOptions&)> run;
};

/// The promises of every prior:
///   samples_have_their_shape  finite, of the size that was asked for, symmetric if the prior is
///   samples_repeat          the same seed and index give the same bits for any number of threads
///   samples_differ          other seeds and indices give independent draws
///   moments                 tr S and tr S^2 of samples agree with the law
///   spectrum_under_noise    the eigenvalues of S + sqrt(D) Xi follow the free convolution; singular values with both
///                           signs, and Xi with independent N(0, 1/d) entries, if S is not symmetric
///   mmse                    increases from 0 to the prior's variance, slower than D
const std::vector<PriorCheck>& prior_checks();

/// Runs all checks; each line begins with the name of the check. An exception breaks the promise.
Violations check_prior(const priors::Prior& prior, const PriorContractOptions& options = {});

}  // namespace bayesaim::testing
