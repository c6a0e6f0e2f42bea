// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bayesaim/core/table.hpp"
#include "bayesaim/core/text.hpp"
#include "bayesaim/experiments/results.hpp"
#include "bayesaim/figures/line_figure.hpp"
#include "bayesaim/numerics/statistics.hpp"

#include "program/commands.hpp"
#include "program/options.hpp"

namespace bayesaim::program {
namespace {

using experiments::Point;
using experiments::Setting;
using figures::Series;
using Points = std::vector<Point>;
using Settings = std::vector<const Setting*>;

struct Arguments : CommonArguments {
    std::string directory, x = "alpha", y = "error", by, picture;
    bool log_x = false, log_y = false;
};

std::vector<std::string> names(const Settings& settings) {
    std::vector<std::string> result;
    for (const Setting* setting : settings) result.push_back(setting->name);
    return result;
}

bool contains(const Settings& settings, const Setting* setting) {
    return std::ranges::find(settings, setting) != settings.end();
}

/// The settings that some point has; only those with numbers if asked.
Settings settings_of(const Points& points, bool numeric) {
    Settings result;
    for (const Setting& setting : experiments::setting_table()) {
        const bool hidden = setting.name == "spectrum_checksum" || setting.name == "token_storage";
        const bool number = setting.member.index() <= 2;
        const auto has = [&](const Point& point) { return states(point.task, setting); };
        if (!hidden && (number || !numeric) && std::ranges::any_of(points, has)) result.push_back(&setting);
    }
    return result;
}

const Setting* choose(std::string_view option, std::string_view name, const Settings& known) {
    return known[check_one_of(option, name, names(known))];
}

/// The names of the values of the finished points.
std::vector<std::string> values_of(const Points& points) {
    std::vector<std::string> result;
    for (const Point& point : points) {
        if (!point.outcome) continue;
        for (const auto& [name, value] : point.outcome->values) {
            if (std::ranges::find(result, name) == result.end()) result.push_back(name);
        }
    }
    return result;
}

double number(const experiments::Value& value) {
    const auto* whole = std::get_if<std::uint64_t>(&value);
    return whole ? static_cast<double>(*whole) : std::get<double>(value);
}

/// "width 0.5, dim 60": the values of these settings, as far as the task has them. Grids have rounding errors:
/// the 0.09999999999999999 of one is the 0.1 of another.
std::string spell(const experiments::Task& task, const Settings& settings) {
    std::vector<std::string> words;
    for (const Setting* setting : settings) {
        if (!states(task, *setting)) continue;
        const experiments::Value value = get(task, *setting);
        const auto* real = std::get_if<double>(&value);
        words.push_back(fmt::format("{} {}", setting->name,
                                    real ? fmt::format("{:.12g}", *real) : experiments::to_text(value)));
    }
    return fmt::format("{}", fmt::join(words, ", "));
}

/// Text as gnuplot shows it: names of files and studies may have characters that it would interpret.
std::string plain(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == '_') {
            result += ' ';
        } else if (c == '"' || c == '`') {
            result += '\'';
        } else if (c == '\\' || static_cast<unsigned char>(c) < ' ') {
            result += '/';
        } else {
            if (std::string_view("^{}@&~").find(c) != std::string_view::npos) result += "\\\\";
            result += c;
        }
    }
    return result;
}

/// What a picture shows.
struct Choice {
    const Setting* x;
    std::string y;
    Settings by, varying;
};

Choice make_choice(const Arguments& arguments, const Points& points) {
    Choice choice{
        choose("--x", arguments.x, settings_of(points, true)), arguments.y, {}, varying_settings(points)};
    check_one_of("--y", arguments.y, values_of(points));
    if (arguments.by.empty()) {
        for (const Setting* setting : choice.varying) {
            if (setting != choice.x && setting->name != "seed" && setting->name != "estimator")
                choice.by.push_back(setting);
        }
    } else {
        const Settings known = settings_of(points, false);
        for (const std::string_view name : split(arguments.by, ','))
            choice.by.push_back(choose("--by", name, known));
    }
    return choice;
}

