// SPDX-License-Identifier: MIT
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bayesaim/channels/channel.hpp"
#include "bayesaim/data/dataset.hpp"
#include "bayesaim/data/linear_terms.hpp"

/// Whether a fit is to be believed: what samples say that the fit has not seen.
namespace bayesaim::estimators {

/// The samples of a dataset in two parts.
struct Split {
    data::Dataset training, held_out;
};

/// Holds out this many samples, chosen by the seed; the order of the others is kept.
Split hold_out(const data::Dataset& data, Eigen::Index samples, std::uint64_t seed,
               const Communicator& ranks = one_process());

/// An estimate, as far as predictions need it.
struct FittedModel {
    std::span<const linalg::Matrix> estimates;
    linalg::Overlap error;  ///< C
    const channels::Channel& channel;
    data::LinearTerms terms{};
};

/// The fit on samples that it has not seen, with omega = htilde(Shat) and V = v C.
struct HeldOutFit {
    Eigen::Index samples = 0;
    /// Outputs with m observed combinations of h: tr(V sum gg')/tr(V sum -dg/domega), the mean square of the residuals in
    /// units of what V promises, 1 +- sqrt(2/(n m)). Absent for discrete outputs.
    std::optional<double> ratio{};
    /// Standard normal if the model is right: (ratio - 1)/sqrt(2/(n m)). For other outputs, with L = -log Z(y) and the
    /// mean and variance of L over outputs that the model draws, sum(L - mean)/sqrt(sum variance).
    std::optional<double> z{};
    /// ||Shat - S||^2/d as the residuals show it, whatever the prior. Absent for discrete outputs.
    std::optional<double> error{};
    double loss = 0;  ///< the error if there is one, otherwise the mean of -log Z; the smaller, the better
    /// |z| > 3 for the error C that was promised, and for every other one within its own uncertainty.
    bool refuted = false;
};

/// `uncertainty` is that of C, relative: at finite d the promise has an error of its own.
HeldOutFit held_out_fit(const data::Dataset& data, const FittedModel& fitted, double uncertainty,
                        ThreadPool& pool);

}  // namespace bayesaim::estimators
