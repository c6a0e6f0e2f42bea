// SPDX-License-Identifier: MIT
#include <optional>

#include "program/commands.hpp"
#include "program/deep.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "program/options.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    PriorArguments prior;
    ChannelArguments channel;
    OutputArguments output;
    RunArguments run;
    std::string search = "0.01:10:2";
};

int run(const Arguments& arguments) {
    if (arguments.channel.deep())
        return run_deep_threshold({arguments.channel, arguments.prior, arguments.run, arguments.output, ""});
    arguments.output.check_writable();
    const std::vector<double> range = experiments::Grid("--search", arguments.search).values();
    const auto prior = make_prior(arguments.prior, arguments.channel);
    const auto channel = arguments.channel.make();
    const theory::SpectralCurve curve(prior->law());
    ThreadPool pool(arguments.run.thread_count());
    theory::StateEvolutionOptions options;
    options.integration.seed = arguments.run.seed;
    options.integration.pool = &pool;

    const std::optional<double> strong = strong_recovery(curve, *channel);
    // With exact observations the error vanishes continuously: optimum and algorithm have the same threshold.
    std::optional<double> information_theoretic = strong, algorithmic = strong;
    if (!strong && !channel->sampled()) {
        if (const auto transition =
                find_first_order_transition(curve, *channel, range.front(), range.back())) {
            information_theoretic = transition->information_theoretic;
            algorithmic = transition->algorithmic;
        }
    }
    Report report{"threshold"};
    report.configuration = describe(arguments.prior, *prior);
    describe(*channel, report.configuration);
    report.summary["weak_recovery_scaled"] = theory::weak_recovery_scaled(*channel, options.integration);
    report.summary["strong_recovery"] = or_null(strong);
    report.summary["information_theoretic"] = or_null(information_theoretic);
    report.summary["algorithmic"] = or_null(algorithmic);
    arguments.output.publish(report);
    return 0;
}

}  // namespace

Action add_threshold(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("threshold",
                                           "Where learning begins and where it is perfect. "
                                           "weak_recovery_scaled: in alpha/width at small width;\n"
                                           "strong_recovery: error zero; information_theoretic and "
                                           "algorithmic: where the optimal error and that of an\n"
                                           "efficient algorithm vanish or jump (searched for except with "
                                           "sampled channels); empty where there is none");
    arguments->channel.add_to(*command);
    arguments->prior.add_to(*command);
    command
        ->add_option("--search", arguments->search,
                     "range of alpha in which a first-order transition is looked for")
        ->capture_default_str()
        ->type_name("GRID");
    arguments->run.add_to(*command);
    arguments->output.add_to(*command);
    command->footer("Example:\n  bayesaim threshold --channel hardmax --width 0.5");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
