// SPDX-License-Identifier: MIT
#include <csignal>

#include <gtest/gtest.h>

#include "program.hpp"

using cli::bayesaim;

namespace {

/// The points without their timings.
nlohmann::json points_of(const cli::Run& run) {
    nlohmann::json points = run.json()["points"];
    for (auto& point : points) point.erase("seconds_per_iteration");
    return points;
}

/// What is not told costs next to nothing: the width 1, which is wrong, costs 25%.
TEST(AmpCommand, LearnsTheWidthThatItIsNotTold) {
    const std::string call = "amp --width 0.5 --alpha 0.12 --dim 80 --seeds 4 --seed 3 --quiet --format json";
    const auto known = bayesaim(call).json()["points"][0],
               learned = bayesaim(call + " --learn width").json()["points"][0];
    EXPECT_LT(learned["mean_error"].get<double>(), 1.05 * known["mean_error"].get<double>());
    EXPECT_NEAR(learned["learned_width"], 0.5, 0.06);
    EXPECT_NEAR(learned["learned_scale"], 1, 0.06);
    const std::string noisy =
        "amp --channel linear --label-noise 0.3 --width 0.5 --alpha 0.2 --dim 60 --seeds 4 --quiet --format "
        "json";
    EXPECT_NEAR(bayesaim(noisy + " --learn width,label-noise").json()["points"][0]["learned_label_noise"],
                0.3, 0.03);
    for (const char* options : {" --learn widths", " --learn label-noise", " --learn width --test-samples 10",
                                " --learn width,spectrum"}) {
        const auto run = bayesaim(call + options);
        EXPECT_EQ(run.exit_code, 1) << options;
        EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    }
}

}  // namespace

TEST(AmpCommand, LandsNextToTheory) {
    const auto run = bayesaim("amp --width 0.5 --alpha 0.12 --dim 100 --seeds 4 --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    EXPECT_NEAR(point["theory_error"].get<double>(), 0.2744104098, 1e-9);
    EXPECT_NEAR(point["mean_error"].get<double>(), 0.2744, 0.04);
    EXPECT_EQ(point["seeds"], 4);
    EXPECT_EQ(point["dim"], 100);
    EXPECT_EQ(point["status"], "converged");
    for (const char* key : {"standard_error", "z_score", "iterations", "seconds_per_iteration"}) {
        EXPECT_TRUE(point[key].is_number()) << key;
    }
}

TEST(AmpCommand, TestSamplesMeasureTheGeneralizationError) {
    const auto run =
        bayesaim("amp --width 0.5 --alpha 0.12 --dim 100 --seeds 4 --test-samples 4000 --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    // Theory at this error: 0.08622589296, and 0.08855476960 for the plug-in rule.
    EXPECT_NEAR(point["theory_generalization_error"].get<double>(), 0.08622589296, 1e-9);
    EXPECT_NEAR(point["theory_plugin_generalization_error"].get<double>(), 0.08855476960, 1e-9);
    EXPECT_NEAR(point["generalization_error"].get<double>(), 0.0862, 0.01);
    EXPECT_GT(point["plugin_generalization_error"].get<double>(),
              point["generalization_error"].get<double>());
}

TEST(AmpCommand, SameSeedSameBitsForThreadsAndStorage) {
    const std::string command = "amp --width 0.5 --alpha 0.1 --dim 40 --seeds 2 --seed 3 --format json ";
    const auto reference = points_of(bayesaim(command + "--threads 1"));
    EXPECT_EQ(reference, points_of(bayesaim(command + "--threads 2")));
    EXPECT_EQ(reference, points_of(bayesaim(command + "--token-storage regenerate")));
    const auto single = points_of(bayesaim(command + "--precision float"));
    EXPECT_EQ(single, points_of(bayesaim(command + "--precision float --token-storage regenerate")));
    EXPECT_NE(single, reference);
    const double error = reference[0]["mean_error"];
    EXPECT_NEAR(single[0]["mean_error"].get<double>(), error, 1e-5 * error);  // round-off of single precision
}

TEST(AmpCommand, RecordHasEveryIteration) {
    const cli::Workplace place;
    const auto file = place.file("record.csv");
    const auto run = bayesaim("amp --alpha 0.1 --dim 30 --iterations 5 --tolerance 1e-30 --record " + file);
    EXPECT_EQ(run.exit_code, 0);  // five iterations are not enough
    EXPECT_NE(run.err.find("1 of 1 points did not converge; the first: alpha 0.1, dim 30, iteration limit"),
              std::string::npos);
    EXPECT_NE(run.out.find("iteration limit"), std::string::npos);
    const std::string text = cli::read(file);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
    EXPECT_TRUE(text.starts_with("alpha,seed,iteration,true_error,predicted_error"));
}

TEST(AmpCommand, InterruptKeepsWhatIsFinished) {
    const cli::Workplace place;
    const std::string out = place.file("out");
    const std::string command = std::string("timeout --foreground --signal=INT 3 ") + BAYESAIM_PROGRAM +
                                " amp --alpha 0.1 --dim 40 --seeds 100000 --format json --output " + out +
                                " 2>/dev/null";
    const int status =
        std::system((command + "; test $? = 124").c_str());  // 124: timeout had to stop the program
    EXPECT_EQ(status, 0);
    const auto json = nlohmann::json::parse(cli::read(out));
    EXPECT_GE(json["points"][0]["seeds"].get<int>(), 1);
}

TEST(AmpCommand, MessagesNameTheOptionsThatWereTyped) {
    for (const auto& [arguments, complaint] :
         {std::pair("--damping 1", "--damping must be below 1, got 1"),
          std::pair("--damping -1", "--damping must be non-negative"),
          std::pair("--tolerance 0", "--tolerance must be positive"),
          std::pair("--width -1", "--width must be positive"),
          std::pair("--channel relu", "--channel must be one of"),
          std::pair("--prior flat", "--prior must be one of"),
          std::pair("--width 1,2,3 --channel deep-softmax", "--width must be one number, or one for each")}) {
        const std::string call = std::string("amp --alpha 0.1 --dim 10 ") + arguments,
                          line = std::string("bayesaim: ") + complaint;
        cli::expect_bad_usage({call.c_str(), line.c_str()});
    }
    EXPECT_NE(bayesaim("amp --help").out.find("0 or more, below 1"), std::string::npos);
}

TEST(AmpCommand, RejectsNonsense) {
    for (const char* arguments :
         {"amp --alpha 0.1 --damping 1", "amp --alpha 0.1 --damping -0.5", "amp --alpha 0.1 --initial magic",
          "amp --alpha 0.1 --token-storage disk", "amp --alpha 0.1 --precision half",
          "amp --alpha 0.1 --dim 1", "amp --alpha 0.1 --iterations 0", "amp --alpha 0.1 --seeds 0",
          "amp --alpha 0.1 --record /nowhere/record.csv"}) {
        const auto run = bayesaim(arguments);
        EXPECT_EQ(run.exit_code, 1) << arguments;
        EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    }
}
