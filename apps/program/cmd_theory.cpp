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

/// One curve of the family: a model, its threshold and its points.
struct Curve {
    model::Model model;
    std::unique_ptr<EstimationCurve> curve;
    std::vector<Record> points{};

    Curve(model::Model of, bool small_width) : model(std::move(of)) {
        if (small_width) {
            curve = std::make_unique<theory::SmallWidthCurve>();
        } else {
            curve = theory::make_curve(model.laws(), model.channel().geometry());
        }
    }
    const EstimationCurve& prior() const { return *curve; }
    std::optional<double> threshold() const { return strong_recovery(prior(), model.channel()); }
    std::string label() const {
        const auto parameters = model.prior(0).parameters();
        return parameters.empty() ? "" : fmt::format("ρ = {:g}", parameters.front().second);
    }
};

std::vector<Record> trajectories(const Curve& curve, const std::vector<double>& alphas, int iterations,
                                 const theory::StateEvolutionOptions& options) {
    std::vector<Record> points;
    for (const double alpha : alphas) {
        if (interrupted()) break;
        std::vector<theory::OrderParameters> iterates;
        try {
            iterates = state_evolution_trajectory(curve.prior(), curve.model.channel(), alpha, iterations,
                                                  theory::Start::uninformed, options);
        } catch (const Stopped&) {
            break;
        }
        for (std::size_t t = 0; t < iterates.size(); ++t) {
            Record point = {{"alpha", alpha}, {"iteration", t}};
            point.update(theory::values(iterates[t]));
            points.push_back(std::move(point));
        }
    }
    return points;
}

/// Parameters of the model for the title: those that all curves share.
std::string title_of(const std::vector<std::unique_ptr<Curve>>& curves, const Arguments& arguments) {
    const channels::Channel& channel = curves.front()->model.channel();
    std::string title = fmt::format("{} channel", arguments.model.options.channel);
    constexpr std::pair<const char*, const char*> symbols[] = {
        {"tokens", "T"}, {"beta", "β"}, {"label_noise", "label noise"}, {"layers", "L"}, {"residual", "c"}};
    for (const auto& [name, value] : channel.parameters()) {
        for (const auto& [known, symbol] : symbols) {
            if (name == known) title += fmt::format(", {} = {:g}", symbol, value);
        }
    }
    for (const auto& [name, value] : curves.front()->model.prior(0).parameters()) {
        if (name == "exponent") title += fmt::format(", γ = {:g}", value);
    }
    if (curves.size() == 1 && arguments.limit == "none" && !curves.front()->label().empty())
        title += ", " + curves.front()->label();
    return title;
}

void draw(const std::vector<std::unique_ptr<Curve>>& curves, const Arguments& arguments,
          bool logarithmic_grid) {
    using enum figures::Series::Style;
    constexpr const char* colours[] = {figures::colour::blue, figures::colour::vermilion,
                                       figures::colour::green, figures::colour::purple,
                                       figures::colour::black};
    figures::LineFigure figure;
    figure.title = title_of(curves, arguments);
    figure.x_label = arguments.limit == "small-width" ? "α / ρ" : "α = n/d^2";
    figure.y_label = curves.size() == 1 ? "error" : "estimation error";
    double smallest = 1, largest = 0;
    bool thresholds = false, zero = false;
    for (std::size_t i = 0; i < curves.size(); ++i) {
        const Curve& curve = *curves[i];
        if (curve.points.empty()) continue;
        const char* colour = colours[i % std::size(colours)];
        figures::Series estimation{
            curves.size() == 1 ? "estimation" : curve.label(), {}, {}, {}, line, colour};
        figures::Series generalization{"generalisation", {}, {}, {}, dashed_line, figures::colour::vermilion};
        for (const Record& point : curve.points) {
            const auto number = [&point](const char* name) { return *point.find(name)->number(); };
            const double alpha = number("alpha"), error = number("estimation_error");
            estimation.x.push_back(alpha);
            estimation.y.push_back(error);
            generalization.x.push_back(alpha);
            generalization.y.push_back(number("generalization_error"));
            if (error > 0) smallest = std::min(smallest, error);
            largest = std::max(largest, error);
            zero |= alpha == 0 || error <= 0;
        }
        if (const auto threshold = curve.threshold()) {
            thresholds = true;
            if (*threshold < estimation.x.back())
                figure.markers.push_back({*threshold, curves.size() == 1 ? "strong recovery" : "", colour});
        }
        figure.series.push_back(std::move(estimation));
        if (curves.size() == 1) figure.series.push_back(std::move(generalization));
    }
    // A power law is a straight line in logarithmic axes, which cannot show an error of 0. A threshold bends
    // it.
    figure.log_x = figure.log_y =
        !zero && largest > (logarithmic_grid ? 10 : 30) * smallest && (!thresholds || logarithmic_grid);
    if (curves.size() > 1 && thresholds) figure.caption = "vertical lines: strong recovery";
    figures::draw(figure, arguments.plot);
    if (!arguments.quiet) fmt::print(stderr, "picture: {}\n", arguments.plot);
}

