// SPDX-License-Identifier: MIT
#include "program/study.hpp"

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"

#include "program/interrupt.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {

void StudyArguments::add_to(Command& command) {
    add_threads(command, threads);
    command.text("--format", format, "table, csv or json");
    command.flag("--quiet", quiet, "no messages on standard error");
    command.after_parsing([this] { check_one_of("--format", format, {"table", "csv", "json"}); });
}

experiments::SweepOptions StudyArguments::options() const {
    experiments::SweepOptions options;
    options.threads = static_cast<std::size_t>(threads);
    return options;
}

std::function<bool(const experiments::SweepProgress&)> show(Progress& progress, const std::string& title) {
    catch_interrupts();
    return [&progress, title](const experiments::SweepProgress& now) {
        progress.update(static_cast<double>(now.finished) / static_cast<double>(now.total),
                        fmt::format("{}{} of {} points; {}", title, now.finished, now.total, now.text));
        return !interrupted();
    };
}

experiments::SweepResult sweep_with_progress(const StudyArguments& arguments,
                                             const experiments::Experiment& experiment,
                                             const std::filesystem::path& directory,
                                             experiments::SweepOptions options) {
    Progress progress(arguments.quiet, 1);
    options.progress = show(progress);
    experiments::SweepResult result = run_sweep(experiment, directory, options);
    progress.clear();
    if (result.damaged > 0 && !arguments.quiet) {
        fmt::print(stderr, "bayesaim: {} damaged record(s) in the store were ignored\n", result.damaged);
    }
    return result;
}

StudyCounts& StudyCounts::operator+=(const StudyCounts& other) {
    total += other.total;
    done += other.done;
    not_converged += other.not_converged;
    failed += other.failed;
    missing += other.missing;
    return *this;
}

StudyCounts count_points(const std::vector<experiments::Point>& points) {
    StudyCounts counts;
    for (const experiments::Point& point : points) {
        ++counts.total;
        if (!point.outcome) {
            ++counts.missing;
        } else if (point.outcome->failed()) {
            ++counts.failed;
        } else {
            ++counts.done;
            if (!point.outcome->good()) ++counts.not_converged;
        }
    }
    return counts;
}

Record describe(const std::filesystem::path& directory, const StudyCounts& counts) {
    return {{"directory", directory.string()},       {"total", counts.total},   {"done", counts.done},
            {"not_converged", counts.not_converged}, {"failed", counts.failed}, {"missing", counts.missing}};
}

int finish(const StudyCounts& counts, bool stopped) {
    if (stopped) {
        fmt::print(stderr, "bayesaim: interrupted; the same command continues from here\n");
        return interrupted_exit_code;
    }
    return counts.not_converged + counts.failed + counts.missing > 0 ? 2 : 0;
}

}  // namespace bayesaim::program
