// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/figures/paper_figure.hpp"

#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/study.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    std::string name, directory = "results/figures";
    bool quick = false, full = false;
    StudyArguments study;
};

int list_figures(const Arguments& arguments) {
    Report report{"figure"};
    for (const figures::PaperFigure& figure : figures::paper_figures()) {
        report.points.push_back({{"name", figure.name}, {"summary", figure.summary}});
    }
    publish(report, arguments.study.format, "");
    return 0;
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
    std::vector<figures::PaperFigure> wanted;
    if (arguments.name == "all") {
        wanted = figures::paper_figures();
    } else {
        wanted.push_back(figures::find_paper_figure(arguments.name));
    }

    Report report{"figure"};
    report.configuration = {{"size", arguments.full ? "full" : "quick"}, {"directory", arguments.directory}};
    Value::List pictures;
    StudyCounts counts;
    bool stopped = false;
    Progress progress(arguments.study.quiet, wanted.size());
    for (const figures::PaperFigure& figure : wanted) {
        experiments::SweepOptions options = arguments.study.options();
        options.progress = show(progress, figure.name + ": ");
        const figures::Drawn drawn = draw_paper_figure(figure, size, arguments.directory, options);
        progress.finish_item();
        stopped = drawn.sweep.stopped;
        if (stopped) break;
        counts += count_points(drawn.sweep.points);
        pictures.push_back((drawn.files.front().parent_path() / (figure.name + ".png")).string());
        for (const figures::Headline& headline : drawn.composition.headlines)
            report.points.push_back(describe(figure.name, headline));
    }
    progress.clear();
    report.summary = {{"pictures", pictures},
                      {"runs", counts.total},
                      {"not_converged", counts.not_converged},
                      {"failed", counts.failed}};
    publish(report, arguments.study.format, "");
    return finish(counts, stopped);
}

}  // namespace

Action add_figure(Program& program) {
    auto arguments = std::make_shared<Arguments>();
    Command command = program.add_command("figure", "Draw a figure of the paper, with the runs behind it");
    command.text("name", arguments->name, "a name from `bayesaim figure list`, or all")
        .required()
        .type_name("NAME|all|list");
    command.flag("--quick", arguments->quick, "small dimension, few seeds: a minute at most (default)");
    command.flag("--full", arguments->full, "the sizes of the paper: hours");
    command
        .text("--output", arguments->directory, "folder for NAME.pdf, .svg, .png, .csv, .json; runs in runs/")
        .type_name("DIR");
    arguments->study.add_to(command);
    command.footer(
        "After an interruption the same command continues.\nExample:\n  bayesaim figure hardmax "
        "--quick");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
