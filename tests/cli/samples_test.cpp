// SPDX-License-Identifier: MIT
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "program.hpp"

using cli::bayesaim;

TEST(SamplesCommand, TellsWhatTheoryConfirms) {
    const auto run = bayesaim("samples --width 0.5 --dim 1000 --target-error 0.1 --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto found = run.json();
    const double alpha = found["alpha"].get<double>();
    EXPECT_EQ(found["samples"].get<double>(), std::ceil(alpha * 1e6));
    EXPECT_NEAR(alpha, 0.15703, 1e-5);
    const auto point =
        bayesaim(fmt::format("theory --width 0.5 --alpha {} --format json", alpha)).json()["points"][0];
    EXPECT_EQ(found["estimation_error"], point["estimation_error"]);
    EXPECT_EQ(found["generalization_error"], point["generalization_error"]);
    EXPECT_EQ(found["error_without_data"], 1);
    EXPECT_DOUBLE_EQ(found["strong_recovery"].get<double>(), 0.1875);
}

TEST(SamplesCommand, MemoryFollowsTheStorageOfTokens) {
    const std::string call = "samples --width 0.5 --dim 1000 --target-error 0.1 --format json";
    const double memory = bayesaim(call).json()["estimated_bytes"].get<double>(),
                 single = bayesaim(call + " --precision float").json()["estimated_bytes"].get<double>(),
                 regenerated =
                     bayesaim(call + " --token-storage regenerate").json()["estimated_bytes"].get<double>();
    const double tokens = 157031.0 * 2 * 1000 * 8;
    EXPECT_NEAR(memory - single, tokens / 2, 0.01 * tokens);
    EXPECT_NEAR(memory - regenerated, tokens, 0.01 * tokens);
}

TEST(SamplesCommand, AnErrorThatNoDataReachIsAbsent) {
    const auto found =
        bayesaim("samples --channel linear --label-noise 1 --target-error 1e-9 --format json").json();
    EXPECT_TRUE(found["alpha"].is_null());
    EXPECT_TRUE(found["samples"].is_null());
    EXPECT_FALSE(found.contains("estimated_seconds"));
}

TEST(SamplesCommand, NoErrorNeedsTheThresholdOfStrongRecovery) {
    const auto found = bayesaim("samples --width 0.5 --dim 100 --target-error 0 --format json").json();
    EXPECT_NEAR(found["alpha"].get<double>(), 0.1875, 1e-12);
}

TEST(SamplesCommand, BadCallsGetOneLine) {
    for (const cli::BadCall& call :
         {cli::BadCall{"samples", "--target-error is required"},
          cli::BadCall{"samples --target-error -1", "--target-error must be non-negative"},
          cli::BadCall{"samples --target-error 1 --dim 1", "--dim must be at least 2"},
          cli::BadCall{"samples --target-error 1 --precision half", "--precision must be"}})
        cli::expect_bad_usage(call);
}

TEST(PhaseCommand, EachPointHasTheThresholdOfItsWidth) {
    const auto points = bayesaim("phase --alpha 0.1,0.2 --width 0.5,1 --format json").json()["points"];
    for (const auto& point : points) {
        const double width = point["width"].get<double>();
        EXPECT_NEAR(point["strong_recovery"].get<double>(), 0.5 * (width - width * width / 2), 1e-15);
    }
    EXPECT_TRUE(bayesaim("phase --channel hardmax --alpha 0.1 --width 0.5 --format json")
                    .json()["points"][0]["strong_recovery"]
                    .is_null());
}

TEST(SpectrumCommand, EigenvaluesAreThoseOfOneSampledMatrix) {
    const auto found =
        bayesaim("spectrum --width 0.5 --noise-variance 0.1 --dim 300 --eigenvalues --format json").json();
    ASSERT_EQ(found["eigenvalues"].size(), 300U);
    double mean = 0, square = 0;
    for (const double value : found["eigenvalues"]) {
        mean += value / 300;
        square += value * value / 300;
    }
    // Scatter of one matrix of this size; without noise the second moment would be 1.5, not 1.6.
    EXPECT_NEAR(mean, found["mean"].get<double>(), 0.02);
    EXPECT_NEAR(square, found["second_moment"].get<double>(), 0.05);
    EXPECT_FALSE(
        bayesaim("spectrum --width 0.5 --noise-variance 0.1 --format json").json().contains("eigenvalues"));
    cli::expect_bad_usage(
        {"spectrum --estimator erm --channel linear --regularization 0.1 --alpha 0.1 --eigenvalues",
         "--eigenvalues cannot be combined with --estimator erm"});
}

TEST(TheoryCommand, EstimationAloneHasTheSameErrors) {
    const std::string call = "theory --tokens 3 --width 0.5 --alpha 0.02,0.05 --format json";
    const auto whole = bayesaim(call).json()["points"],
               alone = bayesaim(call + " --estimation-only").json()["points"];
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(whole[i]["estimation_error"], alone[i]["estimation_error"]);
        EXPECT_TRUE(whole[i]["generalization_error"].is_number());
        EXPECT_TRUE(alone[i]["generalization_error"].is_null());
        EXPECT_TRUE(alone[i]["plugin_generalization_error"].is_null());
    }
    cli::expect_bad_usage({"theory --estimator erm --regularization 0.1 --alpha 0.1 --estimation-only",
                           "cannot be combined with"});
}
