// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "bayesaim/estimators/erm.hpp"
#include "bayesaim/experiments/task.hpp"
#include "bayesaim/figures/paper_figure.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/losses/table.hpp"
#include "bayesaim/theory/erm.hpp"

/// What training reaches, beside the Bayes-optimal error.
namespace bayesaim::figures {
namespace {

using enum Series::Style;

void add(LineFigure& figure, const Points& points, const char* estimator, const Choice& choice,
         const std::string& label, const char* colour, Series::Style style) {
    Series series = collect(points, estimator, choice);
    series.label = label;
    series.colour = colour;
    series.style = style;
    figure.series.push_back(std::move(series));
}

Choice any() {
    return [](const experiments::Task&) { return true; };
}

/// Theory at the best regularisation, or at this one.
Choice trained(std::optional<double> regularization, const std::string& penalty = "trace") {
    return [=](const experiments::Task& task) {
        return task.penalty == penalty && task.optimal_regularization == !regularization &&
               task.regularization == regularization.value_or(0);
    };
}

// ---- erm --------------------------------------------------------------------------------------------------

// Weight decay 0.4 at student width 1 is lambda = 0.2.
constexpr const char* erm_study = R"(
channel = "linear"
label_noise = 0.5
width = 0.5
[[run]]
estimator = "theory"
alpha = "log:0.02:1:<30|80>"
[[run]]
estimator = "erm-theory"
optimal_regularization = true
penalty = ["trace", "frobenius"]
alpha = "log:0.02:1:<30|80>"
[[run]]
estimator = "erm-theory"
regularization = [0, 0.2]
alpha = "log:0.02:1:<80|240>"
[[run]]
estimator = "erm"
optimal_regularization = true
alpha = <[0.05, 0.1, 0.2, 0.4]|[0.03, 0.05, 0.1, 0.2, 0.4, 0.8]>
dim = <60|100>
seeds = <4|16>
tolerance = 1e-7
max_iterations = 3000
[[run]]
estimator = "gd"
weight_decay = 0.4
student_width = 1
learning_rate = 0.02
steps = <600|2000>
alpha = <[0.05, 0.1, 0.2]|[0.05, 0.1, 0.2, 0.4]>
dim = <60|100>
seeds = <2|4>
)";

Composition erm(const Points& points, Size size) {
    const int dim = size == Size::full ? 100 : 60;
    Composition result = error_against_alpha(
        "Linear attention with label noise 0.5, ρ = 0.5: what training reaches",
        fmt::format(
            "dots: the minimum of the training loss;  crosses: gradient descent with weight decay;  d = {}{}",
            dim, size == Size::quick ? " (quick)" : ""));
    LineFigure& figure = result.figure;
    figure.log_x = figure.log_y = true;
    figure.key = "bottom left";
    add(figure, points, "theory", any(), "Bayes-optimal", colour::black, line);
    add(figure, points, "erm-theory", trained({}), "trained, best λ", colour::blue, line);
    add(figure, points, "erm-theory", trained(0.2), "trained, λ = 0.2", colour::green, dashed_line);
    add(figure, points, "erm-theory", trained(0), "trained, λ → 0", colour::vermilion, line);
    add(figure, points, "erm-theory", trained({}, "frobenius"), "entries of S trained, best λ",
        colour::purple, dotted_line);
    add(figure, points, "erm", any(), "", colour::blue, dots);
    add(figure, points, "gd", any(), "", colour::green, crosses);
    figure.series[5].name = "solver, best lambda";
    figure.series[6].name = "gradient descent, lambda = 0.2";
    const char* names[] = {"Bayes-optimal", "trained, best lambda", "trained, lambda = 0.2",
                           "trained, lambda -> 0", "entries of S, best lambda"};
    for (std::size_t i = 0; i < std::size(names); ++i) figure.series[i].name = names[i];
    add_headline(result, "trained, error at alpha = {:g}, best lambda (solver)", points, "erm", any());
    return result;
}

// ---- erm-softmax ------------------------------------------------------------------------------------------

constexpr const char* erm_softmax_study = R"(
width = 0.5
[[run]]
estimator = "theory"
alpha = "0.05:0.24:<39|96>"
[[run]]
estimator = "erm-theory"
regularization = 0
alpha = "0.05:0.24:<39|96>"
[[run]]
estimator = "erm-theory"
loss = "cross-entropy"
regularization = 0.01
alpha = "0.05:0.24:<9|39>"
[[run]]
estimator = "erm"
loss = "cross-entropy"
regularization = 0.01
alpha = <[0.08, 0.12, 0.16]|[0.06, 0.09, 0.12, 0.15, 0.18, 0.21]>
dim = <60|100>
seeds = <4|16>
tolerance = 1e-7
max_iterations = 3000
)";

