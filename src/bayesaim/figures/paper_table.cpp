// SPDX-License-Identifier: MIT
#include <tuple>

#include <fmt/format.h>

#include "bayesaim/figures/paper_figure.hpp"

namespace bayesaim::figures {
namespace {

using enum Series::Style;

/// Strong recovery of softmax attention.
double softmax_recovery(double width, int tokens = 2) {
    experiments::Task task;
    task.width = width;
    task.tokens = tokens;
    return *strong_recovery(task);
}

Choice of_width(double width) {
    return [=](const experiments::Task& task) { return task.width == width; };
}

Choice of_tokens(int tokens) {
    return [=](const experiments::Task& task) { return task.tokens == tokens; };
}

Choice of_channel(const std::string& channel) {
    return [=](const experiments::Task& task) { return task.channel == channel; };
}

Curve curve_of_width(double width, const char* colour) {
    const std::string name = fmt::format("width {:g}", width);
    return {fmt::format("ρ = {:g}", width), colour, of_width(width), line, "theory", name};
}

// ---- hardmax ----------------------------------------------------------------------------------------------

// Hardmax hardly sees the scale of S. Damped AMP overshoots it and comes back by 2% an iteration; undamped AMP is
// there after 30 iterations.
constexpr const char* hardmax_study = R"(
channel = "hardmax"
[[run]]
estimator = "theory"
width = [0.1, 0.5, 2]
alpha = "log:0.05:20:<24|60>"
[[run]]
estimator = "theory"
channel = "hardmax-as-printed"
width = 0.5
alpha = "log:0.05:20:<24|60>"
[[run]]
estimator = "amp"
width = <0.5|[0.1, 0.5, 2]>
alpha = <[0.2, 0.5, 1]|[0.1, 0.2, 0.5, 1, 2, 5]>
damping = 0
max_iterations = 60
dim = 100
seeds = <3|16>
)";

Composition hardmax(const Points& points, Size size) {
    Composition result =
        error_against_alpha("Hardmax attention, T = 2: the published curve and the correct one",
                            "dots: AMP, " + describe_runs(points, size) + ", one standard error");
    LineFigure& figure = result.figure;
    figure.log_x = figure.log_y = true;
    figure.key = "bottom left";
    const auto corrected = [](double width) -> Choice {
        return [=](const auto& task) { return task.width == width && task.channel == "hardmax"; };
    };
    for (const auto& [width, colour] :
         {std::pair{0.1, colour::green}, {0.5, colour::blue}, {2, colour::black}}) {
        Curve curve = curve_of_width(width, colour);
        curve.choice = corrected(width);
        curve.label_x = width == 0.5 ? 12 : 4;  // the dots of width 0.1 end next to its line
        curve.label_below = width < 1;
        add_curve(figure, points, curve);
    }
    Curve published{"ρ = 0.5 as published", colour::vermilion, of_channel("hardmax-as-printed"), dashed_line};
    published.label_x = 4;
    add_curve(figure, points, published);
    add_headline(result, "hardmax error at alpha = {:g}, width 0.5 (AMP; published: 0.3156)", points, "amp",
                 [&](const experiments::Task& task) { return task.alpha == 1 && corrected(0.5)(task); });
    return result;
}

constexpr const char* hardmax_small_width_study = R"(
estimator = "small-width"
alpha = "0.1:3:<59|117>"
channel = ["hardmax", "hardmax-as-printed"]
[[run]]
)";

Composition hardmax_small_width(const Points& points, Size) {
    Composition result =
        error_against_alpha("Hardmax attention of small width, T = 2", "theory, ρ → 0 with α/ρ fixed");
    LineFigure& figure = result.figure;
    figure.x_label = "α/ρ";
    figure.x_lowest = 0;
    add_curve(figure, points, {"corrected", colour::blue, of_channel("hardmax"), line, "small-width"});
    add_curve(
        figure, points,
        {"as published", colour::vermilion, of_channel("hardmax-as-printed"), dashed_line, "small-width"});
    // Weak recovery, 1/(4F) at q = 0 (docs/theory.md): with the exact score, and with the score of the paper.
    figure.markers = {{0.403410629038, "weak recovery 0.4034", colour::blue},
                      {0.5632675, "as published 0.5633", colour::vermilion}};
    return result;
}

constexpr const char* hardmax_tokens_study = R"(
channel = "hardmax"
width = 0.5
[[run]]
estimator = "theory"
tokens = [2, 3, 4, 5, 6]
alpha = "log:0.02:20:<24|60>"
[[run]]
estimator = "amp"
tokens = [3, 4]
alpha = <[0.1, 0.3]|[0.05, 0.1, 0.2, 0.5, 1]>
damping = 0
max_iterations = 60
dim = <50|100>
seeds = <2|8>
)";

