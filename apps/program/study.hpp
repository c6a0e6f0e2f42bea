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

    void add_to(CLI::App& app);
    experiments::SweepOptions options() const;
};

/// What a sweep tells goes to the bar; Ctrl-C stops it.
std::function<bool(const experiments::SweepProgress&)> show(Progress& progress,
                                                            const std::string& title = "");

/// run_sweep with a bar, and Ctrl-C as a request to stop.
experiments::SweepResult sweep_with_progress(const StudyArguments& arguments,
                                             const experiments::Experiment& experiment,
                                             const std::filesystem::path& directory,
                                             experiments::SweepOptions options);

struct StudyCounts {
    std::size_t total = 0, done = 0, not_converged = 0, failed = 0, missing = 0;
    StudyCounts& operator+=(const StudyCounts& other);
};
StudyCounts count_points(const std::vector<experiments::Point>& points);
Json describe(const std::filesystem::path& directory, const StudyCounts& counts);

/// The exit code; says on standard error what a user has to know about it.
int finish(const StudyCounts& counts, bool stopped);

}  // namespace bayesaim::program
