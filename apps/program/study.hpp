// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bayesaim/experiments/sweep.hpp"

#include "program/options.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {

/// Shows the progress of a sweep in the bar; Ctrl-C stops the sweep.
std::function<bool(const experiments::SweepProgress&)> show(Progress& progress,
                                                            const std::string& title = "");

/// run_sweep with a bar; Ctrl-C stops it.
experiments::SweepResult sweep_with_progress(const experiments::Experiment& experiment,
                                             const std::filesystem::path& directory,
                                             experiments::SweepOptions options, bool quiet);

struct StudyCounts {
    std::size_t total = 0, done = 0, not_converged = 0, failed = 0, missing = 0;
    /// Counts the points of the shard too.
    void add(const std::vector<experiments::Point>& points, const experiments::Shard& shard = {});
};
Record describe(const std::filesystem::path& directory, const StudyCounts& counts);

/// Returns the exit code, and explains it on standard error.
int finish(const StudyCounts& counts, bool stopped);

}  // namespace bayesaim::program