Composition hardmax_tokens(const Points& points, Size size) {
    Composition result = error_against_alpha("Hardmax attention, ρ = 0.5: more tokens tell more",
                                             "dots: AMP, " + describe_runs(points, size));
    result.figure.log_x = result.figure.log_y = true;
    result.figure.key = "bottom left";
    const char* colours[] = {colour::black, colour::blue, colour::vermilion, colour::green, colour::purple};
    for (int tokens = 2; tokens <= 6; ++tokens) {
        Curve curve{fmt::format("T = {}", tokens), colours[tokens - 2], of_tokens(tokens)};
        curve.name = fmt::format("{} tokens", tokens);
        add_curve(result.figure, points, curve);
        if (tokens == 3 || tokens == 4)
            add_headline(result,
                         fmt::format("hardmax T = {} error at alpha = {{:g}}, width 0.5 (AMP)", tokens),
                         points, "amp", curve.choice);
    }
    return result;
}

// ---- softmax ----------------------------------------------------------------------------------------------

constexpr const char* softmax_widths_study = R"(
estimator = "theory"
width = [0.1, 0.3, 0.5, 1, 2]
alpha = "0.01x:1.1x:<110|219>"
[[run]]
)";

Composition softmax_widths(const Points& points, Size) {
    Composition result = error_against_alpha("Softmax attention, T = 2: Bayes-optimal error",
                                             "vertical lines: strong recovery");
    const std::pair<double, const char*> widths[] = {{0.1, colour::green},
                                                     {0.3, colour::vermilion},
                                                     {0.5, colour::blue},
                                                     {1, colour::purple},
                                                     {2, colour::black}};
    for (const auto& [width, colour] : widths) {
        const double threshold = softmax_recovery(width);
        Curve curve = curve_of_width(width, colour);
        curve.label_x = threshold * (width == 0.5 ? 0.86 : width < 2 ? 0.75 : 0.4);
        curve.label_below = width < 2;
        add_curve(result.figure, points, curve);
        if (width <= 1) result.figure.markers.push_back({threshold, "", colour});
    }
    return result;
}

constexpr const char* softmax_study = R"(
width = 0.5
[[run]]
estimator = "theory"
alpha = "0.02x:1.2x:<60|119>"
[[run]]
estimator = "amp"
tokens = [2, 3]
alpha = "<0.2x:1.2x:5|0.1x:1.2x:12>"
max_iterations = <300|500>
dim = 100
seeds = <4|16>
[[run]]
estimator = "gd"
alpha = "<0.2x:1.2x:5|0.1x:1.2x:12>"
dim = 100
seeds = 2
starts = <4|32>
steps = <500|3000>
precision = "float"
)";

Composition softmax(const Points& points, Size size) {
    Composition result =
        error_against_alpha("Softmax attention, ρ = 0.5: theory and algorithms",
                            fmt::format("vertical line: strong recovery;  {};  averages over {} starts",
                                        describe_runs(points, size), size == Size::full ? 32 : 4));
    LineFigure& figure = result.figure;
    figure.x_label = "α (T^2 + T - 2)";
    const auto factor = [](int tokens) { return static_cast<double>(tokens * tokens + tokens - 2); };
    const auto add = [&](const char* label, const char* name, const char* estimator, const char* value,
                         int tokens, const char* colour, Series::Style style) {
        Series series = collect(points, estimator, of_tokens(tokens), value, factor(tokens));
        series.label = label;
        series.name = name;
        series.colour = colour;
        series.style = style;
        figure.series.push_back(std::move(series));
    };
    add("Bayes-optimal", "theory", "theory", "error", 2, colour::black, line);
    add("AMP, T = 2", "AMP, 2 tokens", "amp", "error", 2, colour::blue, dots);
    add("AMP, T = 3", "AMP, 3 tokens", "amp", "error", 3, colour::green, open_dots);
    add("gradient descent", "GD", "gd", "error", 2, colour::vermilion, crosses);
    add("averaged gradient descent", "AGD", "gd", "averaged_error", 2, colour::purple, triangles);
    figure.markers = {{softmax_recovery(0.5) * factor(2), "", colour::grey}};
    const auto add_result = [&](const std::string& name, const char* estimator, const char* value) {
        add_headline(result, "softmax error at alpha = {:.4f}, width 0.5 (" + name + ")", points, estimator,
                     of_tokens(2), value);
    };
    add_result("AMP", "amp", "error");
    add_result("gradient descent", "gd", "error");
    add_result("averaged gradient descent", "gd", "averaged_error");
    return result;
}