/// One series per value of --by and estimator, in the order of the study.
std::vector<Series> make_series(const Points& points, const Choice& choice, const Arguments& arguments) {
    static constexpr const char* colours[] = {
        figures::colour::blue,   figures::colour::vermilion, figures::colour::green, figures::colour::orange,
        figures::colour::purple, figures::colour::sky,       figures::colour::black, figures::colour::grey};
    static const std::map<std::string, Series::Style> styles = {{"theory", Series::Style::line},
                                                                {"small-width", Series::Style::dashed_line},
                                                                {"erm-theory", Series::Style::dashed_line},
                                                                {"amp", Series::Style::dots},
                                                                {"gd", Series::Style::open_dots}};
    struct Curve {
        std::string by, estimator;
        std::map<double, std::vector<double>> values{};  // by x
    };
    std::vector<Curve> curves;
    std::vector<std::string> values_of_by;  // their colours are in this order
    for (const auto& [task, outcome] : points) {
        const auto y = outcome ? outcome->value(choice.y) : std::nullopt;
        if (!y || !states(task, *choice.x)) continue;
        const double x = number(get(task, *choice.x));
        if ((arguments.log_x && !(x > 0)) || (arguments.log_y && !(*y > 0))) continue;
        const std::string by = spell(task, choice.by);
        if (std::ranges::find(values_of_by, by) == values_of_by.end()) values_of_by.push_back(by);
        auto curve = std::ranges::find_if(curves, [&, &task = task](const Curve& other) {
            return other.by == by && other.estimator == task.estimator;
        });
        if (curve == curves.end()) curve = curves.insert(curves.end(), {by, task.estimator});
        curve->values[x].push_back(*y);
    }
    std::vector<Series> result;
    for (const Curve& curve : curves) {
        Series series;
        series.label = plain(curve.by.empty() ? curve.estimator : curve.estimator + ", " + curve.by);
        const auto style = styles.find(curve.estimator);
        series.style = style != styles.end() ? style->second : Series::Style::crosses;
        const auto colour = std::ranges::find(values_of_by, curve.by) - values_of_by.begin();
        series.colour = colours[static_cast<std::size_t>(colour) % std::size(colours)];
        bool scattered = false;
        for (const auto& [x, values] : curve.values) {
            const auto mean = numerics::mean_of(values);  // the numbers of outcomes are finite
            series.x.push_back(x);
            series.y.push_back(mean->value);
            series.error.push_back(mean->standard_error.value_or(0));
            scattered |= mean->standard_error.has_value();
        }
        if (!scattered || series.style <= Series::Style::dotted_line) series.error.clear();
        result.push_back(std::move(series));
    }
    return result;
}

/// The settings of the model, and the dimension, that all points share.
std::string title_of(const Points& points, const Choice& choice) {
    Settings shared;
    for (const Setting* setting : settings_of(points, false)) {
        const bool of_model = setting->owner != Setting::Owner::estimator || setting->name == "dim";
        if (of_model && setting != choice.x && setting->name != "estimator" &&
            setting->name != "integration_points" && !contains(choice.varying, setting))
            shared.push_back(setting);
    }
    std::string title;
    for (const Setting* setting : shared) {
        const auto has = [&](const Point& point) { return states(point.task, *setting); };
        const auto found = std::ranges::find_if(points, has);
        title += (title.empty() ? "" : ", ") + spell(found->task, {setting});
    }
    return plain(title);
}

