// SPDX-License-Identifier: MIT
#include <cmath>

#include <gtest/gtest.h>

#include "hdf5_arrays.hpp"
#include "program.hpp"

namespace {

using cli::bayesaim;

/// Training data, an estimate from them and a test set of the same teacher.
class PredictCommand : public testing::Test {
  protected:
    void SetUp() override {
        const std::string make = "generate --dim 60 --alpha 0.4 --width 0.5 --channel hardmax --output ";
        ASSERT_EQ(bayesaim(make + training).exit_code, 0);
        ASSERT_EQ(bayesaim(make + test + " --test --precision float").exit_code, 0);
        ASSERT_EQ(bayesaim("fit " + training + " --damping 0.3 --output " + estimate).exit_code, 0);
    }
    cli::Run predict(const std::string& tokens) const {
        return bayesaim("predict " + estimate + " " + tokens + " --format json --output " + predictions);
    }

    const cli::Workplace place;
    const std::string training = place.file("training.h5"), test = place.file("test.h5"),
                      estimate = place.file("estimate.h5"), predictions = place.file("predictions.h5");
};

/// The estimate has seen the labels of the training data, not the labels of the test set.
TEST_F(PredictCommand, MeasuresWhatTheEstimatePromises) {
    const auto run = predict(test);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    const double measured = point["generalization_error"], expected = point["expected_generalization_error"];
    EXPECT_NEAR(measured, expected, 0.25 * expected);
    EXPECT_GT(point["plugin_generalization_error"].get<double>(), measured);
    EXPECT_LT(predict(training).json()["points"][0]["generalization_error"].get<double>(), 0.5 * expected);
}

/// Measured and expected errors both contain the label noise of the test set.
TEST(PredictCommandWithNoise, ExpectsTheNoiseOfTheOutputs) {
    const cli::Workplace place;
    const std::string make =
        "generate --dim 60 --alpha 0.3 --width 0.5 --channel linear --label-noise 0.5 --output ";
    ASSERT_EQ(bayesaim(make + place.file("training.h5")).exit_code, 0);
    ASSERT_EQ(bayesaim(make + place.file("test.h5") + " --test").exit_code, 0);
    ASSERT_EQ(
        bayesaim("fit " + place.file("training.h5") + " --output " + place.file("estimate.h5")).exit_code, 0);
    const auto run = bayesaim("predict " + place.file("estimate.h5") + " " + place.file("test.h5") +
                              " --format json --output " + place.file("predictions.h5"));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    const double expected = point["expected_generalization_error"];
    EXPECT_GT(expected, 4 * 0.5);  // T^2 noisy entries
    EXPECT_NEAR(point["generalization_error"], expected, 0.1 * expected);
}

TEST_F(PredictCommand, WritesTheProbabilitiesOfEachRow) {
    ASSERT_EQ(predict(test).exit_code, 0);
    const auto mean = cli::read_array(predictions, "predictions"),
               plug_in = cli::read_array(predictions, "plugin_predictions"),
               truth = cli::read_array(test, "outputs");
    ASSERT_EQ(mean.size(), truth.size());
    double error = 0;
    for (std::size_t i = 0; i < mean.size(); i += 2) {
        EXPECT_NEAR(mean[i] + mean[i + 1], 1, 1e-10);
        EXPECT_EQ(plug_in[i], mean[i] > 0.5 ? 1 : 0);  // two tokens: the likelier one
        error += std::pow(mean[i] - truth[i], 2) + std::pow(mean[i + 1] - truth[i + 1], 2);
    }
    const double samples = static_cast<double>(truth.size()) / 4;
    EXPECT_NEAR(error / samples, predict(test).json()["points"][0]["generalization_error"].get<double>(),
                1e-12);
}

TEST_F(PredictCommand, SaysThatTheEstimateDidNotConverge) {
    const auto early = place.file("early.h5");
    const auto fit = bayesaim("fit " + training + " --iterations 2 --output " + early);
    EXPECT_NE(fit.err.find("AMP did not converge (status iteration limit); give it more --iterations"),
              std::string::npos)
        << fit.err;
    const auto run = bayesaim("predict " + early + " " + test + " --output " + predictions);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.err.find("did not converge (status iteration limit)"), std::string::npos) << run.err;
    EXPECT_EQ(predict(test).err.find("did not converge"), std::string::npos);
}

