// SPDX-License-Identifier: MIT
// --prior power-law in the commands.
#include <cmath>

#include <gtest/gtest.h>

#include "program.hpp"

namespace {

using cli::bayesaim;

double error_of(const std::string& arguments) {
    const auto run = bayesaim("theory --alpha 0.05 --format json " + arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.json()["points"][0]["estimation_error"];
}

TEST(PowerLawOption, HasExponentWidthCutoffAndScale) {
    const auto run = bayesaim(
        "theory --prior power-law --exponent 1.5 --cutoff 0.01 --width 0.5 --scale 2 --alpha 0.05 --format "
        "json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto configuration = run.json()["configuration"];
    EXPECT_EQ(configuration["prior"], "power-law");
    EXPECT_EQ(configuration["exponent"], 1.5);
    EXPECT_EQ(configuration["cutoff"], 0.01);
    EXPECT_EQ(configuration["width"], 0.5);
    const double one = error_of("--prior power-law --exponent 1.5 --cutoff 0.01 --width 0.5");
    EXPECT_NEAR(run.json()["points"][0]["estimation_error"].get<double>(), 4 * one, 1e-9);
    EXPECT_EQ(error_of("--prior power-law"),
              error_of("--prior power-law --exponent 1 --cutoff 0.001 --width 1"));
}

TEST(PowerLawOption, ErrorIsAPowerOfAlpha) {
    const auto run = bayesaim(
        "theory --prior power-law --exponent 1 --cutoff 1e-6 --channel linear --alpha log:1e-4:1e-3:2 "
        "--format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto error = [&](int i) { return run.json()["points"][i]["estimation_error"].get<double>(); };
    EXPECT_NEAR(std::log10(error(0) / error(1)), 1, 0.04);
}

TEST(PowerLawOption, ServesDataAndEstimates) {
    const cli::Workplace place;
    const std::string data = place.file("data.h5"), estimate = place.file("estimate.h5"),
                      prior = "--prior power-law --exponent 1.2 --cutoff 0.05 --width 0.5";
    ASSERT_EQ(bayesaim("generate --dim 40 --alpha 0.15 --output " + data + " " + prior).exit_code, 0);
    const auto fit = bayesaim("fit " + data + " --quiet --format json --output " + estimate);
    ASSERT_EQ(fit.exit_code, 0) << fit.err;
    EXPECT_EQ(fit.json()["configuration"]["exponent"], 1.2);
    EXPECT_EQ(error_of("--prior spectrum --spectrum " + estimate), error_of(prior));
    const auto amp = bayesaim("amp --alpha 0.1 --dim 80 --seeds 2 --quiet --format json " + prior);
    ASSERT_EQ(amp.exit_code, 0) << amp.err;
    const auto point = amp.json()["points"][0];
    EXPECT_NEAR(point["mean_error"].get<double>(), point["theory_error"].get<double>(),
                0.2 * point["theory_error"].get<double>())
        << point;
}

TEST(PowerLawOption, StudiesHaveIt) {
    const cli::Workplace place;
    const std::string study =
        place.write("study.toml",
                    "estimator = \"theory\"\nprior = \"power-law\"\nexponent = [1.0, 1.5]\ncutoff = 0.01\n"
                    "alpha = 0.1\n");
    const auto sweep = bayesaim("sweep " + study + " --quiet --output " + place.file("results"));
    ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
    const std::string table = cli::read(place.file("results/results.csv"));
    EXPECT_NE(table.find("exponent,cutoff"), std::string::npos) << table;
    EXPECT_NE(table.find("1.5,0.01"), std::string::npos) << table;
}

TEST(PowerLawOption, LogarithmicGridsHaveLogarithmicAxes) {
    const cli::Workplace place;
    const std::string picture = place.file("scaling.svg");
    const auto run = bayesaim("theory --prior power-law --alpha log:0.001:0.1:5 --plot " + picture);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(cli::read(picture).find("0.001"), std::string::npos);  // a tick that a linear axis has not
}

class PowerLawMistake : public ::testing::TestWithParam<cli::BadCall> {};
TEST_P(PowerLawMistake, IsNamed) { cli::expect_bad_usage(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    Calls, PowerLawMistake,
    ::testing::Values(cli::BadCall{"theory --alpha 0.1 --prior power-law --exponent 0",
                                   "--exponent must be positive and finite, got 0"},
                      cli::BadCall{"theory --alpha 0.1 --prior power-law --exponent 20",
                                   "--exponent must be between 0.05 and 5, got 20"},
                      cli::BadCall{"theory --alpha 0.1 --prior power-law --cutoff 0",
                                   "--cutoff must be positive and finite, got 0"},
                      cli::BadCall{"theory --alpha 0.1 --prior power-law --width 2",
                                   "--width must be at most 1 for a power law, got 2"},
                      cli::BadCall{"theory --alpha 0.1 --exponent 2",
                                   "--exponent applies only to --prior power-law (prior is wishart)"},
                      cli::BadCall{"denoise --noise-variance 0.1 --cutoff 0.1",
                                   "--cutoff applies only to --prior power-law (prior is wishart)"},
                      cli::BadCall{"theory --alpha 0.1 --prior power-law --attention cross",
                                   "prior power-law has symmetric weights"},
                      cli::BadCall{"theory --alpha 0.1 --prior power-law --limit small-width",
                                   "--limit small-width is not available for prior power-law"},
                      cli::BadCall{"gd --alpha 0.1 --dim 20 --prior power-law", "--prior"}));

}  // namespace
