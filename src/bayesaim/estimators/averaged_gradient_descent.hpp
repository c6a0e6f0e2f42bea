// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <vector>

#include "bayesaim/estimators/gradient_descent.hpp"

namespace bayesaim::estimators {

struct AveragedGradientDescentOptions {
    GradientDescentOptions descent;
    int starts = 32;  ///< M
    /// Goes on from here instead of from new starts: as many descents, of the same data and options.
    std::vector<Descent> resume{};
    /// Told of all descents after every `progress_stride` steps and at the end; false stops the run.
    std::function<bool(const std::vector<Descent>&)> progress{};
    int progress_stride = 10;
};

struct AveragedGradientDescentResult {
    std::vector<Descent> descents;  ///< one per start; status `stopped` where the caller stopped it
    linalg::Matrix estimate;        ///< mean of S over the starts that did not diverge; empty if all did
    Termination status = Termination::iteration_limit;  ///< the worst of the starts
};

/// Averaged gradient descent: S averaged over M starts on the same data. The loss has a manifold of minima
/// below strong recovery; the mean over starts is closer to the posterior mean than any of them.
/// Starts run side by side, a few on each thread; start m has the same bits alone and among others.
AveragedGradientDescentResult run_averaged_gradient_descent(const data::Dataset& data,
                                                            const channels::Channel& channel,
                                                            const AveragedGradientDescentOptions& options,
                                                            ThreadPool& pool);

/// measure(S of start m), and measure(mean of S over the starts 0 .. m), for every m. A start that diverged
/// is NaN in the first and left out of the second.
struct StartErrors {
    std::vector<double> each, averaged;
};
StartErrors measure_starts(const std::vector<Descent>& descents,
                           const std::function<double(const linalg::Matrix&)>& measure);

}  // namespace bayesaim::estimators
