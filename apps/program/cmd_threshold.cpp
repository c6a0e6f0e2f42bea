// SPDX-License-Identifier: MIT
#include "bayesaim/core/checks.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/erm_options.hpp"
#include "program/interrupt.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    ModelArguments model;
    ErmArguments erm;
    std::string search = "0.01:10:2";
};

Record trained(const model::Model& model, const ErmArguments& erm) {
    const theory::ErmThresholds thresholds = theory::erm_thresholds(
        teacher_of(model), *erm.make_loss(model.channel()), losses::parse_penalty("--penalty", erm.penalty));
    return {{"strong_recovery", thresholds.recovery}, {"interpolation", thresholds.interpolation}};
}

int run(Arguments arguments) {
    arguments.check_writable();
    if (!arguments.erm.regularization.empty())
        throw_unavailable("--regularization", "for thresholds, which are those of lambda -> 0+");
    arguments.erm.regularization = "0";
    const bool erm = arguments.erm.chosen();
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
    if (erm) {
        arguments.erm.describe(*arguments.erm.make_loss(family.front().channel()), report.configuration);
        report.configuration.erase("regularization");
    }
    for (std::size_t i = 0; i < family.size() && !interrupted(); ++i) {
        theory::Thresholds thresholds;
        if (!erm) try {
                thresholds = theory::find_thresholds(
                    *theory::make_curve(family[i].laws(), family[i].channel().geometry()),
                    family[i].channel(), search, options);
            } catch (const Stopped&) {
                break;
            }
        const Record found = erm ? trained(family[i], arguments.erm)
                                 : Record{{"weak_recovery_scaled", thresholds.weak_recovery_scaled},
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
    return arguments.publish(report, is_success, "; the search for a jump of the error was not finished");
}

}  // namespace

void add_threshold(Program& program) {
    auto [command, arguments] =
        program.add_command<Arguments>("threshold", "Where learning begins, and where it is perfect", run);
    arguments.model.add_channel_to(command);
    arguments.model.add_prior_to(command);
    arguments.erm.add_choice_to(command);
    command.text("--search", arguments.search,
                 "range of alpha in which a first-order transition is looked for", "GRID");
    arguments.add_to(command, Arguments::Points::never_fail);
    command.footer(
        "weak_recovery_scaled: where learning begins, in alpha/width at small width\n"
        "strong_recovery: where the error vanishes\n"
        "information_theoretic, algorithmic: where the optimal error, and the error of an efficient\n"
        "  algorithm, vanish or jump (searched for except with sampled channels)\n"
        "With --estimator erm:\n"
        "strong_recovery: where the error of weak regularisation vanishes (outputs without noise)\n"
        "interpolation: up to here training reaches zero loss, and weak regularisation is worst (noisy "
        "outputs)\n"
        "A threshold that does not exist is printed as a dash (null in JSON).\n"
        "Example:\n  bayesaim threshold --channel hardmax --width 0.5");
}

}  // namespace bayesaim::program
