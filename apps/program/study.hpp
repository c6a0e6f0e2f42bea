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

/// --threads, --format, --quiet of the commands that work on run directories.
struct StudyArguments {
    int threads = 0;
    std::string format = "table";
    bool quiet = false;

    void add_to(Command& command);
    experiments::SweepOptions options() const;
};

/// Shows the progress of a sweep in the bar; Ctrl-C stops the sweep.
std::function<bool(const experiments::SweepProgress&)> show(Progress& progress,
                                                            const std::string& title = "");

/// run_sweep with a bar; Ctrl-C stops it.
experiments::SweepResult sweep_with_progress(const StudyArguments& arguments,
                                             const experiments::Experiment& experiment,
                                             const std::filesystem::path& directory,
                                             experiments::SweepOptions options);

struct StudyCounts {
    std::size_t total = 0, done = 0, not_converged = 0, failed = 0, missing = 0;
    StudyCounts& operator+=(const StudyCounts& other);
};
StudyCounts count_points(const std::vector<experiments::Point>& points);
Record describe(const std::filesystem::path& directory, const StudyCounts& counts);

/// Returns the exit code, and explains it on standard error.
int finish(const StudyCounts& counts, bool stopped);

}  // namespace bayesaim::program