constexpr const char* many_tokens_study = R"(
tokens = [4, 5]
width = 0.5
[[run]]
estimator = "theory"
alpha = "0.02x:1.1x:<55|109>"
[[run]]
estimator = "amp"
alpha = "<0.3x:0.9x:3|0.1x:0.9x:9>"
dim = <100|120>
seeds = <4|16>
)";

Composition many_tokens(const Points& points, Size size) {
    Composition result =
        error_against_alpha("Softmax attention with more tokens, ρ = 0.5",
                            "vertical lines: strong recovery;  dots: AMP, " + describe_runs(points, size));
    for (const auto& [tokens, colour, style] :
         {std::tuple{4, colour::blue, line}, {5, colour::vermilion, dashed_line}}) {
        const double threshold = softmax_recovery(0.5, tokens);
        Curve curve{fmt::format("T = {}", tokens), colour, of_tokens(tokens), style};
        curve.name = fmt::format("{} tokens", tokens);
        curve.label_x = 0.5 * threshold;
        curve.label_below = true;
        add_curve(result.figure, points, curve);
        result.figure.markers.push_back({threshold, "", colour});
        add_headline(result, fmt::format("softmax T = {} error at alpha = {{:.4f}}, width 0.5 (AMP)", tokens),
                     points, "amp", curve.choice);
    }
    return result;
}

constexpr const char* softmax_small_width_study = R"(
estimator = "small-width"
tokens = [2, 3, 4]
alpha = "0.005:0.6:<120|239>"
[[run]]
)";

Composition softmax_small_width(const Points& points, Size) {
    Composition result = error_against_alpha(
        "Softmax attention of small width",
        "theory, ρ → 0 with α/ρ fixed;  weak recovery at 1/(T^2+T-2), strong recovery at twice that");
    result.figure.x_label = "α/ρ";
    for (const auto& [tokens, colour, style] : {std::tuple{2, colour::blue, line},
                                                {3, colour::vermilion, dashed_line},
                                                {4, colour::black, dotted_line}}) {
        const double weak = 1.0 / (tokens * tokens + tokens - 2);
        Curve curve{fmt::format("T = {}", tokens), colour, of_tokens(tokens), style, "small-width"};
        curve.label_x = 1.45 * weak;
        add_curve(result.figure, points, curve);
        result.figure.markers.push_back({weak, "", colour});
    }
    return result;
}

// ---- other channels ---------------------------------------------------------------------------------------

constexpr const char* linear_study = R"(
channel = "linear"
[[run]]
estimator = "theory"
width = [0.1, 0.5, 1]
alpha = "0.01x:1.1x:<55|110>"
[[run]]
estimator = "amp"
width = [0.5, 1]
alpha = "<0.2x:0.9x:4|0.2x:0.9x:8>"
dim = 100
seeds = <4|16>
)";

Composition linear(const Points& points, Size size) {
    Composition result =
        error_against_alpha("Linear attention, T = 2: recovery by counting",
                            "lines: T(T+1)/2 α = ρ - ρ^2/2, as many equations as unknowns;  dots: AMP, " +
                                describe_runs(points, size));
    for (const auto& [width, colour] :
         {std::pair{0.1, colour::green}, {0.5, colour::blue}, {1, colour::black}}) {
        const double counting = (width - width * width / 2) / 3;
        Curve curve = curve_of_width(width, colour);
        curve.label_x = (width < 1 ? 0.85 : 0.6) * counting;
        curve.label_below = width < 1;
        add_curve(result.figure, points, curve);
        result.figure.markers.push_back({counting, "", colour});
    }
    add_headline(result, "linear error at alpha = {:.3f}, width 0.5 (AMP)", points, "amp", of_width(0.5));
    return result;
}

constexpr const char* deep_study = R"(
channel = "deep-softmax"
layers = 2
width = 0.5
[[run]]
estimator = "theory"
alpha = "0.03x:1.11x:<19|55>"
integration_points = <128|4096>
[[run]]
estimator = "amp"
alpha = "<0.3x:0.9x:3|0.2x:1.1x:10>"
dim = <60|100>
seeds = <3|8>
max_iterations = 80
tolerance = 1e-5
)";

