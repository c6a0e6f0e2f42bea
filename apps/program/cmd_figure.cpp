// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/core/table.hpp"
#include "bayesaim/figures/paper_figure.hpp"

#include "program/commands.hpp"
#include "program/messages.hpp"
#include "program/progress.hpp"
#include "program/study.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    std::string name, directory = "results/figures";
    bool quick = false, full = false;
};

int list_figures(const Arguments& arguments) {
    Report report{"figure"};
    for (const figures::PaperFigure& figure : figures::paper_figures()) {
        report.points.push_back({{"name", figure.name}, {"summary", figure.summary}});
    }
    return arguments.publish(report);
}

Record describe(const std::string& figure, const figures::Headline& headline) {
    return {{"figure", figure},
            {"quantity", headline.what},
            {"measured", headline.measured.value},
            {"standard_error", headline.measured.standard_error},
            {"theory", headline.theory},
            {"z_score", headline.measured.z_score(headline.theory)}};
}

int run(const Arguments& arguments) {
    if (arguments.name == "list") return list_figures(arguments);
    if (arguments.quick && arguments.full) throw_conflict("--quick", "--full");
    const auto size = arguments.full ? figures::Size::full : figures::Size::quick;
    std::vector<figures::PaperFigure> wanted = figures::paper_figures();
    if (arguments.name != "all") wanted = {find_row(wanted, "figure", arguments.name)};

    Report report{"figure",
                  {{"size", arguments.full ? "full" : "quick"}, {"directory", arguments.directory}}};
    Value::List pictures;
    StudyCounts counts;
    bool stopped = false;
    if (arguments.full && !arguments.quiet) {
        const std::size_t threads =
            arguments.thread_count() > 0 ? arguments.thread_count() : default_threads();
        double seconds = 0;
        for (const figures::PaperFigure& figure : wanted)
            seconds += estimated_seconds(figure, size, arguments.directory, {.threads = threads});
        tell("bayesaim: about {} on {} thread(s); Ctrl-C ends it, the same command continues\n",
             duration(seconds), threads);
    }
    Progress progress(arguments.quiet, wanted.size());
    for (const figures::PaperFigure& figure : wanted) {
        const experiments::SweepOptions options{.threads = arguments.thread_count(),
                                                .progress = show(progress, figure.name + ": ")};
        const figures::Drawn drawn = draw_paper_figure(figure, size, arguments.directory, options);
        progress.finish_item();
        counts.add(drawn.sweep.points, {}, wanted.size() > 1 ? figure.name + ": " : "");
        stopped = drawn.sweep.stopped;
        if (stopped) break;
        pictures.push_back((drawn.files.front().parent_path() / (figure.name + ".png")).string());
        for (const figures::Headline& headline : drawn.composition.headlines)
            report.points.push_back(describe(figure.name, headline));
    }
    progress.clear();
    if (!pictures.empty()) report.summary["pictures"] = pictures;
    report.summary.update(
        {{"runs", counts.finished()}, {"not_converged", counts.not_converged}, {"failed", counts.failed}});
    if (stopped) report.summary["missing"] = counts.missing;
    publish(report, arguments.format, "");
    return finish(counts, stopped, arguments);
}

}  // namespace

void add_figure(Program& program) {
    auto [command, arguments] =
        program.add_command<Arguments>("figure", "Draw a figure of the paper, with the runs behind it", run);
    std::vector<std::string> known = names_of(figures::paper_figures());
    known.insert(known.end(), {"all", "list"});
    command.text("name", arguments.name, "a name from `bayesaim figure list`, or all", "NAME|all|list")
        .values(known)
        .required();
    command.flag("--quick", arguments.quick, "small dimension, few seeds: a minute at most (default)");
    command.flag("--full", arguments.full, "the sizes of the paper: hours");
    command.text(
        "--output", arguments.directory,
        "folder for NAME.pdf, .svg, .png, .csv, .json, and NAME.toml, the study, to be changed and swept;\n"
        "runs in runs/",
        "DIR");
    arguments.add_without_seed_to(command);
    command.footer(
        "After an interruption the same command continues.\nExample:\n  bayesaim figure hardmax "
        "--quick");
}

}  // namespace bayesaim::program
