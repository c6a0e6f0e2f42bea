// SPDX-License-Identifier: MIT
#include "bayesaim/figures/paper_figure.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"

namespace bayesaim::figures {

const std::vector<PaperFigure>& paper_figures() {
    static const std::vector<PaperFigure> table = {
        paper::hardmax(), paper::hardmax_small_width(), paper::softmax_widths(),      paper::softmax(),
        paper::linear(),  paper::many_tokens(),         paper::softmax_small_width(), paper::deep()};
    return table;
}

const PaperFigure& find_paper_figure(const std::string& name) {
    std::vector<std::string> names;
    for (const PaperFigure& figure : paper_figures()) names.push_back(figure.name);
    return paper_figures()[check_one_of("figure", name, names)];
}

Drawn draw_paper_figure(const PaperFigure& figure, Size size, const std::filesystem::path& directory,
                        const experiments::SweepOptions& options) {
    const std::string study_name = figure.name + (size == Size::quick ? "-quick" : "-full");
    const std::filesystem::path runs = directory / "runs" / study_name;
    experiments::Experiment experiment =
        experiments::parse_experiment(figure.study(size), figure.name + ".toml", directory);
    experiment.name = study_name;
    Drawn drawn;
    drawn.sweep = run_sweep(experiment, runs, options);
    if (drawn.sweep.stopped) return drawn;
    drawn.composition = figure.compose(drawn.sweep.points, size);
    const auto file = [&](const char* ending) {
        drawn.files.push_back(directory / (figure.name + ending));
        return drawn.files.back();
    };
    for (const char* ending : {".pdf", ".svg", ".png"}) draw(drawn.composition.figure, file(ending));
    write_whole(file(".csv").string(), csv_of(drawn.composition.figure));
    write_whole(file(".gnuplot").string(), script_of(drawn.composition.figure));
    std::filesystem::copy_file(runs / experiments::provenance_name, file(".json"),
                               std::filesystem::copy_options::overwrite_existing);
    return drawn;
}

std::string csv_of(const LineFigure& figure) {
    std::string text = "series,x,y,standard_error\n";
    for (std::size_t i = 0; i < figure.series.size(); ++i) {
        const Series& series = figure.series[i];
        const std::string name = series.name.empty() ? series.label : series.name;
        for (std::size_t j = 0; j < series.x.size(); ++j) {
            text += fmt::format("\"{}\",{},{},{}\n", name, series.x[j], series.y[j],
                                series.error.empty() ? std::string() : fmt::format("{}", series.error[j]));
        }
    }
    return text;
}

namespace {

/// Values of finished tasks by alpha.
std::map<double, std::vector<double>> values_by_alpha(const Points& points, const std::string& estimator,
                                                      const Choice& choice, std::string_view value) {
    std::map<double, std::vector<double>> values;
    for (const experiments::Point& point : points) {
        if (point.task.estimator != estimator || !choice(point.task) || !point.outcome) continue;
        if (const auto number = point.outcome->value(value)) values[point.task.alpha].push_back(*number);
    }
    return values;
}

}  // namespace

Curve collect(const Points& points, const std::string& estimator, const Choice& choice,
              std::string_view value, double x_factor) {
    Curve curve;
    for (const auto& [alpha, values] : values_by_alpha(points, estimator, choice, value)) {
        const auto mean = numerics::mean_of(values);  // the numbers of outcomes are finite
        curve.x.push_back(alpha * x_factor);
        curve.y.push_back(mean->value);
        if (mean->standard_error) curve.error.push_back(*mean->standard_error);
    }
    if (curve.error.size() != curve.x.size()) curve.error.clear();
    return curve;
}

void add_headline(Composition& composition, std::string_view what, const Points& points,
                  const std::string& estimator, Choice choice, std::string_view value) {
    const auto measured = values_by_alpha(points, estimator, choice, value);
    if (measured.empty()) return;
    const auto& [alpha, values] =
        *std::next(measured.begin(), static_cast<std::ptrdiff_t>(measured.size() / 2));
    const auto theory = values_by_alpha(points, estimator, choice, "theory_error");
    const auto expected = theory.find(alpha);
    if (expected == theory.end()) return;
    composition.headlines.push_back({fmt::format(fmt::runtime(what), alpha),
                                     numerics::mean_of(values).value(), expected->second.front()});
}

Series line(std::string label, Curve curve, const char* colour, Series::Style style) {
    Series series;
    series.label = std::move(label);
    series.x = std::move(curve.x);
    series.y = std::move(curve.y);
    series.style = style;
    series.colour = colour;
    return series;
}

Series dots(std::string label, Curve curve, const char* colour, Series::Style style) {
    std::vector<double> error = std::move(curve.error);
    Series series = line(std::move(label), std::move(curve), colour, style);
    series.error = std::move(error);
    return series;
}

std::string describe_runs(const Points& points, const std::string& estimator, Size size) {
    std::set<int> dims;
    std::set<std::uint64_t> seeds;
    for (const experiments::Point& point : points) {
        if (point.task.estimator != estimator) continue;
        dims.insert(point.task.dim);
        seeds.insert(point.task.seed);
    }
    if (dims.empty()) return "theory, large d";
    return fmt::format("d = {}, {} seeds{}", *dims.begin(), seeds.size(),
                       size == Size::quick ? " (quick)" : "");
}

}  // namespace bayesaim::figures
