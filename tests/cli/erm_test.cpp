// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "program.hpp"

using cli::bayesaim;

namespace {

double number(const nlohmann::json& object, const char* key) { return object.at(key).get<double>(); }

// Numbers of these tests: derived and checked apart from this code, by a prototype in another language.

TEST(ErmTheory, PrintsTheReferenceErrors) {
    const auto run =
        bayesaim("theory --estimator erm --width 0.5 --alpha 0.12 --regularization 0,0.05,0.2 --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto points = run.json()["points"];
    ASSERT_EQ(points.size(), 3U);
    EXPECT_NEAR(number(points[0], "estimation_error"), 0.35701371, 5e-9);
    EXPECT_EQ(points[0]["training_loss"], 0);
    EXPECT_NEAR(number(points[1], "estimation_error"), 0.40074875, 5e-9);
    EXPECT_NEAR(number(points[1], "training_loss"), 0.01308765, 5e-9);
    EXPECT_NEAR(number(points[1], "zero_fraction"), 0.58344635, 5e-9);
    EXPECT_NEAR(number(points[1], "generalization_error"), 0.124045490, 5e-10);
    EXPECT_NEAR(number(points[2], "estimation_error"), 0.53090677, 5e-9);
    const auto settings = run.json()["configuration"];
    EXPECT_EQ(settings["estimator"], "erm");
    EXPECT_EQ(settings["loss"], "logit");
    EXPECT_EQ(settings["penalty"], "trace");
}

TEST(ErmTheory, FindsTheBestRegularization) {
    const auto point =
        bayesaim(
            "theory --estimator erm --channel linear --label-noise 0.5 --width 0.5 --alpha 0.1 "
            "--regularization optimal --format json")
            .json()["points"][0];
    EXPECT_NEAR(number(point, "regularization"), 0.19979, 5e-6);
    EXPECT_NEAR(number(point, "estimation_error"), 0.57298512, 5e-9);
}

TEST(ErmTheory, HasCrossEntropyAndTheSquareLossOfOutputs) {
    const auto error = [](const std::string& options) {
        return number(bayesaim("theory --estimator erm --width 0.5 --alpha 0.12 --format json " + options)
                          .json()["points"][0],
                      "estimation_error");
    };
    EXPECT_NEAR(error("--loss cross-entropy --regularization 0.05"), 0.6936411, 1e-6);
    EXPECT_NEAR(error("--loss square --regularization 0.04"), 0.905, 1e-3);
    EXPECT_NEAR(error("--loss row-logit --regularization 0.05"), 0.42406550, 5e-9);
}

TEST(ErmTheory, StrongRegularizationLeavesNothing) {
    for (const char* loss : {"logit", "row-logit", "cross-entropy", "square"}) {
        const auto run = bayesaim(fmt::format(
            "theory --estimator erm --loss {} --width 0.5 --alpha 0.06 --regularization 3 --format json",
            loss));
        ASSERT_EQ(run.exit_code, 0) << loss << run.err;
        const auto point = run.json()["points"][0];
        EXPECT_NEAR(number(point, "estimation_error"), 1.5, 1e-12) << "Q of width 0.5";
        EXPECT_EQ(point["zero_fraction"], 1);
        EXPECT_EQ(point["status"], "converged");
    }
    const auto best = bayesaim(
                          "theory --estimator erm --loss cross-entropy --width 0.5 --alpha 0.06 "
                          "--regularization optimal --format json")
                          .json()["points"][0];
    EXPECT_LT(number(best, "estimation_error"), 0.9448) << "at lambda = 0.001";
    // An iteration that once went far astray.
    const auto few = bayesaim(
                         "theory --estimator erm --loss cross-entropy --width 0.5 --alpha 0.01875 "
                         "--regularization 0.017896388531879488 --format json")
                         .json()["points"][0];
    EXPECT_NEAR(number(few, "estimation_error"), 1.3761, 1e-4);
}

TEST(ErmTheory, SeveralWidthsAndAPicture) {
    const cli::Workplace place;
    const auto run = bayesaim(
        "theory --estimator erm --width 0.5,1 --alpha 0:0.2:3 --regularization 0,0.1 --format json --plot " +
        place.file("erm.png"));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto points = run.json()["points"];
    EXPECT_EQ(points.size(), 12U);
    EXPECT_EQ(points[0]["width"], 0.5);
    EXPECT_EQ(points[0]["estimation_error"], 1.5) << "without data S = 0, and the error is Q";
    EXPECT_EQ(points[11]["width"], 1);
    EXPECT_TRUE(std::filesystem::exists(place.file("erm.png")));
}

TEST(ErmThreshold, RecoveryAndInterpolation) {
    const auto clean = bayesaim("threshold --estimator erm --width 0.5 --format json").json();
    EXPECT_NEAR(number(clean, "strong_recovery"), 0.21108749109, 5e-12);
    EXPECT_TRUE(clean["interpolation"].is_null());
    const auto noisy = bayesaim(
                           "threshold --estimator erm --channel linear --label-noise 0.5 --width 0.5 "
                           "--format json")
                           .json();
    EXPECT_NEAR(6 * number(noisy, "interpolation"), 0.60041468305, 5e-11);
    EXPECT_TRUE(noisy["strong_recovery"].is_null());
    const auto direct =
        bayesaim("threshold --estimator erm --penalty frobenius --width 0.5 --format json").json();
    EXPECT_NEAR(number(direct, "strong_recovery"), 0.25, 1e-15) << "as many equations as entries of S";
    const auto wide = bayesaim("threshold --estimator erm --width 1 --format json").json();
    EXPECT_NEAR(number(wide, "strong_recovery"), 0.25, 1e-12)
        << "the density of S diverges at 0 and has no atom";
}

TEST(ErmPhase, IsZeroBeyondItsOwnThreshold) {
    const auto points = bayesaim(
                            "phase --estimator erm --regularization 0 --alpha 0.2,0.22 --width 0.25,0.5 "
                            "--format json")
                            .json()["points"];
    ASSERT_EQ(points.size(), 4U);
    EXPECT_EQ(points[0]["estimation_error"], 0);
    EXPECT_NEAR(number(points[2], "estimation_error"), 0.00513549, 5e-9);
    EXPECT_EQ(points[3]["status"], "exact recovery");
}

TEST(ErmSpectrum, HasTheAtomAndTheEdge) {
    const cli::Workplace place;
    const std::string call =
        "spectrum --estimator erm --channel linear --label-noise 0.5 --width 0.5 --alpha 0.1 "
        "--regularization 0.2 "
        "--format json --points 2001";
    const auto object = bayesaim(call).json();
    EXPECT_NEAR(number(object, "zero_fraction"), 0.59174845, 5e-9);
    EXPECT_NEAR(object["edges"][0][1].get<double>(), 3.746, 5e-4);
    double mass = number(object, "zero_fraction");
    const auto points = object["points"];
    const double step = number(points[1], "x") - number(points[0], "x");
    for (const auto& point : points) mass += step * number(point, "density");
    EXPECT_NEAR(mass, 1, 1e-3) << "a sum over 2001 points";
    const auto run = bayesaim(call + " --dim 60 --plot " + place.file("spectrum.svg"));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(std::filesystem::exists(place.file("spectrum.svg")));
}

TEST(ErmCommand, TrainsToTheMinimumBesideItsTheory) {
    const cli::Workplace place;
    const auto run = bayesaim(
        "erm --width 0.5 --alpha 0.12 --regularization 0.05,0.2 --dim 60 --seeds 2 --test-samples 500 "
        "--format json "
        "--record " +
        place.file("record.csv"));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto points = run.json()["points"];
    ASSERT_EQ(points.size(), 2U);
    EXPECT_NEAR(number(points[0], "theory_error"), 0.40074875, 5e-9);
    EXPECT_NEAR(number(points[0], "bayes_error"), 0.2744104098, 1e-9);
    for (const auto& point : points) {
        EXPECT_EQ(point["status"], "converged");
        EXPECT_LE(number(point, "kkt_residual"), 1e-8);
        // d = 60: corrections of the order of 1/(alpha d) = 14%
        EXPECT_NEAR(number(point, "mean_error") / number(point, "theory_error"), 1, 0.25);
        EXPECT_NEAR(number(point, "training_loss") / number(point, "theory_training_loss"), 1, 0.2);
        EXPECT_NEAR(number(point, "zero_fraction"), number(point, "theory_zero_fraction"), 0.05);
        EXPECT_NEAR(number(point, "generalization_error") / number(point, "theory_generalization_error"), 1,
                    0.3);
    }
    const std::string record = cli::read(place.file("record.csv"));
    EXPECT_NE(record.find("kkt_residual"), std::string::npos);
    EXPECT_GT(std::count(record.begin(), record.end(), '\n'), 50);
}

TEST(ErmCommand, SameBitsForAnyThreadsAndStorage) {
    const std::string call =
        "erm --loss cross-entropy --width 0.5 --alpha 0.12 --regularization 0.05 --dim 40 --format csv";
    const auto strip = [](std::string text) {  // seconds_per_iteration differs
        std::string head = text.substr(0, text.find('\n')), row = text.substr(text.find('\n') + 1);
        std::istringstream names(head), values(row);
        std::string result;
        for (std::string name, value; std::getline(names, name, ',') && std::getline(values, value, ',');)
            if (name != "seconds_per_iteration" && name != "token_storage") result += value + ",";
        return result;
    };
    const std::string one = strip(bayesaim(call + " --threads 1").out);
    EXPECT_EQ(one, strip(bayesaim(call + " --threads 3").out));
    EXPECT_EQ(one, strip(bayesaim(call + " --token-storage regenerate").out));
}

TEST(ErmSweep, StudiesHaveTrainingAndItsTheory) {
    const cli::Workplace place;
    const std::string study = place.write("study.toml", R"(
width = 0.5
alpha = 0.12
[[run]]
estimator = "erm-theory"
regularization = [0, 0.05]
[[run]]
estimator = "erm-theory"
optimal_regularization = true
channel = "linear"
label_noise = 0.5
[[run]]
estimator = "erm"
regularization = 0.05
tolerance = 1e-8
dim = 40
seeds = 2
)");
    const auto run = bayesaim("sweep " + study + " --output " + place.file("run") + " --quiet");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const std::string results = cli::read(place.file("run") + "/results.csv");
    EXPECT_NE(results.find("0.3570137"), std::string::npos) << results;
    EXPECT_NE(results.find("0.4007487"), std::string::npos) << results;
    EXPECT_NE(results.find("kkt_residual"), std::string::npos);
}

class ErmRefuses : public testing::TestWithParam<cli::BadCall> {};
TEST_P(ErmRefuses, WithOneLine) { cli::expect_bad_usage(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Calls, ErmRefuses,
    testing::Values(
        cli::BadCall{"theory --estimator erm --alpha 0.1", "--estimator erm needs --regularization"},
        cli::BadCall{"theory --estimator ridge --alpha 0.1", "--estimator must be one of bayes, erm"},
        cli::BadCall{"theory --loss logit --alpha 0.1", "--loss applies only to --estimator erm"},
        cli::BadCall{"theory --estimator erm --regularization -1 --alpha 0.1", "--regularization must be"},
        cli::BadCall{"theory --estimator erm --regularization 0.1x --alpha 0.1", "--regularization must be"},
        cli::BadCall{"theory --estimator erm --regularization 0.1 --alpha 0.1 --channel hardmax",
                     "must be linear or softmax, one layer of tied attention, got hardmax"},
        cli::BadCall{"theory --estimator erm --regularization 0.1 --alpha 0.1 --attention cross",
                     "must be linear or softmax, one layer of tied attention, got softmax of cross"},
        cli::BadCall{"theory --estimator erm --regularization 0.1 --alpha 0.1 --loss logit --channel linear",
                     "loss of channel linear must be square, got logit"},
        cli::BadCall{"theory --estimator erm --regularization 0.1 --alpha 0.1 --loss hinge",
                     "--loss must be one of square, logit, row-logit, cross-entropy, got 'hinge'"},
        cli::BadCall{"theory --estimator erm --regularization 0.1 --alpha 0.1 --loss square --tokens 3",
                     "not available for more than two tokens"},
        cli::BadCall{"theory --estimator erm --regularization 0.1 --alpha 0.1 --trajectory 3",
                     "--estimator erm cannot be combined with --trajectory"},
        cli::BadCall{"erm --alpha 0.1 --regularization 0", "--regularization must be positive"},
        cli::BadCall{"erm --alpha 0.1", "erm needs --regularization"},
        cli::BadCall{"threshold --estimator erm --regularization 0.3",
                     "--regularization is not available for thresholds"},
        cli::BadCall{"theory --estimator erm --alpha 0.1 --regularization 1e30",
                     "regularization must be between 0 and"},
        cli::BadCall{"erm --alpha 0.1 --regularization 1e30", "regularization must be between 0 and"},
        cli::BadCall{"erm --alpha 0.1 --regularization 0.1 --penalty nuclear",
                     "--penalty must be one of trace, frobenius"},
        cli::BadCall{"erm --alpha 0.1 --regularization 0.1 --damping 1", "--damping must be below 1"},
        cli::BadCall{"erm --alpha 0.1 --regularization 0.1 --solver lbfgs", "--solver must be one of"},
        cli::BadCall{"spectrum --estimator erm --regularization 0.1", "--estimator erm needs --alpha"},
        cli::BadCall{"spectrum --estimator erm --regularization 0.1 --alpha 0.1 --noise-variance 1",
                     "--noise-variance cannot be combined with --estimator erm"},
        cli::BadCall{"spectrum --width 0.5", "--noise-variance is required"},
        cli::BadCall{"phase --estimator erm --regularization 0,1 --alpha 0.1,0.2 --width 0.5,1",
                     "--regularization must be one number here"}));

}  // namespace