Composition deep(const Points& points, Size size) {
    Composition result =
        error_against_alpha("Softmax attention of two layers, T = 2, ρ = 0.5",
                            "vertical line: strong recovery, 2(ρ - ρ^2/2)/(T(T+1)/2 - 1);  dots: AMP, " +
                                describe_runs(points, size));
    result.figure.y_label = "estimation error of the layer";
    const Choice all = [](const experiments::Task&) { return true; };
    add_curve(result.figure, points,
              {"first layer", colour::blue, all, line, "theory", "layer 1", "error_1"});
    add_curve(result.figure, points,
              {"second layer", colour::vermilion, all, dashed_line, "theory", "layer 2", "error_2"});
    result.figure.markers = {{0.375, "", colour::grey}};
    add_headline(result, "two layers, sum of errors at alpha = {:.3f}, width 0.5 (AMP)", points, "amp", all);
    return result;
}

// ---- untied attention -------------------------------------------------------------------------------------

constexpr const char* untied_study = R"(
width = 0.5
tokens = 3
attention = ["tied", "cross", "self", "causal"]
[[run]]
estimator = "theory"
alpha = "0.05x:1.1x:<22|106>"
[[run]]
estimator = "amp"
alpha = "<0.3x:0.7x:3|0.1x:0.9x:9>"
dim = <50|100>
seeds = <2|8>
)";

constexpr const char* untied_hardmax_study = R"(
channel = "hardmax"
width = 0.5
attention = ["tied", "cross", "self", "causal"]
[[run]]
estimator = "theory"
alpha = "log:0.05:20:<13|60>"
[[run]]
estimator = "amp"
alpha = <[0.2, 1]|[0.1, 0.2, 0.5, 1, 2]>
damping = 0
max_iterations = 60
dim = <50|100>
seeds = <2|8>
)";

/// One curve for each kind of attention, and the headline of each at a middle alpha.
Composition add_attentions(Composition result, const Points& points) {
    for (const auto& [attention, colour, style] : {std::tuple{"tied", colour::black, line},
                                                   {"cross", colour::blue, line},
                                                   {"self", colour::vermilion, dashed_line},
                                                   {"causal", colour::green, line}}) {
        const Choice choice = [name = std::string(attention)](const auto& task) {
            return task.attention == name;
        };
        add_curve(result.figure, points, {attention, colour, choice, style, "theory", attention});
        add_headline(result,
                     fmt::format("{} attention, error at alpha = {{:.4f}}, width 0.5 (AMP)", attention),
                     points, "amp", choice);
    }
    return result;
}

Composition untied(const Points& points, Size size) {
    return add_attentions(error_against_alpha("Softmax attention, T = 3, ρ = 0.5: what tying buys",
                                              "self and causal: theory of two variances;  dots: AMP, " +
                                                  describe_runs(points, size)),
                          points);
}

Composition untied_hardmax(const Points& points, Size size) {
    Composition result = error_against_alpha(
        "Hardmax attention, T = 2, ρ = 0.5: what tying buys",
        "self and causal: theory of two variances;  dots: AMP, " + describe_runs(points, size));
    result.figure.log_x = result.figure.log_y = true;
    result.figure.key = "bottom left";
    return add_attentions(std::move(result), points);
}

}  // namespace

const std::vector<PaperFigure>& paper_figures() {
    static const std::vector<PaperFigure> table = [] {
        std::vector<PaperFigure> rows = {
            {"hardmax", "hardmax error against alpha, corrected and as published, with AMP", hardmax_study,
             hardmax},
            {"hardmax-small-width", "hardmax error at small width against alpha/rho, with weak recovery",
             hardmax_small_width_study, hardmax_small_width},
            {"hardmax-tokens", "hardmax error with two to six tokens, with AMP for three and four",
             hardmax_tokens_study, hardmax_tokens},
            {"softmax-widths", "softmax error for several widths, with strong-recovery thresholds",
             softmax_widths_study, softmax_widths},
            {"softmax", "softmax error: theory, AMP, gradient descent and its average", softmax_study,
             softmax},
            {"linear", "linear error with the thresholds of counting, with AMP", linear_study, linear},
            {"many-tokens", "softmax error with four and five tokens, with AMP", many_tokens_study,
             many_tokens},
            {"softmax-small-width", "softmax error at small width against alpha/rho",
             softmax_small_width_study, softmax_small_width},
            // several layers, and separate queries and keys, which the paper leaves open
            {"deep", "two layers of softmax attention: which one is learned first, with AMP", deep_study,
             deep},
            {"untied", "softmax attention: tied, cross, self and causal, with AMP", untied_study, untied},
            {"untied-hardmax", "hardmax attention: tied, cross, self and causal, with AMP",
             untied_hardmax_study, untied_hardmax}};
        for (PaperFigure& figure : training_figures()) rows.push_back(std::move(figure));
        return rows;
    }();
    return table;
}

}  // namespace bayesaim::figures
