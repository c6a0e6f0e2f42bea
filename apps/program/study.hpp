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

/// run_sweep with a bar; Ctrl-C stops it. A log, as opposed to a terminal, begins with a line that tells the
/// version, the machine and the time.
experiments::SweepResult sweep_with_progress(const experiments::Experiment& experiment,
                                             const std::filesystem::path& directory,
                                             experiments::SweepOptions options, bool quiet);

struct StudyCounts {
    std::size_t total = 0, done = 0, not_converged = 0, failed = 0, missing = 0;
    std::string first_not_converged{};    ///< a description with the status
    std::vector<std::string> failures{};  ///< descriptions of the first few, with the reasons

    /// Counts the points of the shard too. `title` precedes the descriptions.
    void add(const std::vector<experiments::Point>& points, const experiments::Shard& shard = {},
             const std::string& title = "");
    std::size_t finished() const { return done + failed; }
};
Record describe(const std::filesystem::path& directory, const StudyCounts& counts);

/// Returns the exit code, and explains it on standard error: 0, 2 if points failed or are missing (with
/// --strict also if points did not converge), 130 if the study was stopped.
int finish(const StudyCounts& counts, bool stopped, const CommonArguments& arguments);

}  // namespace bayesaim::program
