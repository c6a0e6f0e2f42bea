// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    ModelArguments model;
    std::string search = "0.01:10:2";
};

int run(const Arguments& arguments) {
    arguments.check_writable();
    const std::vector<double> range = experiments::Grid("--search", arguments.search).values();
    const std::vector<model::Model> family = arguments.model.make_family();
    ThreadPool pool(arguments.thread_count());
    pool.stop_when(interrupted);
    theory::StateEvolutionOptions options;
    options.integration.seed = arguments.seed;
    options.integration.pool = &pool;
    Progress progress(arguments.quiet, family.size());
    catch_interrupts();
    const theory::TransitionSearch search{
        .lowest = range.front(), .highest = range.back(), .progress = [&](double fraction) {
            progress.update(fraction, "search for a first-order transition");
            return !interrupted();
        }};
    Report report{"threshold", model::describe(family.front())};
    if (family.size() > 1) report.configuration["width"] = arguments.model.options.widths;
    for (std::size_t i = 0; i < family.size() && !interrupted(); ++i) {
        theory::Thresholds thresholds;
        try {
            thresholds =
                theory::find_thresholds(*theory::make_curve(family[i].laws(), family[i].channel().geometry()),
                                        family[i].channel(), search, options);
        } catch (const Stopped&) {
            break;
        }
        const Record found = {{"weak_recovery_scaled", thresholds.weak_recovery_scaled},
                              {"strong_recovery", thresholds.strong_recovery},
                              {"information_theoretic", thresholds.information_theoretic},
                              {"algorithmic", thresholds.algorithmic}};
        progress.finish_item();
        if (family.size() == 1) {
            report.summary = found;
        } else {
            report.points.push_back({{"width", arguments.model.options.widths[i]}});
            report.points.back().update(found);
        }
    }
    progress.clear();
    return arguments.publish(report, is_success, "the search for a jump of the error was not finished");
}

}  // namespace

void add_threshold(Program& program) {
    auto [command, arguments] =
        program.add_command<Arguments>("threshold", "Where learning begins, and where it is perfect", run);
    arguments.model.add_channel_to(command);
    arguments.model.add_prior_to(command);
    command.text("--search", arguments.search,
                 "range of alpha in which a first-order transition is looked for", "GRID");
    arguments.add_to(command, Arguments::Points::never_fail);
    command.footer(
        "weak_recovery_scaled: where learning begins, in alpha/width at small width\n"
        "strong_recovery: where the error vanishes\n"
        "information_theoretic, algorithmic: where the optimal error, and the error of an efficient\n"
        "  algorithm, vanish or jump (searched for except with sampled channels)\n"
        "A threshold that does not exist is printed as a dash (null in JSON).\n"
        "Example:\n  bayesaim threshold --channel hardmax --width 0.5");
}

}  // namespace bayesaim::program
