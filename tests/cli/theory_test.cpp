// SPDX-License-Identifier: MIT
#include <cmath>

#include <gtest/gtest.h>

#include "program.hpp"

using cli::bayesaim;

TEST(TheoryCommand, PrintsTheReferenceErrors) {
    const auto run = bayesaim("theory --width 0.5 --alpha 0.05625,0.15 --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto points = run.json()["points"];
    EXPECT_NEAR(points[0]["estimation_error"].get<double>(), 0.6818852558, 1e-9);
    EXPECT_NEAR(points[1]["estimation_error"].get<double>(), 0.1281308963, 1e-9);
    for (const char* key :
         {"alpha", "overlap", "conjugate_overlap", "generalization_error", "plugin_generalization_error"}) {
        EXPECT_TRUE(points[0][key].is_number()) << key;
    }
    EXPECT_EQ(points[0]["status"], "converged");
}

TEST(TheoryCommand, ExactRecoveryHasNoConjugateAndSaysWhy) {
    const auto point = bayesaim("theory --width 0.5 --alpha 1.2x --format json").json()["points"][0];
    EXPECT_NEAR(point["alpha"].get<double>(), 1.2 * 0.1875, 1e-15);
    EXPECT_EQ(point["estimation_error"], 0);
    EXPECT_EQ(point["generalization_error"], 0);
    EXPECT_TRUE(point["conjugate_overlap"].is_null());
    EXPECT_EQ(point["status"], "exact recovery");
}

TEST(TheoryCommand, GeneralizationErrorsHaveTheReferenceValues) {
    // alpha = 0.12, width 0.5: Q - q = 0.2744104098
    const auto one = bayesaim("theory --width 0.5 --alpha 0.12 --format json").json()["points"][0];
    EXPECT_NEAR(one["estimation_error"].get<double>(), 0.2744104098, 1e-9);
    EXPECT_NEAR(one["generalization_error"].get<double>(), 0.08622589296, 1e-9);
    EXPECT_NEAR(one["plugin_generalization_error"].get<double>(), 0.08855476960, 1e-9);
    // beta = 5: an independent trapezoidal rule of 6001 x 6001 points.
    const auto five = bayesaim("theory --width 0.5 --alpha 0.12 --beta 5 --format json").json()["points"][0];
    EXPECT_NEAR(five["generalization_error"].get<double>(), 0.267533989649, 1e-9);
    EXPECT_NEAR(five["plugin_generalization_error"].get<double>(), 0.329008958506, 1e-9);
}

TEST(TheoryCommand, PointsDoNotDependOnThreads) {
    const std::string command = "theory --channel hardmax --alpha log:0.2:2:3 --format json --threads ";
    EXPECT_EQ(bayesaim(command + "1").out, bayesaim(command + "2").out);
}

TEST(TheoryCommand, ReportsTheSamplingErrorOfManyTokenHardmax) {
    const auto point = bayesaim(
                           "theory --channel hardmax --tokens 3 --width 0.5 --alpha 0.5 --integration-points "
                           "16 --format json")
                           .json()["points"][0];
    const double error = point["estimation_error"], standard_error = point["standard_error"];
    EXPECT_GT(standard_error, 0);
    EXPECT_NEAR(error, 0.0618, 4 * standard_error);  // 8 x 128 points: 0.0615 to 0.0622
}

TEST(TheoryCommand, SmallWidthLimitLeavesOneAtWeakRecovery) {
    const auto points =
        bayesaim("theory --limit small-width --alpha 0.24,0.26,0.45 --format json").json()["points"];
    EXPECT_NEAR(points[0]["estimation_error"].get<double>(), 1, 1e-9);
    EXPECT_LT(points[1]["estimation_error"].get<double>(), 1);
    // t (2 - t) = c t with c = 4 alpha: E = c (2 - c)
    EXPECT_NEAR(points[2]["estimation_error"].get<double>(), 1.8 * 0.2, 1e-10);
}

TEST(TheoryCommand, TrajectoryBeginsWithoutData) {
    const auto points =
        bayesaim("theory --width 0.5 --channel hardmax --alpha 1 --trajectory 5 --format json")
            .json()["points"];
    ASSERT_EQ(points.size(), 6U);
    EXPECT_EQ(points[0]["estimation_error"], 1);
    EXPECT_LT(points[5]["estimation_error"], points[4]["estimation_error"]);
}

TEST(TheoryCommand, DrawsItsCurve) {
    const cli::Workplace place;
    for (const char* arguments : {"--alpha 0.1x:1.2x:8", "--channel hardmax --alpha log:0.1:5:5"}) {
        const auto run = bayesaim(std::string("theory --plot ") + place.file("curve.svg") + " " + arguments);
        EXPECT_EQ(run.exit_code, 0) << run.err;
        EXPECT_GT(std::filesystem::file_size(place.file("curve.svg")), 5000U);
    }
}

TEST(ThresholdCommand, HasTheKnownThresholds) {
    const auto softmax = bayesaim("threshold --width 0.5 --format json").json();
    EXPECT_NEAR(softmax["weak_recovery_scaled"].get<double>(), 0.25, 1e-14);
    EXPECT_NEAR(softmax["strong_recovery"].get<double>(), 0.1875, 1e-14);
    EXPECT_EQ(softmax["algorithmic"], softmax["strong_recovery"]);
    const auto hardmax = bayesaim("threshold --channel hardmax --width 0.5 --format json").json();
    EXPECT_NEAR(hardmax["weak_recovery_scaled"].get<double>(), 0.40341062904, 1e-11);
    for (const char* key : {"strong_recovery", "information_theoretic", "algorithmic"}) {
        EXPECT_TRUE(hardmax[key].is_null()) << key;
    }
    const auto three = bayesaim("threshold --channel hardmax --tokens 3 --format json").json();
    EXPECT_NEAR(three["weak_recovery_scaled"].get<double>(), 0.175392535, 1e-9);
    const auto printed = bayesaim("threshold --channel hardmax-as-printed --format json").json();
    EXPECT_NEAR(printed["weak_recovery_scaled"].get<double>(), 0.5632675, 1e-7);
}

TEST(PhaseCommand, HasTheHeadsOfTheory) {
    const std::string heads = " --channel multi-head --heads 3 --alpha 0.1 --format json";
    const auto phase = bayesaim("phase --widths 0.5" + heads).json(),
               theory = bayesaim("theory --width 0.5" + heads).json();
    EXPECT_EQ(phase["points"][0]["estimation_error"], theory["points"][0]["estimation_error"]);
    EXPECT_EQ(phase["configuration"]["heads"], 3);
}

TEST(PhaseCommand, IsTheTheoryOverAGridAndDrawsIt) {
    const cli::Workplace place;
    const auto run =
        bayesaim("phase --alpha 0.05:0.2:4 --widths 0.5,1 --format json --plot " + place.file("phase.png"));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto points = run.json()["points"];
    ASSERT_EQ(points.size(), 8U);
    EXPECT_EQ(points[3]["status"], "exact recovery");  // width 0.5, alpha 0.2 > 0.1875
    const auto point = bayesaim("theory --width 1 --alpha 0.15 --format json").json()["points"][0];
    EXPECT_NEAR(points[6]["estimation_error"].get<double>(), point["estimation_error"].get<double>(), 1e-13);
    EXPECT_GT(std::filesystem::file_size(place.file("phase.png")), 5000U);
}

TEST(TheoryCommand, HardmaxNeverClaimsExactRecovery) {
    const auto run = bayesaim("theory --channel hardmax --alpha 1e8 --format json");
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.json()["points"][0]["status"], "iteration limit");
}