TEST_F(PredictCommand, TokensAloneAreEnough) {
    const auto bare = place.file("bare.h5");
    cli::write_file(bare, {{"tokens", {{5, 2, 60}, std::vector<double>(600, 0.5)}}});
    const auto run = predict(bare);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(run.json()["points"][0]["generalization_error"].is_null());
    EXPECT_EQ(cli::read_array(predictions, "predictions").size(), 20U);
}

TEST_F(PredictCommand, RejectsFilesThatDoNotBelongTogether) {
    const auto other = place.file("other.h5"), bare = place.file("bare.h5");
    cli::write_file(other, {{"tokens", {{5, 2, 3}, std::vector<double>(30, 0.5)}}});
    cli::write_file(bare, {{"weights", {{1, 60, 60}, std::vector<double>(3600, 0.5)}}});
    for (const auto& [arguments, complaint] :
         {std::pair(estimate + " " + other + " --output " + predictions, "must be 60"),
          std::pair(bare + " " + test + " --output " + predictions, "attribute predicted_error"),
          std::pair(
              training + " " + test + " --output " + predictions,
              "attribute predicted_error must be in the file, got none; an estimate is a file that bayesaim "
              "fit wrote"),
          std::pair(estimate + " " + test + " --output predictions.csv",
                    "--output must be the name of an HDF5"),
          std::pair(estimate + " " + test + " --output " + test, "another file"),
          std::pair(estimate + " missing.h5 --output " + predictions,
                    "cannot read dataset 'missing.h5': No such file or directory"),
          std::pair("missing.h5 " + test + " --output " + predictions,
                    "cannot read estimate 'missing.h5': No such file or directory")}) {
        const std::string call = "predict " + arguments;
        cli::expect_bad_usage({call.c_str(), complaint});
    }
    EXPECT_EQ(place.file_count(), 5U) << "something was written";
}

/// Ctrl-C while a file is written, and while an estimate is made.
TEST(InterruptedCommand, GenerateLeavesNothingAndFitLeavesItsLastEstimate) {
    const cli::Workplace place;
    const std::string data = place.file("data.h5"), estimate = place.file("estimate.h5");
    const auto interrupt = [](const std::string& after, const std::string& arguments) {
        return WEXITSTATUS(std::system(("timeout --foreground --preserve-status --signal=INT " + after + " " +
                                        BAYESAIM_PROGRAM + " " + arguments + " >/dev/null 2>&1")
                                           .c_str()));
    };
    EXPECT_EQ(interrupt("1", "generate --dim 400 --alpha 1 --output " + data), 130);
    EXPECT_EQ(place.file_count(), 0U);
    ASSERT_EQ(bayesaim("generate --dim 100 --alpha 0.1 --width 0.5 --output " + data).exit_code, 0);
    EXPECT_EQ(
        interrupt("2", "fit " + data + " --iterations 100000000 --tolerance 1e-300 --output " + estimate),
        130);
    EXPECT_EQ(cli::read_array(estimate, "weights").size(), 10000U);
    EXPECT_EQ(place.file_count(), 2U);
    // It does not replace an estimate that was there.
    const std::string before = cli::read(estimate);
    EXPECT_EQ(interrupt("1", "fit " + data + " --iterations 100000000 --tolerance 1e-300 --seed 2 --output " +
                                 estimate),
              130);
    EXPECT_EQ(cli::read(estimate), before);
}

}  // namespace
