// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/figures/gnuplot.hpp"
#include "bayesaim/figures/phase_figure.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "program/commands.hpp"
#include "program/options.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    ModelArguments model;
    OutputArguments output;
    RunArguments run;
    IntegrationArguments integration;
    std::string alpha, widths, plot;
};

/// One width: its alphas, errors and threshold.
struct Row {
    double width = 0;
    std::optional<double> threshold;
    std::vector<double> alpha, error;
    std::vector<Termination> status;
};

Row solve_row(double width, const model::Model& model, const experiments::Grid& alphas,
              const theory::StateEvolutionOptions& options) {
    const theory::SpectralCurve curve(model.laws());
    Row row{width, strong_recovery(curve, model.channel()), {}, {}, {}};
    row.alpha = alphas.values(row.threshold);
    for (const double alpha : row.alpha) {
        const theory::BayesOptimal solution = solve_bayes_optimal(curve, model.channel(), alpha, options);
        row.error.push_back(solution.optimal().error());
        row.status.push_back(solution.optimal().status);
    }
    return row;
}

void draw(const std::vector<Row>& rows, const std::string& title, const std::string& output) {
    figures::PhaseFigure figure;
    figure.title = title;
    figure.columns = rows.front().alpha.size();
    for (const Row& row : rows) {
        if (row.threshold) {
            figure.line_alpha.push_back(*row.threshold);
            figure.line_width.push_back(row.width);
        }
        figure.alpha.insert(figure.alpha.end(), row.alpha.begin(), row.alpha.end());
        figure.width.insert(figure.width.end(), row.alpha.size(), row.width);
        figure.error.insert(figure.error.end(), row.error.begin(), row.error.end());
    }
    figures::draw(figure, output);
}

int run(const Arguments& arguments) {
    arguments.output.check_writable(arguments.plot);
    const experiments::Grid alphas("--alpha", arguments.alpha), widths("--widths", arguments.widths);
    const model::Model any_width = arguments.model.make();
    const channels::Channel& channel = any_width.channel();
    if (widths.relative()) throw_invalid("--widths", "absolute numbers", "numbers with x");
    const std::vector<double> width_values = widths.values();
    if (!arguments.plot.empty()) {
        check_at_least("points of --alpha for a picture", static_cast<long long>(alphas.size()), 2);
        check_at_least("points of --widths for a picture", static_cast<long long>(width_values.size()), 2);
    }
    ThreadPool pool(arguments.run.thread_count());
    const theory::StateEvolutionOptions options =
        arguments.integration.options(arguments.run, channel.sampled() ? &pool : nullptr);
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
    arguments.integration.describe(channel, arguments.run, report.configuration);
    report.configuration["alpha"] = arguments.alpha;
    report.configuration["widths"] = arguments.widths;
    bool converged = true;
    for (const Row& row : rows) {
        for (std::size_t i = 0; i < row.alpha.size(); ++i) {
            report.points.push_back({{"alpha", row.alpha[i]},
                                     {"width", row.width},
                                     {"estimation_error", row.error[i]},
                                     {"status", to_string(row.status[i])}});
            converged &= succeeded(row.status[i]);
        }
    }
    if (!arguments.plot.empty()) {
        draw(rows, fmt::format("{} channel, T = {}", channel.name(), channel.tokens()), arguments.plot);
        if (!arguments.output.quiet) fmt::print(stderr, "picture: {}\n", arguments.plot);
    }
    arguments.output.publish(report);
    return converged ? 0 : 2;
}

}  // namespace

Action add_phase(Program& program) {
    auto arguments = std::make_shared<Arguments>();
    Command command =
        program.add_command("phase", "Bayes-optimal error over a grid of alpha and width, as a heat map");
    command
        .text("--alpha", arguments->alpha,
              "samples per d^2, as in `theory`; x counts in units of the threshold of each width")
        .required()
        .type_name("GRID");
    command.text("--widths", arguments->widths, "width ratios r/d").required().type_name("GRID");
    arguments->model.add_channel_to(command, ModelArguments::Channels::one_layer);
    command.file("--plot", arguments->plot, "heat map with the strong-recovery line (png, svg, pdf)");
    arguments->integration.add_to(command);
    arguments->run.add_to(command);
    arguments->output.add_to(command);
    command.footer(
        "Example:\n  bayesaim phase --alpha 0.005:0.3:60 --widths 0.02:1.5:60 --plot phase.png --output "
        "phase.csv --format csv");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
