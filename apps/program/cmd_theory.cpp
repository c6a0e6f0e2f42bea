// SPDX-License-Identifier: MIT
#include <algorithm>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/figures/line_figure.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/erm_options.hpp"
#include "program/interrupt.hpp"
#include "program/messages.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {
namespace {

using theory::EstimationCurve;

struct Arguments : CommonArguments {
    ModelArguments model;
    ErmArguments erm;
    std::string alpha, plot, limit = "none", method = "automatic";
    int trajectory = 0;
    bool estimation_only = false;
    IntegrationArguments integration;
};

/// One curve of the family: a model, its threshold and its points.
struct Curve {
    std::shared_ptr<const model::Model> shared;
    const model::Model& model;
    std::unique_ptr<EstimationCurve> curve;
    std::string label;                       // what tells it from the others
    std::optional<double> regularization{};  // of ERM; none for the best
    std::vector<Record> points{};

    Curve(std::shared_ptr<const model::Model> of, bool small_width) : shared(std::move(of)), model(*shared) {
        if (small_width) {
            curve = std::make_unique<theory::SmallWidthCurve>();
        } else {
            curve = theory::make_curve(model.laws(), model.channel().geometry());
        }
    }
    const EstimationCurve& prior() const { return *curve; }
    /// The unit of alpha.
    std::optional<double> threshold() const { return strong_recovery(prior(), model.channel()); }
    std::string prior_label() const {
        const auto parameters = model.prior(0).parameters();
        return parameters.empty() ? "" : fmt::format("ρ = {:g}", parameters.front().second);
    }
};

/// One curve for each width, and for each regularisation if ERM is asked for.
std::vector<std::unique_ptr<Curve>> make_curves(const Arguments& arguments, bool small_width, bool erm) {
    std::vector<std::unique_ptr<Curve>> curves;
    std::vector<model::Model> models = arguments.model.make_family();
    const bool one_width = models.size() == 1;
    for (model::Model& model : models) {
        const auto shared = std::make_shared<const model::Model>(std::move(model));
        if (!erm) {
            curves.push_back(std::make_unique<Curve>(shared, small_width));
            curves.back()->label = curves.back()->prior_label();
            continue;
        }
        for (const std::optional<double> regularization : arguments.erm.regularizations()) {
            curves.push_back(std::make_unique<Curve>(shared, false));
            Curve& curve = *curves.back();
            curve.regularization = regularization;
            curve.label = !regularization ? "best λ" : fmt::format("λ = {:g}", *regularization);
            if (!one_width) curve.label = curve.prior_label() + ", " + curve.label;
        }
    }
    return curves;
}

/// The threshold that a picture marks.
std::optional<double> marked_threshold(const Curve& curve, const Arguments& arguments) {
    if (!arguments.erm.chosen()) return curve.threshold();
    if (curve.regularization.value_or(0) > 0) return std::nullopt;
    return theory::erm_thresholds(teacher_of(curve.model), *arguments.erm.make_loss(curve.model.channel()),
                                  losses::parse_penalty("--penalty", arguments.erm.penalty))
        .recovery;
}

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
    if (arguments.erm.chosen()) title += fmt::format(", {} loss", arguments.erm.make_loss(channel)->name());
    if (curves.size() == 1 && arguments.limit == "none" && !curves.front()->label.empty())
        title += ", " + curves.front()->label;
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
        figures::Series estimation{curves.size() == 1 ? "estimation" : curve.label, {}, {}, {}, line, colour};
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
        if (const auto threshold = marked_threshold(curve, arguments)) {
            thresholds = true;
            if (*threshold < estimation.x.back())
                figure.markers.push_back({*threshold, curves.size() == 1 ? "strong recovery" : "", colour});
        }
        figure.series.push_back(std::move(estimation));
        if (curves.size() == 1 && !arguments.estimation_only)
            figure.series.push_back(std::move(generalization));
    }
    // A power law is a straight line in logarithmic axes, which cannot show an error of 0. A threshold bends
    // it.
    figure.log_x = figure.log_y =
        !zero && largest > (logarithmic_grid ? 10 : 30) * smallest && (!thresholds || logarithmic_grid);
    if (curves.size() > 1 && thresholds) figure.caption = "vertical lines: strong recovery";
    figures::draw(figure, arguments.plot);
    if (!arguments.quiet) tell("picture: {}\n", arguments.plot);
}