int run(const Arguments& arguments) {
    check_one_of("--limit", arguments.limit, {"none", "small-width"});
    const bool small_width = arguments.limit == "small-width", iterates = arguments.trajectory > 0;
    std::vector<std::unique_ptr<Curve>> curves;
    for (model::Model& model : arguments.model.make_family())
        curves.push_back(std::make_unique<Curve>(std::move(model), small_width));
    const model::Model& model = curves.front()->model;
    if (small_width) {
        if (arguments.model.command.given("--width")) throw_conflict("--width", "--limit small-width");
        if (arguments.model.options.scale != 1) throw_conflict("--scale", "--limit small-width");
        if (model.layers() > 1) throw_unavailable("--limit small-width", "for several layers");
        if (model.channel().components() > 1)
            throw_unavailable(
                "--limit small-width",
                "for self and causal attention, where it is that of cross-attention with as many "
                "informative outputs");
        if (model.prior(0).law().aspect() != 1) throw_conflict("--aspect", "--limit small-width");
        // The limit is the same for tied and untied weights; see theory::SmallWidthCurve.
        if (model.prior(0).name() != "wishart" && model.prior(0).name() != "bilinear")
            throw_unavailable("--limit small-width", fmt::format("for prior {}", model.prior(0).name()));
    }
    if (iterates && !arguments.plot.empty()) throw_conflict("--plot", "--trajectory");
    arguments.check_writable(arguments.plot);
    const experiments::Grid grid("--alpha", arguments.alpha, experiments::Grid::Zero::allowed);

    Report report{"theory", model::describe(model)};
    if (curves.size() > 1) report.configuration["width"] = arguments.model.options.widths;
    if (small_width) {
        report.configuration.erase("width");
        report.configuration["limit"] = "small-width";
    }
    report.configuration["alpha"] = arguments.alpha;
    report.configuration["method"] = arguments.method;
    arguments.integration.describe(model.channel(), arguments.seed, report.configuration);

    ThreadPool pool(arguments.thread_count());
    pool.stop_when(interrupted);
    auto options = arguments.integration.options(arguments.seed, &pool);
    options.method = theory::parse_method("--method", arguments.method);
    Progress progress(arguments.quiet, curves.size());
    catch_interrupts();
    for (const auto& curve : curves) {
        const std::vector<double> alphas = grid.values(curve->threshold());
        const auto show = [&](double fraction) {
            progress.update(
                fraction, fmt::format("{:.0f} of {} points{}", fraction * static_cast<double>(alphas.size()),
                                      alphas.size(), curves.size() > 1 ? ", " + curve->label() : ""));
            return !interrupted();
        };
        if (interrupted()) break;
        if (iterates) {
            curve->points = trajectories(*curve, alphas, arguments.trajectory, options);
        } else {
            for (const auto& point :
                 solve_curve(curve->prior(), curve->model.channel(), alphas, options, pool, show))
                curve->points.push_back(theory::values(point));
        }
        progress.finish_item();
        for (const Record& point : curve->points) {
            Record row;
            if (curves.size() > 1) row["width"] = curve->model.prior(0).parameters().front().second;
            row.update(point);
            report.points.push_back(std::move(row));
        }
    }
    progress.clear();
    if (!arguments.plot.empty() && !report.points.empty()) draw(curves, arguments, grid.logarithmic());
    return arguments.publish(report);
}

}  // namespace

void add_theory(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "theory", "Bayes-optimal estimation and generalisation error (state evolution)", run);
    command
        .text("--alpha", arguments.alpha,
              "samples per d^2: 0.1 | 0.1,0.2 | start:stop:count | log:start:stop:count;\n"
              "numbers followed by x count in units of the strong-recovery threshold: 0.1x:0.9x:9;\n"
              "0 is the error without data",
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
        "  bayesaim theory --width 0.25,0.5,1 --alpha 0:0.3:31 --plot widths.png\n"
        "  bayesaim theory --channel hardmax --width 0.5 --alpha log:0.1:20:24 --plot hardmax.png");
}

}  // namespace bayesaim::program
