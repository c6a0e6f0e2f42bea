// SPDX-License-Identifier: MIT
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bayesaim/experiments/results.hpp"

namespace bayesaim::experiments {

struct SweepProgress {
    std::size_t finished = 0, total = 0;  ///< tasks of this sweep, with those that were there before
    double fraction = 0;                  ///< of the task that reports
    std::string text{};
};

struct SweepOptions {
    Shard shard{};
    bool retry_failed = false;
    std::size_t threads = 0;  ///< 0: one per core; results do not depend on it
    /// Told how it stands, by one thread at a time; false stops the sweep and keeps what is done.
    std::function<bool(const SweepProgress&)> progress{};
};

struct SweepResult {
    std::vector<Point> points;  ///< all tasks of the study; no outcome where there is none yet
    std::size_t computed = 0;   ///< by this call
    std::size_t damaged = 0;    ///< records that had to be done again
    bool stopped = false;
};

/// Does what is missing of a study in a run directory, which is made if need be, and writes its results. The
/// same directory can be used again after any interruption, or with a study to which points were added.
/// Throws when the directory cannot be used or another process uses it; what is done is kept then too.
SweepResult run_sweep(const Experiment& experiment, const std::filesystem::path& directory,
                      const SweepOptions& options = {});

/// What run_sweep would do.
struct SweepPlan {
    std::size_t tasks = 0;  ///< of the shard
    std::size_t done = 0, failed = 0, missing = 0;
    double seconds = 0;     ///< estimate for what is missing
    bool measured = false;  ///< by runs of this study, rather than by counting operations
};
SweepPlan plan_sweep(const Experiment& experiment, const std::filesystem::path& directory,
                     const SweepOptions& options = {});

/// Gathers run directories of one study (its shards) in `output`, as if one sweep had done it all; results
/// that `output` has count like theirs. Throws InvalidArgument if the studies differ, or if they disagree
/// about a result.
std::vector<Point> merge_sweeps(const std::vector<std::filesystem::path>& directories,
                                const std::filesystem::path& output);

}  // namespace bayesaim::experiments
