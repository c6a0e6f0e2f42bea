// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/figures/phase_figure.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/erm_options.hpp"
#include "program/interrupt.hpp"
#include "program/messages.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    ModelArguments model;
    ErmArguments erm;
    IntegrationArguments integration;
    std::string alpha, widths, plot;
};

/// One point: all that the report needs of it, because there may be many.
struct Point {
    double error = 0, relative_error = 0;
    Termination status{};
};

/// One width: its threshold and its points.
struct Row {
    double width = 0;
    std::optional<double> threshold{};  ///< of recovery
    std::vector<double> alphas{};
    std::vector<Point> points{};
};

int run(const Arguments& arguments) {
    arguments.check_writable(arguments.plot);
    const experiments::Grid alphas("--alpha", arguments.alpha, experiments::Grid::Zero::allowed),
        widths("--width", arguments.widths);
    const model::Model any_width = arguments.model.make();
    const channels::Channel& channel = any_width.channel();
    const bool erm = arguments.erm.chosen();
    const auto loss = erm ? arguments.erm.make_loss(channel) : nullptr;
    const bool in_turn = erm ? loss->sampled() : channel.sampled();
    const std::optional<double> regularization = [&]() -> std::optional<double> {
        if (!erm) return std::nullopt;
        const auto values = arguments.erm.regularizations();
        if (values.size() > 1)
            throw_invalid("--regularization", "one number here, or optimal", arguments.erm.regularization);
        return values.front();
    }();
    if (widths.relative()) throw_invalid("--width", "absolute numbers", "numbers with x");
    const std::vector<double> width_values = widths.values();
    if (!arguments.plot.empty()) {
        check_at_least("points of --alpha for a picture", static_cast<long long>(alphas.size()), 2);
        check_at_least("points of --width for a picture", static_cast<long long>(width_values.size()), 2);
    }
    ThreadPool pool(arguments.thread_count());
    pool.stop_when(interrupted);
    const theory::StateEvolutionOptions options =
        arguments.integration.options(arguments.seed, in_turn ? &pool : nullptr);
    std::vector<Row> rows(width_values.size());
    Progress progress(arguments.quiet, rows.size());
    catch_interrupts();
    const auto solve = [&](std::size_t i) {
        model::ModelOptions at_width = arguments.model.options;
        at_width.widths = {width_values[i]};
        const model::Model model = model::make_model(at_width);
        const auto made = theory::make_curve(model.laws(), channel.geometry());
        const theory::EstimationCurve& curve = *made;
        Row& row = rows[i];
        row = {width_values[i], strong_recovery(curve, channel)};
        row.alphas = alphas.values(row.threshold);
        theory::StateEvolutionOptions near = options;
        const auto bayes = [&](double alpha) -> Point {
            const theory::FixedPoint optimal = solve_bayes_optimal(curve, channel, alpha, near).optimal();
            near.neighbour = neighbour_of(alpha, optimal);
            return {optimal.error(), optimal.relative_error, optimal.status};
        };
        const theory::ErmOptions erm_options = arguments.erm.options(options.integration);
        const auto trained = [&](double alpha) -> Point {
            const theory::ErmPoint point =
                regularization
                    ? theory::solve_erm(model.prior(0).law(), *loss, alpha, *regularization, erm_options)
                    : theory::solve_optimal_erm(model.prior(0).law(), *loss, alpha, erm_options);
            return {point.error, point.relative_error, point.status};
        };
        if (erm)
            row.threshold = theory::erm_thresholds(model.prior(0).law(), *loss, erm_options.penalty).recovery;
        for (const double alpha : row.alphas) {
            if (interrupted()) return;
            row.points.push_back(erm ? trained(alpha) : bayes(alpha));
            if (in_turn) {
                progress.update(
                    static_cast<double>(row.points.size()) / static_cast<double>(row.alphas.size()),
                    fmt::format("width {:g}, alpha {:g}", row.width, alpha));
            }
        }
        progress.finish_item();
    };
    try {
        if (in_turn) {
            for (std::size_t i = 0; i < rows.size(); ++i) solve(i);
        } else {
            pool.for_each(rows.size(), solve);
        }
    } catch (const Stopped&) {
        // The finished points are printed.
    }
    progress.clear();

    Report report{"phase", model::describe(any_width)};
    report.configuration.erase("width");
    arguments.integration.describe(channel, arguments.seed, report.configuration);
    report.configuration["alpha"] = arguments.alpha;
    report.configuration["widths"] = arguments.widths;
    if (erm) arguments.erm.describe(*loss, report.configuration);
    figures::PhaseFigure figure;
    figure.title = fmt::format("{} channel, T = {}", channel.name(), channel.tokens());
    if (erm) figure.quantity = "error of training";
    if (erm)
        figure.title += fmt::format(", trained: {} loss, λ {}{}", loss->name(), regularization ? "= " : "",
                                    arguments.erm.regularization);
    figure.columns = alphas.size();
    figure.log_alpha = alphas.logarithmic();
    figure.log_width = widths.logarithmic();
    for (const Row& row : rows) {
        const bool whole = row.points.size() == alphas.size();  // not interrupted: a part of the picture
        if (row.threshold && whole) {
            figure.line_alpha.push_back(*row.threshold);
            figure.line_width.push_back(row.width);
        }
        for (std::size_t i = 0; i < row.points.size(); ++i) {
            const Point& optimal = row.points[i];
            if (whole) {
                figure.alpha.push_back(row.alphas[i]);
                figure.width.push_back(row.width);
                figure.error.push_back(optimal.error);
            }
            report.points.push_back({{"alpha", row.alphas[i]},
                                     {"width", row.width},
                                     {"estimation_error", optimal.error},
                                     {"standard_error", optimal.relative_error * optimal.error},
                                     {"strong_recovery", row.threshold},
                                     {"status", to_string(optimal.status)}});
        }
    }
    if (!arguments.plot.empty() && figure.width.size() > 2 * figure.columns - 1) {
        figures::draw(figure, arguments.plot);
        if (!arguments.quiet) tell("picture: {}\n", arguments.plot);
    }
    return arguments.publish(report);
}

}  // namespace

void add_phase(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "phase",
        "Bayes-optimal (or trained: --estimator erm) error over a grid of alpha and width, as a heat map",
        run);
    command
        .text("--alpha", arguments.alpha,
              "samples per d^2, as in `theory`; x counts in units of the threshold of each width", "GRID")
        .required();
    command.text("--width,--widths", arguments.widths, "width ratios r/d", "GRID").required();
    arguments.model.add_channel_to(command, ModelArguments::Channels::one_layer);
    arguments.model.add_scale_to(command);
    arguments.model.add_aspect_to(command);
    arguments.erm.add_choice_to(command);
    command.text("--plot", arguments.plot, "heat map with the strong-recovery line (png, svg, pdf)", "FILE");
    arguments.integration.add_to(command);
    arguments.add_to(command);
    command.footer(
        "Example:\n  bayesaim phase --alpha 0.005:0.3:60 --width 0.02:1.5:60 --plot phase.png --output "
        "phase.csv --format csv");
}

}  // namespace bayesaim::program
