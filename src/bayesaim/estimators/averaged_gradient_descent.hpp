// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "bayesaim/estimators/gradient_descent.hpp"

namespace bayesaim::estimators {

struct AveragedGradientDescentOptions {
    GradientDescentOptions descent;
    int starts = 32;  ///< M
    /// Continue these descents instead of new starts: one per start, with the same data and options.
    std::vector<Descent> resume{};
    /// Called with all descents after every `progress_stride` steps and at the end; returns false to stop.
    std::function<bool(const std::vector<Descent>&)> progress{};
    int progress_stride = 10;
    /// Ranks over which the starts are divided; each has all samples, and a pool of its own. The first one sees the
    /// progress of all starts, and all get the result. None: samples are divided over the ranks of the pool, if any.
    Communicator* starts_over = nullptr;
};

struct AveragedGradientDescentResult {
    std::vector<Descent> descents;  ///< one per start; status `stopped` if the caller stopped it
    linalg::Matrix estimate;        ///< mean of S over the starts that did not diverge; empty if all did
    Termination status = Termination::iteration_limit;  ///< the worst of the starts
};

/// Averaged gradient descent: the mean of S over M starts on the same data. Below strong recovery the loss
/// has a manifold of minima; the mean over starts is closer to the posterior mean than any one start.
/// Starts run in parallel; start m has the same bits alone and among others, on any rank.
AveragedGradientDescentResult run_averaged_gradient_descent(const data::Dataset& data,
                                                            const channels::Channel& channel,
                                                            const AveragedGradientDescentOptions& options,
                                                            ThreadPool& pool);

/// The last recorded loss, penalty included: the mean over the starts that did not diverge, if there are any.
std::optional<double> training_objective(const std::vector<Descent>& descents);

/// measure(S of start m), and measure(mean of S over the starts 0 .. m), for every m. A diverged start is NaN
/// in the first and left out of the second.
struct StartErrors {
    std::vector<double> each, averaged;
};
StartErrors measure_starts(const std::vector<Descent>& descents,
                           const std::function<double(const linalg::Matrix&)>& measure);

}  // namespace bayesaim::estimators