/// What the dots are means over.
std::string caption_of(const Points& points, const Choice& choice) {
    std::map<std::string, std::set<std::uint64_t>> seeds;  // by estimator
    for (const Point& point : points) {
        if (states(point.task, find_row(experiments::setting_table(), "setting", "seed")))
            seeds[point.task.estimator].insert(point.task.seed);
    }
    std::size_t fewest = 0, most = 0;
    for (const auto& [estimator, of_estimator] : seeds) {
        fewest = fewest == 0 ? of_estimator.size() : std::min(fewest, of_estimator.size());
        most = std::max(most, of_estimator.size());
    }
    std::string caption;
    if (most > 1)
        caption =
            fmt::format("dots: mean over {} seeds, one standard error",
                        fewest < most ? fmt::format("{} to {}", fewest, most) : fmt::format("{}", most));
    std::vector<std::string> mixed;
    for (const Setting* setting : choice.varying) {
        if (setting != choice.x && !contains(choice.by, setting) && setting->name != "seed" &&
            setting->name != "estimator")
            mixed.push_back(setting->name);
    }
    if (!mixed.empty())
        caption += fmt::format("{}mean over {}", caption.empty() ? "" : "; ", fmt::join(mixed, ", "));
    return plain(caption);
}

int run(const Arguments& arguments) {
    namespace fs = std::filesystem;
    const fs::path directory = arguments.directory;
    const fs::path picture = arguments.picture.empty() ? directory / "plot.png" : fs::path(arguments.picture);
    figures::check_picture_name(picture, "--output");
    // The store is ahead of the provenance while a sweep runs.
    const experiments::Experiment experiment =
        experiments::read_provenance(directory / experiments::provenance_name).experiment;
    const Points points =
        points_of(experiment, experiments::read_records(directory / experiments::store_name));
    const auto finished = static_cast<std::size_t>(std::ranges::count_if(
        points, [](const Point& point) { return point.outcome && !point.outcome->failed(); }));
    if (finished == 0)
        throw_invalid("DIR", "a run directory with finished points", fmt::format("'{}'", directory.string()));

    const Choice choice = make_choice(arguments, points);
    figures::LineFigure figure{title_of(points, choice),
                               choice.x->name == "alpha" ? "α = n/d^2" : plain(choice.x->name),
                               choice.y == "error" ? "estimation error" : plain(choice.y)};
    figure.log_x = arguments.log_x;
    figure.log_y = arguments.log_y;
    figure.caption = caption_of(points, choice);
    figure.series = make_series(points, choice, arguments);
    if (figure.series.empty())
        throw InvalidArgument(fmt::format("no finished point has --x {} and --y {} that can be drawn",
                                          arguments.x, arguments.y));
    // The corner above a falling curve is free on linear axes only, and not for a long key.
    const std::size_t count = figure.series.size();
    if (count > 6 || figure.log_x || figure.log_y)
        figure.key = count > 12 ? "outside right top font \",7\"" : "outside right top";
    draw(figure, picture);
    Report report{"plot"};
    report.summary = {{"picture", picture.string()},
                      {"study", experiment.name},
                      {"series", figure.series.size()},
                      {"done", finished},
                      {"missing", points.size() - finished}};
    publish(report, arguments.format, "");
    return 0;
}

}  // namespace

void add_plot(Program& program) {
    auto [command, arguments] =
        program.add_command<Arguments>("plot", "Draw the results of a study, also while it runs", run);
    const std::vector<std::string> settings = names_of(experiments::setting_table());
    command.text("DIR", arguments.directory, "run directory of sweep or merge", "").required();
    command.text("--x", arguments.x, "the setting on the horizontal axis", "SETTING").values(settings);
    command.text("--y", arguments.y, "the value on the vertical axis, a column of results.csv", "VALUE");
    command
        .text("--by", arguments.by,
              "one colour per combination of these settings, comma-separated (default: the settings that\n"
              "vary, besides --x, estimator and seed)",
              "SETTINGS")
        .values(settings);
    command.text("--output", arguments.picture, "the picture (default: DIR/plot.png)", "FILE.png|svg|pdf");
    command.flag("--log-x", arguments.log_x, "logarithmic horizontal axis");
    command.flag("--log-y", arguments.log_y, "logarithmic vertical axis");
    arguments.add_without_seed_to(command, Arguments::Points::never_fail);
    command.footer(
        "Theory is drawn as lines; runs as dots, the mean over seeds with one standard error.\n"
        "Example:\n  bayesaim plot results/study --x alpha --y error --by width");
}

}  // namespace bayesaim::program