int run(const Arguments& arguments) {
    check_one_of("--limit", arguments.limit, {"none", "small-width"});
    const bool small_width = arguments.limit == "small-width", iterates = arguments.trajectory > 0;
    const bool erm = arguments.erm.chosen();
    if (erm && small_width) throw_conflict("--estimator erm", "--limit small-width");
    if (erm && iterates) throw_conflict("--estimator erm", "--trajectory");
    if (erm && arguments.estimation_only) throw_conflict("--estimator erm", "--estimation-only");
    const auto curves = make_curves(arguments, small_width, erm);
    const model::Model& model = curves.front()->model;
    const auto loss = erm ? arguments.erm.make_loss(model.channel()) : nullptr;
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
    if (arguments.model.options.widths.size() > 1 && curves.size() > 1)
        report.configuration["width"] = arguments.model.options.widths;
    if (small_width) {
        report.configuration.erase("width");
        report.configuration["limit"] = "small-width";
    }
    report.configuration["alpha"] = arguments.alpha;
    if (erm) {
        arguments.erm.describe(*loss, report.configuration);
    } else {
        report.configuration["method"] = arguments.method;
    }
    arguments.integration.describe(model.channel(), arguments.seed, report.configuration);

    ThreadPool pool(arguments.thread_count());
    pool.stop_when(interrupted);
    auto options = arguments.integration.options(arguments.seed, &pool);
    options.method = theory::parse_method("--method", arguments.method);
    options.generalization = !arguments.estimation_only;
    Progress progress(arguments.quiet, curves.size());
    catch_interrupts();
    for (const auto& curve : curves) {
        const std::vector<double> alphas = grid.values(curve->threshold());
        const auto show = [&](double fraction) {
            progress.update(
                fraction, fmt::format("{:.0f} of {} points{}", fraction * static_cast<double>(alphas.size()),
                                      alphas.size(), curves.size() > 1 ? ", " + curve->label : ""));
            return !interrupted();
        };
        if (interrupted()) break;
        if (iterates) {
            curve->points = trajectories(*curve, alphas, arguments.trajectory, options);
        } else if (erm) {
            for (const auto& point :
                 theory::solve_erm_curve(teacher_of(curve->model), *loss, alphas, curve->regularization,
                                         arguments.erm.options(options.integration), pool, show))
                curve->points.push_back(theory::values(point));
        } else {
            for (const auto& point :
                 solve_curve(curve->prior(), curve->model.channel(), alphas, options, pool, show))
                curve->points.push_back(theory::values(point));
        }
        progress.finish_item();
        for (const Record& point : curve->points) {
            Record row;
            if (arguments.model.options.widths.size() > 1 && curves.size() > 1)
                row["width"] = curve->model.prior(0).parameters().front().second;
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
        "theory", "Bayes-optimal (or trained: --estimator erm) estimation and generalisation error", run);
    command
        .text("--alpha", arguments.alpha,
              "samples per d^2: 0.1 | 0.1,0.2 | start:stop:count | log:start:stop:count;\n"
              "numbers followed by x count in units of the strong-recovery threshold: 0.1x:0.9x:9;\n"
              "0 is the error without data",
              "GRID")
        .required();
    arguments.model.add_channel_to(command);
    arguments.model.add_prior_to(command);
    command.text("--limit", arguments.limit, "none, or small-width (width -> 0; then --alpha is alpha/width)")
        .values({"none", "small-width"});
    command.count("--trajectory", arguments.trajectory, 0,
                  "print this many iterations instead of the fixed point");
    command.flag(
        "--estimation-only", arguments.estimation_only,
        "leave out the generalisation errors, which take most of the time for softmax of 3 and more tokens");
    command
        .text("--method", arguments.method,
              "how the fixed point is found: automatic, bracketed, monotone or newton")
        .values({"automatic", "bracketed", "monotone", "newton"});
    arguments.erm.add_choice_to(command);
    arguments.integration.add_to(command);
    command.text("--plot", arguments.plot, "picture of the curve (png, svg, pdf)", "FILE");
    arguments.add_to(command);
    command.footer(
        "Examples:\n  bayesaim theory --width 0.5 --alpha 0.1x:1.1x:11\n"
        "  bayesaim theory --width 0.25,0.5,1 --alpha 0:0.3:31 --plot widths.png\n"
        "  bayesaim theory --estimator erm --regularization 0,0.05,0.2 --width 0.5 --alpha 0.1x:1.2x:30 "
        "--plot erm.png\n"
        "  bayesaim theory --channel hardmax --width 0.5 --alpha log:0.1:20:24 --plot hardmax.png");
}

}  // namespace bayesaim::program
