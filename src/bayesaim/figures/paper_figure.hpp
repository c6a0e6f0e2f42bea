// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bayesaim/experiments/sweep.hpp"
#include "bayesaim/figures/line_figure.hpp"
#include "bayesaim/numerics/statistics.hpp"

/// The figures of the paper: which runs each one needs, as a study, and how their results are drawn.
namespace bayesaim::figures {

/// quick: smaller dimension and fewer seeds, a minute at most; full: the sizes of the paper.
enum class Size { quick, full };

/// A number that a reader would look for, with its expected value.
struct Headline {
    std::string what;
    numerics::Mean measured;
    double theory = 0;
};

struct Composition {
    LineFigure figure;
    std::vector<Headline> headlines{};
};

using Points = std::vector<experiments::Point>;

struct PaperFigure {
    std::string name;
    std::string summary;
    std::string study;  ///< in TOML, as a user would write it; <4|16> is 4 if quick, 16 if full
    std::function<Composition(const Points&, Size)> compose;
};

/// Each figure of paper_table.cpp and training_figures.cpp.
const std::vector<PaperFigure>& paper_figures();
/// Those that show what training reaches.
std::vector<PaperFigure> training_figures();

/// The files that were drawn, and the runs behind them.
struct Drawn {
    Composition composition;
    experiments::SweepResult sweep;
    std::vector<std::filesystem::path> files;  ///< pictures first
};

/// Runs the missing points of the study in `directory`/runs/NAME-SIZE. Writes NAME.pdf, .svg, .png, their
/// numbers as NAME.csv, the gnuplot script, the study as NAME.toml and the provenance as NAME.json to
/// `directory`. Draws nothing if the sweep was stopped.
Drawn draw_paper_figure(const PaperFigure& figure, Size size, const std::filesystem::path& directory,
                        const experiments::SweepOptions& options);

/// The time that the missing points take, from those that are done or from operation counts.
double estimated_seconds(const PaperFigure& figure, Size size, const std::filesystem::path& directory,
                         const experiments::SweepOptions& options);

// ---- for the figures themselves ---------------------------------------------------------------------------

/// Whether a point belongs to a series.
using Choice = std::function<bool(const experiments::Task&)>;

/// The mean of a value over the seeds of each alpha, in the order of alpha, with its standard error if there
/// are several seeds; x is alpha times a factor.
Series collect(const Points& points, const std::string& estimator, const Choice& choice,
               std::string_view value = "error", double x_factor = 1);

/// A line of theory, and dots for the runs of AMP at the same settings, if there are any.
struct Curve {
    std::string label;  ///< of the line
    const char* colour;
    Choice choice;
    Series::Style style = Series::Style::line;  ///< of the line; the dots are filled with a solid line only
    std::string theory = "theory";              ///< its estimator
    std::string name{};  ///< in tables of the numbers, after "theory, " and "AMP, "; the label if empty
    std::string value = "error";
    std::optional<double> label_x{};
    bool label_below = false;
};
void add_curve(LineFigure& figure, const Points& points, const Curve& curve);

/// Adds a headline for the measured point in the middle of a curve, with the theory at the same point. Adds
/// none if runs failed and there is no such point. `what` has braces in the place of alpha.
void add_headline(Composition& composition, std::string_view what, const Points& points,
                  const std::string& estimator, Choice choice, std::string_view value = "error");

/// A figure of the estimation error, still without curves.
Composition error_against_alpha(std::string title, std::string caption);

/// A caption for the runs of AMP, such as "d = 60, 4 seeds (quick)".
std::string describe_runs(const Points& points, Size size);

}  // namespace bayesaim::figures
