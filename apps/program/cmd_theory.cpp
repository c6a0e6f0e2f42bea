// SPDX-License-Identifier: MIT
#include <algorithm>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/figures/line_figure.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {
namespace {

using theory::EstimationCurve;

struct Arguments : CommonArguments {
    ModelArguments model;
    std::string alpha, plot, limit = "none", method = "automatic";
    int trajectory = 0;
    IntegrationArguments integration;
};

std::vector<Record> solve_points(const EstimationCurve& prior, const channels::Channel& channel,
                                 const std::vector<double>& alphas,
                                 const theory::StateEvolutionOptions& options, Progress& progress,
                                 ThreadPool& pool) {
    const auto report = [&](double fraction) {
        progress.update(fraction, fmt::format("{} points", alphas.size()));
        return !interrupted();
    };
    std::vector<Record> points;
    for (const theory::TheoryPoint& point : solve_curve(prior, channel, alphas, options, pool, report))
        points.push_back(theory::values(point));
    return points;
}

std::vector<Record> trajectories(const EstimationCurve& prior, const channels::Channel& channel,
                                 const std::vector<double>& alphas, int iterations,
                                 const theory::StateEvolutionOptions& options) {
    std::vector<Record> points;
    for (const double alpha : alphas) {
        if (interrupted()) break;
        const auto iterates =
            state_evolution_trajectory(prior, channel, alpha, iterations, theory::Start::uninformed, options);
        for (std::size_t t = 0; t < iterates.size(); ++t) {
            Record point = {{"alpha", alpha}, {"iteration", t}};
            point.update(theory::values(iterates[t]));
            points.push_back(std::move(point));
        }
    }
    return points;
}

void draw(const Report& report, const std::optional<double>& threshold, const Arguments& arguments) {
    figures::LineFigure figure;
    figure.title = fmt::format("{} channel, T = {}", arguments.model.options.channel,
                               arguments.model.options.channel_options.tokens);
    figure.x_label = arguments.limit == "small-width" ? "α / ρ" : "α = n/d^2";
    figure.y_label = "error";
    figures::Series estimation{"estimation", {}, {}, {}, figures::Series::Style::line, figures::colour::blue};
    figures::Series generalization{"generalisation",          {}, {}, {}, figures::Series::Style::dashed_line,
                                   figures::colour::vermilion};
    double smallest = 1, largest = 0;
    for (const Record& point : report.points) {
        const auto number = [&point](const char* name) { return *point.find(name)->as<double>(); };
        const double error = number("estimation_error");
        estimation.x.push_back(number("alpha"));
        estimation.y.push_back(error);
        generalization.x.push_back(number("alpha"));
        generalization.y.push_back(number("generalization_error"));
        if (error > 0) smallest = std::min(smallest, error);
        largest = std::max(largest, error);
    }
    // A power law is a straight line in logarithmic axes, which cannot show an error of 0.
    figure.log_x = figure.log_y = !threshold && largest > 30 * smallest;
    figure.series = {estimation, generalization};
    if (threshold && *threshold < estimation.x.back())
        figure.markers.push_back({*threshold, "strong recovery"});
    figures::draw(figure, arguments.plot);
    if (!arguments.quiet) fmt::print(stderr, "picture: {}\n", arguments.plot);
}

int run(const Arguments& arguments) {
    check_one_of("--limit", arguments.limit, {"none", "small-width"});
    const bool small_width = arguments.limit == "small-width", iterates = arguments.trajectory > 0;
    const model::Model model = arguments.model.make();
    if (small_width) {
        if (arguments.model.command.given("--width")) throw_conflict("--width", "--limit small-width");
        if (model.layers() > 1) throw_unavailable("--limit small-width", "for several layers");
        if (model.prior(0).name() != "wishart")
            throw_unavailable("--limit small-width", fmt::format("for prior {}", model.prior(0).name()));
    }
    if (iterates && !arguments.plot.empty()) throw_conflict("--plot", "--trajectory");
    arguments.check_writable(arguments.plot);
    const experiments::Grid grid("--alpha", arguments.alpha);
    const theory::SpectralCurve spectral_curve(model.laws());
    const theory::SmallWidthCurve small_width_curve;
    const EstimationCurve& curve =
        small_width ? static_cast<const EstimationCurve&>(small_width_curve) : spectral_curve;
    const std::optional<double> threshold = strong_recovery(curve, model.channel());
    const std::vector<double> alphas = grid.values(threshold);

    Report report{"theory", model::describe(model)};
    if (small_width) {
        report.configuration.erase("width");
        report.configuration["limit"] = "small-width";
    }
    report.configuration["alpha"] = arguments.alpha;
    report.configuration["method"] = arguments.method;
    arguments.integration.describe(model.channel(), arguments.seed, report.configuration);

    ThreadPool pool(arguments.thread_count());
    auto options = arguments.integration.options(arguments.seed, &pool);
    options.method = theory::parse_method("--method", arguments.method);
    Progress progress(arguments.quiet, 1);
    catch_interrupts();
    report.points = iterates ? trajectories(curve, model.channel(), alphas, arguments.trajectory, options)
                             : solve_points(curve, model.channel(), alphas, options, progress, pool);
    progress.clear();
    if (!arguments.plot.empty() && !report.points.empty()) draw(report, threshold, arguments);
    const auto failed = [](const Record& point) {
        const Value* status = point.find("status");
        return status != nullptr && *status == Value(to_string(Termination::iteration_limit));
    };
    return arguments.publish(report, std::none_of(report.points.begin(), report.points.end(), failed));
}

}  // namespace

void add_theory(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "theory", "Bayes-optimal estimation and generalisation error (state evolution)", run);
    command
        .text("--alpha", arguments.alpha,
              "samples per d^2: 0.1 | 0.1,0.2 | start:stop:count | log:start:stop:count;\n"
              "numbers followed by x count in units of the strong-recovery threshold: 0.1x:0.9x:9",
              "GRID")
        .required();
    arguments.model.add_channel_to(command);
    arguments.model.add_prior_to(command);
    command.text("--limit", arguments.limit,
                 "none, or small-width (width -> 0; then --alpha is alpha/width)");
    command.count("--trajectory", arguments.trajectory, 0,
                  "print this many iterations instead of the fixed point");
    command.text("--method", arguments.method,
                 "how the fixed point is found: automatic, bracketed, monotone or newton");
    arguments.integration.add_to(command);
    command.text("--plot", arguments.plot, "picture of the curve (png, svg, pdf)", "FILE");
    arguments.add_to(command);
    command.footer(
        "Examples:\n  bayesaim theory --width 0.5 --alpha 0.1x:1.1x:11\n"
        "  bayesaim theory --channel hardmax --width 0.5 --alpha log:0.1:20:24 --plot hardmax.png");
}

}  // namespace bayesaim::program
