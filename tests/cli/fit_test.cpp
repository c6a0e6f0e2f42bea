// SPDX-License-Identifier: MIT
// `fit` of data of which the user knows little.
#include <cmath>

#include <gtest/gtest.h>

#include "hdf5_arrays.hpp"
#include "program.hpp"

namespace {

using cli::bayesaim;

class FitCommand : public testing::Test {
  protected:
    /// Data without a word about the prior.
    std::string data_without_prior(const std::string& options) const {
        const std::string known = place.file("known.h5"), unknown = place.file("unknown.h5");
        EXPECT_EQ(bayesaim("generate " + options + " --output " + known).exit_code, 0);
        const auto shape = cli::read_shape(known, "tokens"),
                   of_outputs = cli::read_shape(known, "log_outputs");
        cli::write_file(
            unknown, {{"tokens", {shape, cli::read_array(known, "tokens")}},
                      {"log_outputs", {of_outputs, cli::read_array(known, "log_outputs")}},
                      {"weights", {cli::read_shape(known, "weights"), cli::read_array(known, "weights")}}});
        return unknown;
    }
    cli::Run fit(const std::string& arguments) const {
        return bayesaim("fit " + arguments + " --quiet --format json --output " + estimate);
    }

    const cli::Workplace place;
    const std::string estimate = place.file("estimate.h5");
};

/// The promise of the guide: no --width. With the width 1 that it once took in silence the error was 0.34.
TEST_F(FitCommand, LearnsTheWidthThatNobodyGives) {
    const std::string data = data_without_prior("--dim 100 --alpha 0.12 --width 0.5 --seed 3");
    const auto run = fit(data);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    EXPECT_EQ(point["learned_prior"], "wishart");
    EXPECT_NEAR(point["learned_width"], 0.5, 0.1);
    EXPECT_NEAR(point["learned_scale"], 1, 0.1);
    EXPECT_EQ(point["candidates"].size(), 4U);
    EXPECT_NEAR(point["predicted_error"].get<double>() / point["measured_error"].get<double>(), 1, 0.2);
    EXPECT_LT(point["measured_error"].get<double>(), 0.29);
    EXPECT_LT(std::abs(point["holdout_z"].get<double>()), 3);
    EXPECT_LT(point["spectral_misfit"].get<double>(), 4);
    EXPECT_EQ(point["verdict"], "fits");
    // The law goes with the estimate, and theory takes it.
    const auto theory =
        bayesaim("theory --alpha 0.12 --prior spectrum --spectrum " + estimate + " --format json").json();
    EXPECT_NEAR(
        theory["points"][0]["estimation_error"].get<double>() / point["predicted_error"].get<double>(), 1,
        0.25);
}

TEST_F(FitCommand, LearnsASpectrumThatTheoryTakes) {
    const std::string data = data_without_prior("--dim 60 --alpha 0.14 --width 0.5 --seed 2");
    const auto run = fit(data + " --prior learn");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    EXPECT_EQ(point["learned_prior"], "smooth");
    EXPECT_GT(cli::read_array(estimate, "law").size(), 6U);
    const auto theory =
        bayesaim("theory --alpha 0.14 --prior spectrum --spectrum " + estimate + " --format json").json();
    EXPECT_NEAR(
        theory["points"][0]["estimation_error"].get<double>() / point["predicted_error"].get<double>(), 1,
        0.3);
}

/// Today's sin: "converged, predicted error 0.19" at a true error of 0.31.
TEST_F(FitCommand, WrongWidthIsToldByTheExitCode) {
    const std::string data = data_without_prior("--dim 100 --alpha 0.12 --width 0.5 --seed 3");
    for (const char* width : {"0.35", "1"}) {
        const auto run = bayesaim("fit " + data + " --width " + width + " --output " + estimate);
        EXPECT_EQ(run.exit_code, 2) << run.out;
        EXPECT_NE(run.err.find("the model does not fit"), std::string::npos) << run.err;
        EXPECT_NE(run.out.find("verdict"), std::string::npos) << run.out;
    }
    const auto told = fit(data + " --width 0.5");
    EXPECT_EQ(told.exit_code, 0) << told.err;
    EXPECT_TRUE(told.json()["points"][0]["learned"].is_null());
}

TEST_F(FitCommand, LearnsLabelNoiseAndPredictsWithIt) {
    const std::string make =
        "generate --channel linear --label-noise 0.3 --dim 60 --alpha 0.3 --width 0.5 --output ";
    const std::string data = place.file("data.h5"), test = place.file("test.h5");
    ASSERT_EQ(bayesaim(make + data).exit_code, 0);
    ASSERT_EQ(bayesaim(make + test + " --test").exit_code, 0);
    const auto run = fit(data + " --label-noise learn --width learn");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NEAR(run.json()["points"][0]["learned_label_noise"], 0.3, 0.04);
    const auto predicted =
        bayesaim("predict " + estimate + " " + test + " --format json --output " + place.file("p.h5"));
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    const auto point = predicted.json()["points"][0];
    EXPECT_NEAR(
        point["generalization_error"].get<double>() / point["expected_generalization_error"].get<double>(), 1,
        0.15);
    // Deviations are those of the outputs without their noise: V/tau^2 of each.
    const auto deviations = cli::read_array(place.file("p.h5"), "prediction_deviations");
    const double error = run.json()["points"][0]["predicted_error"];
    double square = 0;
    for (const double deviation : deviations)
        square += deviation * deviation / static_cast<double>(deviations.size());
    EXPECT_NEAR(square / (1.5 * error), 1, 0.05);  // diagonal 2 C, the rest C
}

TEST_F(FitCommand, LearnsTheSingularValuesOfUntiedAttention) {
    const std::string data = place.file("data.h5");
    ASSERT_EQ(
        bayesaim("generate --attention cross --dim 60 --alpha 0.2 --width 0.5 --output " + data).exit_code,
        0);
    const auto known = fit(data).json()["points"][0],
               learned = fit(data + " --prior learn").json()["points"][0];
    EXPECT_EQ(learned["learned_prior"], "smooth");
    EXPECT_LT(learned["measured_error"].get<double>(), 1.1 * known["measured_error"].get<double>());
}

TEST_F(FitCommand, RefusesWhatMakesNoSense) {
    const std::string data = data_without_prior("--dim 20 --alpha 0.14 --width 0.5");
    for (const auto& [options, message] :
         {std::pair("--holdout 1", "--holdout must be"), std::pair("--holdout x", "--holdout"),
          std::pair("--prior learn --width 0.5", "--width cannot be combined with --prior learn"),
          std::pair("--beta learn --prior wigner", "--beta learn applies only to"),
          std::pair("--beta learn --width 0.5", "--beta learn applies only to"),
          std::pair("--prior multi-head --width learn",
                    "--width learn is not available with the prior multi-head"),
          std::pair("--label-noise learn", "--label-noise applies only to"),
          std::pair("", "held-out samples must be at least 20")}) {
        const auto run = bayesaim("fit " + data + " " + options + " --quiet --output " + estimate);
        EXPECT_EQ(run.exit_code, 1) << options << run.out;
        EXPECT_NE(run.err.find(message), std::string::npos) << run.err;
        EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    }
    EXPECT_FALSE(std::filesystem::exists(estimate));
}

}  // namespace
