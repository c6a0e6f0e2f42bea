// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/figures/phase_figure.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/options.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    ModelArguments model;
    IntegrationArguments integration;
    std::string alpha, widths, plot;
};

/// One width: its threshold, its alphas and their solutions.
struct Row {
    double width = 0;
    std::optional<double> threshold;
    std::vector<double> alphas;
    std::vector<theory::BayesOptimal> solutions;
};

Row solve_row(double width, const model::Model& model, const experiments::Grid& alphas,
              const theory::StateEvolutionOptions& options) {
    const theory::SpectralCurve curve(model.laws());
    Row row{width, strong_recovery(curve, model.channel()), {}, {}};
    row.alphas = alphas.values(row.threshold);
    for (const double alpha : row.alphas)
        row.solutions.push_back(solve_bayes_optimal(curve, model.channel(), alpha, options));
    return row;
}

int run(const Arguments& arguments) {
    arguments.check_writable(arguments.plot);
    const experiments::Grid alphas("--alpha", arguments.alpha), widths("--widths", arguments.widths);
    const model::Model any_width = arguments.model.make();
    const channels::Channel& channel = any_width.channel();
    if (widths.relative()) throw_invalid("--widths", "absolute numbers", "numbers with x");
    const std::vector<double> width_values = widths.values();
    if (!arguments.plot.empty()) {
        check_at_least("points of --alpha for a picture", static_cast<long long>(alphas.size()), 2);
        check_at_least("points of --widths for a picture", static_cast<long long>(width_values.size()), 2);
    }
    ThreadPool pool(arguments.thread_count());
    const theory::StateEvolutionOptions options =
        arguments.integration.options(arguments.seed, channel.sampled() ? &pool : nullptr);
    std::vector<Row> rows(width_values.size());
    const auto solve = [&](std::size_t i) {
        model::ModelOptions at_width = arguments.model.options;
        at_width.widths = {width_values[i]};
        rows[i] = solve_row(width_values[i], model::make_model(at_width), alphas, options);
    };
    if (channel.sampled()) {
        for (std::size_t i = 0; i < rows.size(); ++i) solve(i);
    } else {
        pool.for_each(rows.size(), solve);
    }

    Report report{"phase", model::describe(any_width)};
    report.configuration.erase("width");
    arguments.integration.describe(channel, arguments.seed, report.configuration);
    report.configuration["alpha"] = arguments.alpha;
    report.configuration["widths"] = arguments.widths;
    figures::PhaseFigure figure;
    figure.title = fmt::format("{} channel, T = {}", channel.name(), channel.tokens());
    figure.columns = alphas.size();
    bool converged = true;
    for (const Row& row : rows) {
        if (row.threshold) {
            figure.line_alpha.push_back(*row.threshold);
            figure.line_width.push_back(row.width);
        }
        for (std::size_t i = 0; i < row.alphas.size(); ++i) {
            const theory::FixedPoint& optimal = row.solutions[i].optimal();
            figure.alpha.push_back(row.alphas[i]);
            figure.width.push_back(row.width);
            figure.error.push_back(optimal.error());
            report.points.push_back({{"alpha", row.alphas[i]},
                                     {"width", row.width},
                                     {"estimation_error", optimal.error()},
                                     {"status", to_string(optimal.status)}});
            converged &= succeeded(optimal.status);
        }
    }
    if (!arguments.plot.empty()) {
        figures::draw(figure, arguments.plot);
        if (!arguments.quiet) fmt::print(stderr, "picture: {}\n", arguments.plot);
    }
    return arguments.publish(report, converged);
}

}  // namespace

void add_phase(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "phase", "Bayes-optimal error over a grid of alpha and width, as a heat map", run);
    command
        .text("--alpha", arguments.alpha,
              "samples per d^2, as in `theory`; x counts in units of the threshold of each width", "GRID")
        .required();
    command.text("--widths", arguments.widths, "width ratios r/d", "GRID").required();
    arguments.model.add_channel_to(command, ModelArguments::Channels::one_layer);
    command.text("--plot", arguments.plot, "heat map with the strong-recovery line (png, svg, pdf)", "FILE");
    arguments.integration.add_to(command);
    arguments.add_to(command);
    command.footer(
        "Example:\n  bayesaim phase --alpha 0.005:0.3:60 --widths 0.02:1.5:60 --plot phase.png --output "
        "phase.csv --format csv");
}

}  // namespace bayesaim::program
