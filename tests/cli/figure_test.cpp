// SPDX-License-Identifier: MIT
// Every figure of the paper, in its quick size: all its files, and the numbers in them against theory.
#include <cmath>
#include <csignal>
#include <cstdio>
#include <map>

#include <gtest/gtest.h>

#include "bayesaim/figures/paper_figure.hpp"

#include "program.hpp"

namespace {

using cli::bayesaim;

struct Sample {
    double x = 0, y = 0, standard_error = 0;
};
using Table = std::map<std::string, std::vector<Sample>>;

/// "name",x,y,standard_error
Table read_table(const std::string& file) {
    Table table;
    std::istringstream lines(cli::read(file));
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(line, "series,x,y,standard_error");
    while (std::getline(lines, line)) {
        const std::size_t end = line.find("\",");
        Sample sample;
        std::istringstream numbers(line.substr(end + 2));
        char comma = 0;
        numbers >> sample.x >> comma >> sample.y >> comma >> sample.standard_error;
        table[line.substr(1, end - 1)].push_back(sample);
    }
    return table;
}

/// Linear interpolation in logarithms of x and y where both are positive.
double value_at(const std::vector<Sample>& curve, double x) {
    for (std::size_t i = 1; i < curve.size(); ++i) {
        const Sample &low = curve[i - 1], &high = curve[i];
        if (x > high.x * (1 + 1e-12)) continue;
        if (high.y <= 0) return low.y + (high.y - low.y) * (x - low.x) / (high.x - low.x);
        const double t = std::log(x / low.x) / std::log(high.x / low.x);
        return std::exp((1 - t) * std::log(low.y) + t * std::log(high.y));
    }
    ADD_FAILURE() << "nothing at " << x;
    return 0;
}

/// All figures of the list: a new figure is tested as soon as it is added.
std::vector<std::string> figure_names() {
    std::vector<std::string> names;
    for (const auto& figure : ::bayesaim::figures::paper_figures()) names.push_back(figure.name);
    return names;
}

class Figure : public testing::TestWithParam<std::string> {};

TEST_P(Figure, HasAllItsFilesAndItsDotsAreNextToTheory) {
    const cli::Workplace place;
    const std::string name = GetParam(), folder = place.file("figures");
    const auto run = bayesaim("figure " + name + " --quick --format json --output " + folder);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto json = run.json();
    EXPECT_EQ(json["failed"], 0);
    EXPECT_LE(json["not_converged"].get<double>(), 0.15 * json["runs"].get<double>());
    for (const char* ending : {".pdf", ".svg", ".png", ".csv", ".gnuplot", ".json"}) {
        EXPECT_GT(cli::read(folder + "/" + name + ending).size(), 500U) << ending;
    }
    EXPECT_TRUE(nlohmann::json::parse(cli::read(folder + "/" + name + ".json")).contains("bayesaim"));

    // The study is there to be changed and run.
    const std::string study = folder + "/" + name + ".toml";
    EXPECT_TRUE(cli::read(study).starts_with("# ")) << cli::read(study);
    EXPECT_NE(cli::read(study).find("bayesaim sweep " + study), std::string::npos);
    const auto plan = bayesaim("sweep " + study + " --dry-run --format json --output " + place.file("none"));
    ASSERT_EQ(plan.exit_code, 0) << plan.err;
    EXPECT_EQ(plan.json()["total"], json["runs"]);

    const Table table = read_table(folder + "/" + name + ".csv");
    for (const auto& [series, samples] : table) {
        if (!series.starts_with("AMP")) continue;
        const auto own = table.find("theory" + series.substr(3));
        const auto& theory = own == table.end() ? table.at("theory") : own->second;
        for (const Sample& sample : samples) {
            const double expected = value_at(theory, sample.x);
            // d = 60 to 100: a few percent of finite size, and slow convergence next to recovery.
            EXPECT_NEAR(sample.y, expected, 4.5 * sample.standard_error + 0.08 * expected + 0.01)
                << name << ", " << series << " at " << sample.x;
        }
    }
    // A second call computes no run and draws the same numbers.
    const std::string csv = cli::read(folder + "/" + name + ".csv");
    bayesaim("figure " + name + " --quick --quiet --output " + folder);
    EXPECT_EQ(cli::read(folder + "/" + name + ".csv"), csv);
}

INSTANTIATE_TEST_SUITE_P(Paper, Figure, testing::ValuesIn(figure_names()), [](const auto& figure) {
    std::string name = figure.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

/// The claim of each picture, in numbers.
TEST(FigureNumbers, SmallWidthCurvesLeaveOneAtWeakRecovery) {
    const cli::Workplace place;
    ASSERT_EQ(bayesaim("figure hardmax-small-width --quiet --output " + place.file("f")).exit_code, 0);
    const Table table = read_table(place.file("f/hardmax-small-width.csv"));
    for (const auto& [series, weak] : {std::pair("corrected", 0.4034), std::pair("as published", 0.5633)}) {
        for (const Sample& sample : table.at(series)) {
            if (sample.x < weak - 1e-3) {
                EXPECT_NEAR(sample.y, 1, 1e-6) << series << " at " << sample.x;
            }
            if (sample.x > weak + 0.05) {
                EXPECT_LT(sample.y, 0.999) << series << " at " << sample.x;
            }
        }
    }
}

TEST(FigureCommand, AnInterruptedFigureSaysHowManyPointsAreKept) {
    const cli::Workplace place;
    const std::string folder = place.file("f"), store = folder + "/runs/softmax-quick/runs.store",
                      out = place.file("out"), err = place.file("err");
    const pid_t child = fork();
    if (child == 0) {
        if (!std::freopen(out.c_str(), "w", stdout) || !std::freopen(err.c_str(), "w", stderr)) _exit(126);
        execl(BAYESAIM_PROGRAM, BAYESAIM_PROGRAM, "figure", "softmax", "--output", folder.c_str(), nullptr);
        _exit(127);
    }
    const auto records = [&] {
        const std::string text = cli::read(store);
        return std::count(text.begin(), text.end(), '\n') - 1;
    };
    for (int i = 0; i < 3000 && records() < 3; ++i) usleep(10'000);
    kill(child, SIGINT);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 130);
    const auto kept = std::to_string(records());
    EXPECT_NE(cli::read(err).find("interrupted; " + kept + " of "), std::string::npos) << cli::read(err);
    EXPECT_NE(cli::read(err).find("points are kept"), std::string::npos) << cli::read(err);
    EXPECT_EQ(cli::read(out).find("pictures"), std::string::npos) << cli::read(out);
}

/// The name stands in the key, where it can be read: not on the map, which does not fill the picture here.
TEST(PhasePicture, NamesItsLineIfItIsInThePicture) {
    const cli::Workplace place;
    const auto picture = [&](const std::string& alpha) {
        const auto run = bayesaim("phase --width 0.1,0.5,1 --quiet --alpha " + alpha + " --plot " +
                                  place.file("phase.svg"));
        EXPECT_EQ(run.exit_code, 0) << run.err;
        return cli::read(place.file("phase.svg"));
    };
    const std::string svg = picture("0.1x:1.2x:4");
    const std::size_t text = svg.find(">strong recovery<");
    ASSERT_NE(text, std::string::npos);
    EXPECT_EQ(svg.substr(svg.rfind("fill=", text), 12), "fill=\"black\"");
    EXPECT_EQ(picture("0.001:0.01:4").find("strong recovery"), std::string::npos);
}

TEST(FigureCommand, ListsWhatItKnows) {
    const auto run = bayesaim("figure list --format json");
    ASSERT_EQ(run.exit_code, 0);
    const auto points = run.json()["points"];
    EXPECT_GE(points.size(), 7U);
    for (const auto& point : points) EXPECT_FALSE(point["summary"].get<std::string>().empty());
}

TEST(FigureCommand, RejectsNonsense) {
    cli::expect_bad_usage({"figure nothing", "figure must be one of hardmax"});
    cli::expect_bad_usage({"figure hardmax --quick --full", "--quick cannot be combined with --full"});
    cli::expect_bad_usage({"figure softmax-widths --output /proc/nowhere", "/proc/nowhere"});
}

}  // namespace
