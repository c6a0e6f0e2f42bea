// SPDX-License-Identifier: MIT
#include "bayesaim/figures/paper_figure.hpp"

#include <iterator>
#include <map>
#include <regex>
#include <set>

#include <fmt/format.h>

#include "bayesaim/core/files.hpp"

namespace bayesaim::figures {
namespace {

/// The numbers of a figure: one line per point.
std::string csv_of(const LineFigure& figure) {
    std::string text = "series,x,y,standard_error\n";
    for (const Series& series : figure.series) {
        const std::string& name = series.name.empty() ? series.label : series.name;
        for (std::size_t j = 0; j < series.x.size(); ++j) {
            text += fmt::format("\"{}\",{},{},{}\n", name, series.x[j], series.y[j],
                                series.error.empty() ? std::string() : fmt::format("{}", series.error[j]));
        }
    }
    return text;
}

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

/// The runs of a figure.
struct Study {
    std::string text;
    experiments::Experiment experiment;
    std::filesystem::path runs;
};

Study study_of(const PaperFigure& figure, Size size, const std::filesystem::path& directory) {
    static const std::regex choice("<([^|>]*)\\|([^>]*)>");
    Study study;
    study.text = std::regex_replace(figure.study, choice, size == Size::quick ? "$1" : "$2");
    study.experiment = experiments::parse_experiment(study.text, figure.name + ".toml", directory);
    study.experiment.name = figure.name + (size == Size::quick ? "-quick" : "-full");
    study.runs = directory / "runs" / study.experiment.name;
    return study;
}

}  // namespace

double estimated_seconds(const PaperFigure& figure, Size size, const std::filesystem::path& directory,
                         const experiments::SweepOptions& options) {
    const Study study = study_of(figure, size, directory);
    return plan_sweep(study.experiment, study.runs, options).seconds;
}

Drawn draw_paper_figure(const PaperFigure& figure, Size size, const std::filesystem::path& directory,
                        const experiments::SweepOptions& options) {
    const auto [study, experiment, runs] = study_of(figure, size, directory);
    Drawn drawn;
    drawn.sweep = run_sweep(experiment, runs, options);
    // File names in a study are relative to its file: the text is valid in this directory.
    const std::filesystem::path study_file = directory / (figure.name + ".toml");
    write_whole(study_file,
                fmt::format("# The study of figure {0}. Change it, then: bayesaim sweep {1}; bayesaim plot "
                            "results/{0}\n{2}",
                            figure.name, study_file.string(), study.substr(study.find_first_not_of('\n'))));
    if (drawn.sweep.stopped) return drawn;
    drawn.composition = figure.compose(drawn.sweep.points, size);
    const auto file = [&](const char* ending) {
        drawn.files.push_back(directory / (figure.name + ending));
        return drawn.files.back();
    };
    for (const char* ending : {".pdf", ".svg", ".png"}) draw(drawn.composition.figure, file(ending));
    write_whole(file(".csv").string(), csv_of(drawn.composition.figure));
    write_whole(file(".gnuplot").string(), script_of(drawn.composition.figure));
    write_whole(file(".json"), read_whole("provenance", runs / experiments::provenance_name));
    drawn.files.push_back(study_file);
    return drawn;
}

Series collect(const Points& points, const std::string& estimator, const Choice& choice,
               std::string_view value, double x_factor) {
    Series curve;
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

void add_curve(LineFigure& figure, const Points& points, const Curve& curve) {
    Series theory = collect(points, curve.theory, curve.choice, curve.value);
    Series amp = collect(points, "amp", curve.choice, curve.value);
    theory.label = curve.label;
    theory.label_x = curve.label_x;
    theory.label_below = curve.label_below;
    theory.colour = amp.colour = curve.colour;
    theory.style = curve.style;
    amp.style = curve.style == Series::Style::line ? Series::Style::dots : Series::Style::open_dots;
    if (!curve.name.empty()) {
        theory.name = "theory, " + curve.name;
        amp.name = "AMP, " + curve.name;
    }
    figure.series.push_back(std::move(theory));
    if (!amp.x.empty()) figure.series.push_back(std::move(amp));
}

Composition error_against_alpha(std::string title, std::string caption) {
    LineFigure figure{std::move(title), "α = n/d^2", "estimation error"};
    figure.caption = std::move(caption);
    return {std::move(figure)};
}

std::string describe_runs(const Points& points, Size size) {
    int dim = 0;
    std::set<std::uint64_t> seeds;
    for (const experiments::Point& point : points) {
        if (point.task.estimator != "amp") continue;
        dim = point.task.dim;
        seeds.insert(point.task.seed);
    }
    return fmt::format("d = {}, {} seeds{}", dim, seeds.size(), size == Size::quick ? " (quick)" : "");
}

}  // namespace bayesaim::figures