TEST(TheoryCommand, APriorWithoutUncertaintyHasNoError) {
    const cli::Workplace place;
    const auto file = place.write("one.txt", "1\n");
    for (const char* channel : {"softmax", "hardmax"}) {
        const auto run = bayesaim("theory --prior spectrum --spectrum " + file +
                                  " --alpha 0.1 --format json --channel " + channel);
        EXPECT_EQ(run.json()["points"][0]["estimation_error"], 0) << run.err;
    }
}

/// Without gnuplot the program prints one line and leaves no file.
TEST(TheoryCommand, SaysWhenGnuplotIsMissing) {
    const cli::Workplace place;
    setenv("SAVED_PATH", getenv("PATH"), 1);
    setenv("PATH", "/nowhere", 1);
    const auto run = bayesaim("theory --alpha 0.1,0.2 --plot " + place.file("a.png"));
    setenv("PATH", getenv("SAVED_PATH"), 1);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(place.file_count(), 0U);
}

class BadTheoryUsage : public testing::TestWithParam<cli::BadCall> {};

TEST_P(BadTheoryUsage, GivesOneLineAndExitCodeOne) { cli::expect_bad_usage(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Program, BadTheoryUsage,
    testing::Values(
        cli::BadCall{"theory", "--alpha is required"},
        cli::BadCall{"theory --alpha 0", "--alpha must be made of positive finite numbers, got '0'"},
        cli::BadCall{"theory --alpha=-0.1", "got '-0.1'"},
        cli::BadCall{"theory --alpha 0.2:0.1:5", "--alpha must be increasing, got '0.2:0.1:5'"},
        cli::BadCall{"theory --alpha ''", "--alpha must be"},
        cli::BadCall{"theory --alpha 1:2:0", "of 1 to 10000000 points"},
        cli::BadCall{"theory --alpha 0.1 --tokens 1", "softmax channel: tokens must be at least 2, got 1"},
        cli::BadCall{"theory --alpha 0.1 --tokens 1 --channel hardmax",
                     "hardmax channel: tokens must be at least 2"},
        cli::BadCall{"theory --alpha 0.1 --tokens 7 --channel hardmax", "at most 6, got 7"},
        cli::BadCall{"theory --alpha 0.1 --beta 0",
                     "softmax channel: beta must be positive and finite, got 0"},
        cli::BadCall{"theory --alpha 0.1 --beta inf", "got inf"},
        cli::BadCall{"theory --alpha 0.1 --channel linear --label-noise=-1",
                     "label noise must be non-negative"},
        cli::BadCall{"theory --alpha 0.1 --channel relu",
                     "channel must be one of linear, softmax, hardmax, hardmax-as-printed, deep-softmax, "
                     "deep-seq2seq, "
                     "multi-head, got 'relu'"},
        cli::BadCall{"theory --alpha 0.5x --channel hardmax", "no strong-recovery threshold"},
        cli::BadCall{"theory --alpha 0.1 --limit zero", "--limit must be one of none, small-width"},
        cli::BadCall{"theory --alpha 0.1 --limit small-width --width 0.5",
                     "--width cannot be combined with --limit small-width"},
        cli::BadCall{"theory --alpha 0.1 --limit small-width --prior wigner",
                     "--limit small-width is not available for prior wigner"},
        cli::BadCall{"theory --alpha 0.1 --trajectory 3 --plot a.png",
                     "--plot cannot be combined with --trajectory"},
        cli::BadCall{"theory --alpha 0.1 --channel linear --beta 2",
                     "--beta applies only to --channel softmax"},
        cli::BadCall{"theory --alpha 0.1 --limit small-width --channel multi-head",
                     "--limit small-width is not available for prior multi-head"},
        cli::BadCall{"phase --alpha 0.1,0.2 --widths 0.5 --plot a.png",
                     "points of --widths for a picture must be at least 2, got 1"},
        cli::BadCall{"phase --alpha 0.1 --widths 0", "--widths must be made of positive finite numbers"},
        cli::BadCall{"threshold --width 0", "width must be positive and finite, got 0"}));