Composition erm_softmax(const Points& points, Size size) {
    Composition result = error_against_alpha(
        "Softmax attention, T = 2, ρ = 0.5: what training reaches",
        fmt::format("vertical lines: recovery at 0.1875 and 0.2111;  dots: the minimum of the training loss, "
                    "d = {}{}",
                    size == Size::full ? 100 : 60, size == Size::quick ? " (quick)" : ""));
    LineFigure& figure = result.figure;
    add(figure, points, "theory", any(), "Bayes-optimal", colour::black, line);
    add(figure, points, "erm-theory", trained(0), "trained, λ → 0, any loss", colour::vermilion, line);
    add(figure, points, "erm-theory", trained(0.01), "cross-entropy, λ = 0.01", colour::blue, line);
    add(figure, points, "erm", any(), "", colour::blue, dots);
    const char* names[] = {"Bayes-optimal", "trained, lambda -> 0", "cross-entropy, lambda = 0.01",
                           "solver, cross-entropy, lambda = 0.01"};
    for (std::size_t i = 0; i < std::size(names); ++i) figure.series[i].name = names[i];
    figure.markers = {{0.1875, "", colour::black}, {0.21108749109, "", colour::vermilion}};
    add_headline(result, "cross-entropy, error at alpha = {:g}, lambda 0.01 (solver)", points, "erm", any());
    return result;
}

// ---- erm-spectrum -----------------------------------------------------------------------------------------

constexpr const char* erm_spectrum_study = R"(
channel = "linear"
label_noise = 0.5
width = 0.5
alpha = 0.1
[[run]]
estimator = "erm-theory"
regularization = [0.05, 0.2, 0.5]
)";

/// The density of the eigenvalues that are not 0, and the histogram of one trained matrix.
Composition erm_spectrum(const Points& points, Size size) {
    const Eigen::Index dim = size == Size::full ? 400 : 150;
    LineFigure figure{"Eigenvalues of trained attention: weight decay makes the rank small",
                      "eigenvalue of the trained matrix", "density"};
    figure.caption =
        fmt::format("linear, label noise 0.5, ρ = 0.5, α = 0.1;  dots: one trained matrix, d = {}{}", dim,
                    size == Size::quick ? " (quick)" : "");
    constexpr const char* colours[] = {colour::blue, colour::vermilion, colour::green};
    ThreadPool pool(0);
    std::size_t next = 0;
    for (const experiments::Point& of : points) {
        const experiments::Task& task = of.task;
        const model::Model model = experiments::make_model(task);
        const auto loss = losses::make_loss(task.loss, model.channel());
        const theory::ErmPoint point =
            theory::solve_erm(model.prior(0).law(), *loss, task.alpha, task.regularization);
        const theory::TrainedSpectrum spectrum(model.prior(0).law(), point, losses::Penalty::trace);
        const double end = spectrum.edges().back().high;
        Series line_series{
            fmt::format("λ = {:g}, zeros {:.3f}", task.regularization, point.zero_fraction), {}, {}};
        line_series.name = fmt::format("theory, lambda = {:g}", task.regularization);
        constexpr int steps = 300;
        for (int i = 0; i <= steps; ++i) {
            line_series.x.push_back(end * i / steps);
            line_series.y.push_back(spectrum.density(line_series.x.back()));
        }
        estimators::ErmOptions options;
        options.regularization = task.regularization;
        options.tolerance = 1e-6;
        const data::Synthetic problem = data::make_synthetic(
            model.priors(), model.channel(), {.dim = dim, .alpha = task.alpha, .seed = 1}, pool);
        const auto result = estimators::run_erm(problem.data, *loss, options, pool);
        const linalg::Vector values = linalg::symmetric_eigenvalues(result.estimate);
        constexpr int bins = 12;
        Series histogram{"", {}, {}};
        histogram.style = dots;
        histogram.name = fmt::format("one matrix, lambda = {:g}", task.regularization);
        const auto zeros =
            static_cast<Eigen::Index>(std::llround(result.zero_fraction * static_cast<double>(dim)));
        for (int b = 0; b < bins; ++b) {
            const double low = end * b / bins, high = end * (b + 1) / bins;
            const auto count = std::count_if(values.begin() + zeros, values.end(),
                                             [&](double x) { return x >= low && x < high; });
            histogram.x.push_back(0.5 * (low + high));
            histogram.y.push_back(static_cast<double>(count) / (static_cast<double>(dim) * (high - low)));
        }
        line_series.colour = histogram.colour = colours[next++ % std::size(colours)];
        figure.series.push_back(std::move(line_series));
        figure.series.push_back(std::move(histogram));
    }
    return {std::move(figure)};
}

