// SPDX-License-Identifier: MIT
#include "program/study.hpp"

#include <fmt/format.h>

#include "program/interrupt.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {

std::function<bool(const experiments::SweepProgress&)> show(Progress& progress, const std::string& title) {
    catch_interrupts();
    return [&progress, title](const experiments::SweepProgress& now) {
        progress.update(static_cast<double>(now.finished) / static_cast<double>(now.total),
                        fmt::format("{}{} of {} points; {}", title, now.finished, now.total, now.text));
        return !interrupted();
    };
}

experiments::SweepResult sweep_with_progress(const experiments::Experiment& experiment,
                                             const std::filesystem::path& directory,
                                             experiments::SweepOptions options, bool quiet) {
    Progress progress(quiet, 1);
    options.progress = show(progress);
    experiments::SweepResult result = run_sweep(experiment, directory, options);
    progress.clear();
    if (result.damaged > 0 && !quiet) {
        fmt::print(stderr, "bayesaim: {} damaged record(s) in the store were ignored\n", result.damaged);
    }
    return result;
}

void StudyCounts::add(const std::vector<experiments::Point>& points, const experiments::Shard& shard) {
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (!shard.has(i)) continue;
        const auto& outcome = points[i].outcome;
        ++total;
        if (!outcome) {
            ++missing;
        } else if (outcome->failed()) {
            ++failed;
        } else {
            ++done;
            if (!outcome->good()) ++not_converged;
        }
    }
}

Record describe(const std::filesystem::path& directory, const StudyCounts& counts) {
    return {{"directory", directory.string()},       {"total", counts.total},   {"done", counts.done},
            {"not_converged", counts.not_converged}, {"failed", counts.failed}, {"missing", counts.missing}};
}

int finish(const StudyCounts& counts, bool stopped) {
    const bool good = counts.not_converged + counts.failed + counts.missing == 0;
    return exit_code(good, stopped, "the same command continues from here");
}

}  // namespace bayesaim::program
