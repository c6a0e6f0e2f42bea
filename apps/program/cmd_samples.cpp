// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/experiments/sweep.hpp"
#include "bayesaim/theory/required_samples.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    ModelArguments model;
    IntegrationArguments integration;
    double target_error = 0;
    int dim = 1000;
    TokenArguments tokens;  // of AMP
};

/// One run of AMP with so many samples.
experiments::Task task_of(const Arguments& arguments, double alpha) {
    const model::ModelOptions& model = arguments.model.options;
    const channels::ChannelOptions& channel = model.channel_options;
    experiments::Task task;
    task.prior = model.prior;
    task.width = model.widths.front();
    task.scale = model.scale;
    task.exponent = model.exponent;
    task.cutoff = model.cutoff;
    task.spectrum = model.spectrum;
    task.channel = model.channel;
    task.tokens = channel.tokens;
    task.attention = to_string(channel.attention);
    task.key_tokens = channel.key_tokens;
    task.beta = channel.beta;
    task.label_noise = channel.label_noise;
    task.layers = channel.layers;
    task.residual = channel.residual;
    task.heads = model.heads;
    task.aspect = model.aspect;
    task.dim = arguments.dim;
    task.alpha = alpha;
    task.precision = arguments.tokens.precision;
    task.token_storage = arguments.tokens.storage;
    return task;
}

int run(const Arguments& arguments) {
    check_non_negative("--target-error", arguments.target_error);
    arguments.tokens.synthetic(arguments.dim);
    arguments.check_writable();
    const model::Model model = arguments.model.make();
    const channels::Channel& channel = model.channel();
    const auto curve = theory::make_curve(model.laws(), channel.geometry());
    ThreadPool pool(arguments.thread_count());
    pool.stop_when(interrupted);
    const theory::StateEvolutionOptions options = arguments.integration.options(arguments.seed, &pool);
    Progress progress(arguments.quiet, 1);
    catch_interrupts();

    Report report{"samples", model::describe(model)};
    arguments.integration.describe(channel, arguments.seed, report.configuration);
    report.configuration.update({{"target_error", arguments.target_error},
                                 {"dim", arguments.dim},
                                 {"token_storage", arguments.tokens.storage},
                                 {"precision", arguments.tokens.precision}});
    try {
        const auto alpha = theory::required_samples(*curve, channel, arguments.target_error, options,
                                                    [] { return !interrupted(); });
        const double size = static_cast<double>(arguments.dim),
                     pairs = size * size * arguments.model.options.aspect;
        report.summary = {{"alpha", alpha}, {"samples", Value()}};
        if (alpha) {
            report.summary["samples"] = static_cast<std::uint64_t>(std::min(std::ceil(*alpha * pairs), 9e18));
            report.summary.update(values(theory::solve_theory(*curve, channel, *alpha, options)));
        }
        report.summary["error_without_data"] =
            theory::solve_state_evolution(*curve, channel, 0, theory::Start::uninformed, options).error();
        report.summary["strong_recovery"] = theory::strong_recovery(*curve, channel);
        if (alpha.value_or(0) > 0) {
            // A study that has no directory yet, of one run.
            const experiments::SweepPlan plan =
                experiments::plan_sweep({"samples", {task_of(arguments, *alpha)}}, "/dev/null/none",
                                        {.threads = arguments.thread_count()});
            report.summary["estimated_bytes"] = static_cast<std::uint64_t>(std::min(plan.bytes, 9e18));
            report.summary["estimated_seconds"] = plan.seconds;
        }
    } catch (const Stopped&) {
        throw Interrupted();
    }
    progress.clear();
    return arguments.publish(report);
}

}  // namespace

void add_samples(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "samples", "How many samples reach a given error, and what AMP on them costs", run);
    command.number("--target-error", arguments.target_error, "estimation error to be reached")
        .default_text("")
        .required();
    command.count("--dim", arguments.dim, 2, "dimension d");
    arguments.model.add_channel_to(command);
    arguments.model.add_prior_to(command);
    arguments.tokens.add_to(command);
    arguments.integration.add_to(command);
    arguments.add_to(command);
    command.footer("Example:\n  bayesaim samples --width 0.5 --dim 1000 --target-error 0.1");
}

}  // namespace bayesaim::program
