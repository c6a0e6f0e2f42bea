// SPDX-License-Identifier: MIT
// Pictures of studies.
#include <gtest/gtest.h>

#include "program.hpp"

namespace {

using cli::bayesaim;
using cli::read;
using cli::Workplace;

/// A run directory with two widths, theory and AMP.
std::string run_study(const Workplace& place) {
    const std::string file = place.write("study.toml", R"(
width = [0.5, 1]
[[run]]
estimator = "theory"
alpha = [0.05, 0.1, 0.15]
[[run]]
estimator = "amp"
alpha = [0.05, 0.1]
dim = [20, 30]
seeds = 3
)");
    EXPECT_EQ(bayesaim("sweep " + file + " --quiet --output " + place.file("out")).exit_code, 0);
    return place.file("out");
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
    return found;
}

TEST(PlotCommand, HasOneSeriesPerValueAndEstimator) {
    const Workplace place;
    const std::string directory = run_study(place);
    const auto plot = [&](const std::string& options) {
        const auto run = bayesaim("plot " + directory + " --format json " + options);
        EXPECT_EQ(run.exit_code, 0) << run.err;
        return run.json();
    };
    // Two widths: a line each, and dots for both dimensions.
    const auto all = plot("");
    EXPECT_EQ(all["series"], 6);
    EXPECT_EQ(all["picture"], directory + "/plot.png");
    EXPECT_EQ(all["study"], "study");
    EXPECT_EQ(all["missing"], 0);
    EXPECT_GT(read(directory + "/plot.png").size(), 2000U);
    EXPECT_EQ(plot("--by width")["series"], 4);
    EXPECT_EQ(plot("--x width --by alpha,dim")["series"], 3 + 4);
    EXPECT_EQ(plot("--x dim --y iterations --by width")["series"], 2);  // theory has no dimension
    EXPECT_EQ(plot("--y predicted_error --log-x --log-y")["series"], 4);
}

TEST(PlotCommand, ThePictureTellsWhatItShows) {
    const Workplace place;
    const std::string picture = place.file("a.svg");
    const auto run =
        bayesaim("plot " + run_study(place) + " --x alpha --y error --by width --output " + picture);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const std::string svg = read(picture);
    for (const char* text :
         {"theory, width 0.5", "theory, width 1", "amp, width 0.5", "amp, width 1", "channel softmax",
          "tokens 2", "estimation error", "mean over 3 seeds", "mean over dim"})
        EXPECT_NE(svg.find(text), std::string::npos) << text;
    EXPECT_EQ(count(svg, "dim 20"), 0U);
}

/// In gnuplot's SVG a dot is <use xlink:href='#gpPt6' transform=.. />.
TEST(PlotCommand, ACurveOfOnePointIsAPoint) {
    const Workplace place;
    const std::string picture = place.file("a.svg");
    const auto points = [&](const std::string& alpha) {
        const std::string file =
            place.write("one.toml", "estimator = 'theory'\nwidth = 0.5\nalpha = " + alpha);
        const std::string directory = place.file("out" + std::to_string(alpha.size()));
        EXPECT_EQ(bayesaim("sweep " + file + " --quiet --output " + directory).exit_code, 0);
        EXPECT_EQ(bayesaim("plot " + directory + " --output " + picture).exit_code, 0);
        return count(read(picture), "#gpPt6' transform");
    };
    EXPECT_EQ(points("[0.1]"), 2U);  // the point, and its key
    EXPECT_EQ(points("[0.1,0.2]"), 0U);
}

/// 0.02:0.3:15 has 0.09999999999999999.
TEST(PlotCommand, ValuesOfGridsAreNamedWithoutTheirRoundoff) {
    const Workplace place;
    const std::string picture = place.file("a.svg"), directory = place.file("out");
    const std::string file = place.write("grid.toml", R"(
estimator = "theory"
width = [0.5, 1]
[[run]]
alpha = "0.02:0.3:15"
)");
    ASSERT_EQ(bayesaim("sweep " + file + " --quiet --output " + directory).exit_code, 0);
    ASSERT_EQ(bayesaim("plot " + directory + " --x width --by alpha --output " + picture).exit_code, 0);
    const std::string svg = read(picture);
    EXPECT_EQ(count(svg, "0.0999"), 0U);
    EXPECT_GT(count(svg, "theory, alpha 0.1<"), 0U);
}

TEST(PlotCommand, DrawsAStudyThatIsNotFinished) {
    const Workplace place;
    const std::string file =
        place.write("study.toml", "estimator = 'theory'\nalpha = [0.1, 0.12, 0.14, 0.16]\n");
    ASSERT_EQ(bayesaim("sweep " + file + " --quiet --shard 1/2 --output " + place.file("out")).exit_code, 0);
    const auto run = bayesaim("plot " + place.file("out") + " --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.json()["done"], 2);
    EXPECT_EQ(run.json()["missing"], 2);
}

/// A name in a study must not be a command of gnuplot.
TEST(PlotCommand, NamesAreNotInterpreted) {
    const Workplace place;
    const std::string mark = place.file("mark");
    place.write("a`touch mark`\"_.txt", "1\n2\n3\n");
    place.write("b.txt", "1\n2\n4\n");
    const std::string file = place.write("study.toml",
                                         "estimator = 'theory'\nprior = 'spectrum'\nalpha = [0.1, 0.2]\n"
                                         "spectrum = ['''a`touch mark`\"_.txt''', 'b.txt']\n");
    const auto sweep = bayesaim("sweep " + file + " --quiet --output " + place.file("out"));
    ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
    const auto run = bayesaim("plot " + place.file("out") + " --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.json()["series"], 2);
    EXPECT_FALSE(std::filesystem::exists(mark));
    EXPECT_FALSE(std::filesystem::exists("mark"));
}

TEST(PlotCommand, MistakesAreOneLine) {
    const Workplace place;
    const std::string directory = run_study(place), plot = "plot " + directory;
    const auto expect = [](const std::string& arguments, const std::string& complaint) {
        cli::expect_bad_usage({arguments.c_str(), complaint.c_str()});
    };
    expect(plot + " --x alhpa", "--x must be one of width, tokens, beta, ");
    expect(plot + " --x channel", "--x must be one of width");
    expect(plot + " --y eror", "--y must be one of error, ");
    expect(plot + " --by width,colour", "--by must be one of estimator, prior, width, ");
    expect(plot + " --output a.bmp", "--output must be named *.png, *.svg or *.pdf, got 'a.bmp'");
    expect("plot " + place.file("none"), "cannot read provenance file");
    const std::string empty =
        place.write("empty.toml", "estimator = 'amp'\nwidth = 0.5\nalpha = 0.1\ndim = 2147483647\n");
    bayesaim("sweep " + empty + " --quiet --output " + place.file("empty"));
    expect("plot " + place.file("empty"), "DIR must be a run directory with finished points");
}

}  // namespace
