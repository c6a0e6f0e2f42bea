// SPDX-License-Identifier: MIT
#include "program/study.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include "bayesaim/core/version.hpp"

#include "program/interrupt.hpp"
#include "program/messages.hpp"
#include "program/progress.hpp"
#include "program/ranks.hpp"

namespace bayesaim::program {
namespace {

/// The first line of a log.
void print_start(std::size_t threads) {
    std::array<char, 256> host{};
    if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"unknown"};
    if (threads == 0) threads = default_threads();
    const int count = ranks().size();
    tell("bayesaim: version {}, commit {}, host {}, {}{} thread{}, {:%FT%TZ}\n", version(), git_commit(),
         host.data(), count == 1 ? "" : fmt::format("{} ranks of ", count), threads, threads == 1 ? "" : "s",
         fmt::gmtime(std::time(nullptr)));
}

}  // namespace

std::function<bool(const experiments::SweepProgress&)> show(Progress& progress, const std::string& title) {
    catch_interrupts();
    return [&progress, title,
            before = std::optional<std::size_t>()](const experiments::SweepProgress& now) mutable {
        // The fraction of the work of this call: points of earlier calls would shorten the time left.
        if (!before) before = now.finished;
        progress.update(
            static_cast<double>(now.finished - *before) / static_cast<double>(now.total - *before),
            fmt::format("{}{} of {} points; {}", title, now.finished, now.total, now.text));
        return !interrupted();
    };
}

experiments::SweepResult sweep_with_progress(const experiments::Experiment& experiment,
                                             const std::filesystem::path& directory,
                                             experiments::SweepOptions options, bool quiet) {
    Progress progress(quiet, 1);
    // Once the directory is known to be usable: a mistake is answered with its message only.
    bool started = quiet || isatty(STDERR_FILENO) != 0;
    const auto start = [&] {
        if (!std::exchange(started, true)) print_start(options.threads);
    };
    options.progress = [&, report = show(progress)](const experiments::SweepProgress& now) {
        start();
        return report(now);
    };
    experiments::SweepResult result = run_sweep(experiment, directory, options);
    progress.clear();
    start();
    if (result.damaged > 0 && !quiet) {
        tell("bayesaim: {} damaged record(s) in the store were ignored\n", result.damaged);
    }
    if (result.other_version && !quiet) {
        tell(
            "bayesaim: '{}' was made by another version of the study; its finished points are kept, and "
            "the tables have those of this version\n",
            directory.string());
    }
    return result;
}

void StudyCounts::add(const std::vector<experiments::Point>& points, const experiments::Shard& shard,
                      const std::string& title) {
    constexpr std::size_t most_failures = 5;
    const auto varying = varying_settings(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (!shard.has(i)) continue;
        const auto& outcome = points[i].outcome;
        ++total;
        if (!outcome) {
            ++missing;
        } else if (outcome->failed()) {
            ++failed;
            if (failures.size() < most_failures)
                failures.push_back(title + describe(points[i].task, varying) + ": " + outcome->reason);
        } else {
            ++done;
            if (outcome->good() || ++not_converged > 1) continue;
            first_not_converged =
                fmt::format("{}{} ({})", title, describe(points[i].task, varying), outcome->status);
        }
    }
}

Record describe(const std::filesystem::path& directory, const StudyCounts& counts) {
    return {{"directory", directory.string()},       {"total", counts.total},   {"done", counts.done},
            {"not_converged", counts.not_converged}, {"failed", counts.failed}, {"missing", counts.missing}};
}

int finish(const StudyCounts& counts, bool stopped, const CommonArguments& arguments) {
    if (!arguments.quiet) {
        for (const std::string& failure : counts.failures) tell("bayesaim: failed: {}\n", failure);
        if (counts.failed > counts.failures.size())
            tell("bayesaim: {} of {} points failed\n", counts.failed, counts.total);
        if (counts.missing > 0 && !stopped)
            tell("bayesaim: {} of {} points are missing\n", counts.missing, counts.total);
        if (counts.not_converged > 0)
            tell("bayesaim: {} of {} points did not converge; the first: {}{}\n", counts.not_converged,
                 counts.total, counts.first_not_converged,
                 arguments.strict ? "" : "; with --strict this is exit code 2");
    }
    const bool good = counts.failed + counts.missing == 0 && !(arguments.strict && counts.not_converged > 0);
    return exit_code(good, stopped,
                     fmt::format("{} of {} points are kept; the same command continues from here",
                                 counts.finished(), counts.total));
}

}  // namespace bayesaim::program
