// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "program/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "program/deep.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/figures/line_figure.hpp"
#include "program/options.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::program {
namespace {

using theory::EstimationCurve;

struct Arguments {
    PriorArguments prior;
    ChannelArguments channel;
    OutputArguments output;
    RunArguments run;
    std::string alpha, plot, limit = "none";
    int trajectory = 0;
    IntegrationArguments integration;
};

Json solve_point(const EstimationCurve& prior, const channels::Channel& channel, double alpha,
                 const theory::StateEvolutionOptions& options) {
    const theory::BayesOptimal solution = solve_bayes_optimal(prior, channel, alpha, options);
    const theory::FixedPoint& point = solution.optimal();
    const channels::GeneralizationError generalization =
        generalization_error(point, channel, options.integration);
    return {{"alpha", alpha},
            {"estimation_error", point.error()},
            {"standard_error", point.relative_error * point.error()},
            {"overlap", point.parameters.overlap(0, 0)},
            {"conjugate_overlap", finite_or_null(point.scalar_conjugate())},
            {"generalization_error", generalization.bayes_optimal},
            {"generalization_standard_error", generalization.relative_error * generalization.bayes_optimal},
            {"plugin_generalization_error", generalization.plug_in},
            {"algorithmic_error", solution.uninformed.error()},
            {"status", to_string(point.status)}};
}

/// Points are independent: in parallel, unless the expectations inside a point are what takes the time.
std::vector<Json> solve_points(const EstimationCurve& prior, const channels::Channel& channel,
                               const std::vector<double>& alphas, const Arguments& arguments,
                               ThreadPool& pool) {
    const auto options = arguments.integration.options(arguments.run, channel.sampled() ? &pool : nullptr);
    std::vector<Json> points(alphas.size());
    const auto solve = [&](std::size_t i) { points[i] = solve_point(prior, channel, alphas[i], options); };
    if (channel.sampled()) {
        for (std::size_t i = 0; i < alphas.size(); ++i) solve(i);
    } else {
        pool.for_each(alphas.size(), solve);
    }
    return points;
}

std::vector<Json> trajectories(const EstimationCurve& prior, const channels::Channel& channel,
                               const std::vector<double>& alphas, const Arguments& arguments,
                               ThreadPool& pool) {
    const auto options = arguments.integration.options(arguments.run, &pool);
    std::vector<Json> points;
    for (const double alpha : alphas) {
        const auto iterates = state_evolution_trajectory(prior, channel, alpha, arguments.trajectory,
                                                         theory::Start::uninformed, options);
        for (std::size_t t = 0; t < iterates.size(); ++t) {
            points.push_back(
                {{"alpha", alpha}, {"iteration", t}, {"estimation_error", iterates[t].error.trace()}});
        }
    }
    return points;
}

void draw(const Report& report, const std::optional<double>& threshold, const Arguments& arguments) {
    figures::LineFigure figure;
    figure.title =
        fmt::format("{} channel, T = {}", arguments.channel.channel, arguments.channel.options.tokens);
    figure.x_label = arguments.limit == "small-width" ? "α / ρ" : "α = n/d^2";
    figure.y_label = "error";
    figures::Series estimation{"estimation", {}, {}, {}, figures::Series::Style::line, figures::colour::blue};
    figures::Series generalization{"generalisation",          {}, {}, {}, figures::Series::Style::dashed_line,
                                   figures::colour::vermilion};
    double smallest = 1, largest = 0;
    for (const Json& point : report.points) {
        const double error = point["estimation_error"];
        estimation.x.push_back(point["alpha"]);
        estimation.y.push_back(error);
        generalization.x.push_back(point["alpha"]);
        generalization.y.push_back(point["generalization_error"]);
        if (error > 0) smallest = std::min(smallest, error);
        largest = std::max(largest, error);
    }
    // A power law is a straight line in logarithmic axes; exact recovery has no place in them.
    figure.log_x = figure.log_y = !threshold && largest > 30 * smallest;
    figure.series = {estimation, generalization};
    if (threshold && *threshold < estimation.x.back())
        figure.markers.push_back({*threshold, "strong recovery"});
    figures::draw(figure, arguments.plot);
    if (!arguments.output.quiet) fmt::print(stderr, "picture: {}\n", arguments.plot);
}

int run(const Arguments& arguments) {
    if (arguments.channel.deep()) {
        if (!arguments.plot.empty()) throw_invalid("--plot", "left out with several layers", arguments.plot);
        check_one_of("--limit with several layers", arguments.limit, {"none"});
        return run_deep_theory(
            {arguments.channel, arguments.prior, arguments.run, arguments.output, arguments.alpha},
            arguments.integration, arguments.trajectory);
    }
    check_one_of("--limit", arguments.limit, {"none", "small-width"});
    const bool small_width = arguments.limit == "small-width", iterates = arguments.trajectory > 0;
    if (small_width) {
        check_one_of("--prior with --limit small-width", arguments.prior.prior, {"wishart"});
        if (arguments.prior.command->count("--width") > 0)
            throw_invalid("--width", "left out with --limit small-width", "it");
        if (arguments.channel.channel == "multi-head")
            throw_invalid("--channel with --limit small-width", "of one head",
                          fmt::format("'{}'", arguments.channel.channel));
    }
    if (iterates && !arguments.plot.empty())
        throw_invalid("--plot", "left out with --trajectory", arguments.plot);
    arguments.output.check_writable(arguments.plot);
    const experiments::Grid grid("--alpha", arguments.alpha);
    const auto prior = make_prior(arguments.prior, arguments.channel);
    const auto channel = arguments.channel.make();
    const theory::SpectralCurve spectral_curve(prior->law());
    const theory::SmallWidthCurve small_width_curve;
    const EstimationCurve& curve =
        small_width ? static_cast<const EstimationCurve&>(small_width_curve) : spectral_curve;
    const std::optional<double> threshold = strong_recovery(curve, *channel);
    const std::vector<double> alphas = grid.values(threshold);

    Report report{"theory"};
    report.configuration = describe(arguments.prior, *prior);
    if (small_width) {
        report.configuration.erase("width");
        report.configuration["limit"] = "small-width";
    }
    describe(*channel, report.configuration);
    report.configuration["alpha"] = arguments.alpha;
    arguments.integration.describe(*channel, arguments.run, report.configuration);

    ThreadPool pool(arguments.run.thread_count());
    report.points = iterates ? trajectories(curve, *channel, alphas, arguments, pool)
                             : solve_points(curve, *channel, alphas, arguments, pool);
    if (!arguments.plot.empty()) draw(report, threshold, arguments);
    arguments.output.publish(report);

    const auto failed = [](const Json& point) {
        return point.value("status", "") == to_string(Termination::iteration_limit);
    };
    return std::any_of(report.points.begin(), report.points.end(), failed) ? 2 : 0;
}

}  // namespace

Action add_theory(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command =
        app.add_subcommand("theory", "Bayes-optimal estimation and generalisation error (state evolution)");
    command
        ->add_option("--alpha", arguments->alpha,
                     "samples per d^2: 0.1 | 0.1,0.2 | start:stop:count | log:start:stop:count;\n"
                     "numbers followed by x count in units of the strong-recovery threshold: 0.1x:0.9x:9")
        ->required()
        ->type_name("GRID");
    arguments->channel.add_to(*command);
    arguments->prior.add_to(*command);
    command
        ->add_option("--limit", arguments->limit,
                     "none, or small-width (width -> 0; then --alpha is alpha/width)")
        ->capture_default_str();
    add_count(*command, "--trajectory", arguments->trajectory, 0,
              "print this many iterations instead of the fixed point");
    arguments->integration.add_to(*command);
    command->add_option("--plot", arguments->plot, "picture of the curve (png, svg, pdf)");
    arguments->run.add_to(*command);
    arguments->output.add_to(*command);
    command->footer(
        "Examples:\n  bayesaim theory --width 0.5 --alpha 0.1x:1.1x:11\n"
        "  bayesaim theory --channel hardmax --width 0.5 --alpha log:0.1:20:24 --plot hardmax.png");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
