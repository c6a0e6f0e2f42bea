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
    std::size_t finished = 0, total = 0;  ///< tasks of this sweep, including those finished before
    double fraction = 0;                  ///< finished fraction of the task that reports
    std::string text{};
};

struct SweepOptions {
    Shard shard{};
    bool retry_failed = false;
    std::size_t threads = 0;        ///< of each rank; 0: default_threads(); results do not depend on it
    Communicator* ranks = nullptr;  ///< that compute the points together; the first keeps the store
    double write_seconds = 10;  ///< at least this long between two writings of results.csv and summary.csv
    /// Called by one thread at a time, several times a second; returns false to stop the sweep, which keeps the
    /// finished points.
    std::function<bool(const SweepProgress&)> progress{};
};

struct SweepResult {
    std::vector<Point> points;  ///< all tasks of the study; unfinished ones have no outcome
    std::size_t computed = 0;   ///< by this call
    std::size_t damaged = 0;    ///< damaged records, which were computed again
    bool stopped = false;
    /// The directory held another version of the study: some points are the same, others not. All finished
    /// points stay in the store, and the tables have those of the present version.
    bool other_version = false;
};

/// Computes the missing points of a study in a run directory, which is created if necessary, and writes the
/// results. The directory can be used again after any interruption, and after points were added to the study.
/// The CSV files grow while it runs.
/// Among several ranks all call it, with the same study. The first hands out the points, the costly ones first, and gets
/// the result; the others have points without outcomes.
/// Throws if the directory cannot be used, another process uses it, or it holds other files or another study
/// (of another name, or without a point of this one); finished points are kept.
SweepResult run_sweep(const Experiment& experiment, const std::filesystem::path& directory,
                      const SweepOptions& options = {});

/// The work that run_sweep would do.
struct SweepPlan {
    std::size_t tasks = 0;  ///< of the shard
    std::size_t done = 0, failed = 0, missing = 0;
    double seconds = 0;     ///< estimate for the missing points
    bool measured = false;  ///< from runs of this study, rather than from operation counts
    double bytes = 0;       ///< estimate of the peak memory, within a factor of 2; 0 if nothing is missing
};
/// Throws InvalidArgument if the directory holds other files or another study.
SweepPlan plan_sweep(const Experiment& experiment, const std::filesystem::path& directory,
                     const SweepOptions& options = {});

/// Joins run directories of one study (its shards) in `output`, as if one sweep had computed all points.
/// Results already in `output` count too. Throws InvalidArgument if studies differ, also that in
/// `output`, or two results disagree.
std::vector<Point> merge_sweeps(const std::vector<std::filesystem::path>& directories,
                                const std::filesystem::path& output);

}  // namespace bayesaim::experiments