// ---- scaling laws -----------------------------------------------------------------------------------------

constexpr const char* scaling_laws_study = R"(
prior = "power-law"
exponent = [0.7, 1, 1.5]
cutoff = 1e-6
channel = "linear"
[[run]]
estimator = "theory"
alpha = "log:3e-5:0.003:<10|40>"
[[run]]
estimator = "erm-theory"
optimal_regularization = true
alpha = "log:3e-5:0.003:<10|40>"
)";

/// The slope of log y against log x, by least squares.
double measured_exponent(const Series& series) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
        const double a = std::log(series.x[i]), b = std::log(series.y[i]);
        n += 1;
        x += a;
        y += b;
        xx += a * a;
        xy += a * b;
    }
    return (n * xy - x * y) / (n * xx - x * x);
}

Composition scaling_laws(const Points& points, Size) {
    Composition result = error_against_alpha("Scaling laws: eigenvalues of S like i^{-γ}, linear attention",
                                             "lines: Bayes-optimal, expected like α^{1-2γ};  dashed: trained "
                                             "at the best λ;  numbers: measured exponents");
    LineFigure& figure = result.figure;
    figure.log_x = figure.log_y = true;
    figure.key = "outside right center";
    for (const auto& [exponent, colour] :
         {std::pair{0.7, colour::blue}, {1.0, colour::vermilion}, {1.5, colour::green}}) {
        const Choice choice = [gamma = exponent](const auto& task) { return task.exponent == gamma; };
        for (const auto& [estimator, style, who] :
             {std::tuple{"theory", line, "Bayes"}, {"erm-theory", dashed_line, "trained"}}) {
            Series series = collect(points, estimator, choice);
            if (series.x.size() < 2) continue;
            series.label = fmt::format("γ = {:g}, {}: {:.2f}", exponent, who, measured_exponent(series));
            series.name = fmt::format("{}, exponent {:g}", who, exponent);
            series.colour = colour;
            series.style = style;
            figure.series.push_back(std::move(series));
        }
    }
    return result;
}

}  // namespace

std::vector<PaperFigure> training_figures() {
    return {
        {"erm",
         "what training reaches: Bayes-optimal, trained, interpolating, with the solver and gradient descent",
         erm_study, erm},
        {"erm-softmax", "softmax attention trained with little weight decay, and with cross-entropy",
         erm_softmax_study, erm_softmax},
        {"erm-spectrum", "eigenvalues of trained attention: theory and one matrix", erm_spectrum_study,
         erm_spectrum},
        {"scaling-laws", "error against alpha for power-law spectra, Bayes-optimal and trained",
         scaling_laws_study, scaling_laws}};
}

}  // namespace bayesaim::figures
