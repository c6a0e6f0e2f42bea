// SPDX-License-Identifier: MIT
// Several layers and heads, from the command line.
#include <gtest/gtest.h>

#include "program.hpp"

namespace {

using cli::bayesaim;

TEST(DeepTheory, OneLayerIsSoftmax) {
    const auto deep =
        bayesaim("theory --channel deep-softmax --layers 1 --width 0.5 --alpha 0.12 --format json");
    ASSERT_EQ(deep.exit_code, 0) << deep.err;
    EXPECT_NEAR(deep.json()["points"][0]["estimation_error"].get<double>(), 0.2744104098, 1e-9);
}

/// Reference of an independent implementation: C = (0.8238, -0.0041, 0.5562). The second layer is learned
/// first.
TEST(DeepTheory, TwoLayersReachTheReference) {
    const auto run = bayesaim(
        "theory --channel deep-softmax --width 0.5 --alpha 0.1 --integration-points 512 --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    const double standard_error = point["standard_error"];
    EXPECT_NEAR(point["estimation_error"].get<double>(), 1.38002, 4 * standard_error + 3e-3);
    EXPECT_NEAR(point["layer_errors"][0].get<double>(), 0.82378, 4 * standard_error + 3e-3);
    EXPECT_NEAR(point["error"][0][1].get<double>(), -0.00409, 2e-3);
    EXPECT_EQ(point["overlap"].size(), 2U);
    EXPECT_EQ(point["conjugate_overlap"][1].size(), 2U);
}

TEST(DeepThreshold, IsTheLawOfCounting) {
    const auto strong = [](const std::string& arguments) {
        return bayesaim("threshold --format json " + arguments).json()["strong_recovery"].get<double>();
    };
    EXPECT_NEAR(strong("--channel deep-softmax --width 0.5"), 0.375, 1e-12);
    EXPECT_NEAR(strong("--channel deep-softmax --layers 1 --width 0.5"), strong("--width 0.5"), 1e-12);
    EXPECT_NEAR(strong("--channel deep-softmax --width 0.4,0.8"), (0.32 + 0.48) / 2, 1e-12);
}

TEST(DeepAmpCommand, LearnsBothLayersAndIsDeterministic) {
    const std::string command =
        "amp --channel deep-softmax --width 0.5 --alpha 0.3 --dim 40 --iterations 12 --format json "
        "--threads ";
    const auto one = bayesaim(command + "1").json()["points"][0],
               two = bayesaim(command + "2").json()["points"][0];
    EXPECT_EQ(one["mean_error"], two["mean_error"]);
    EXPECT_LT(one["mean_error"].get<double>(), 1);  // 2 without data
    EXPECT_LT(one["layer_errors"][1].get<double>(), one["layer_errors"][0].get<double>());
}

/// M heads of width rho whose logits are averaged are one layer of width M rho, scaled by 1/sqrt(M).
TEST(MultiHead, IsAWiderLayer) {
    const auto error = [](const std::string& arguments) {
        return bayesaim("theory --alpha 0.1 --format json " + arguments)
            .json()["points"][0]["estimation_error"]
            .get<double>();
    };
    EXPECT_NEAR(2 * error("--channel multi-head --heads 2 --width 0.25"), error("--width 0.5"), 1e-10);
}

TEST(DeepCommands, RejectNonsense) {
    for (const auto& [arguments, complaint] :
         {std::pair("theory --alpha 0.1 --channel deep-softmax --residual -1", "residual"),
          std::pair("theory --alpha 0.1 --channel deep-softmax --layers 0", "--layers"),
          std::pair("theory --alpha 0.1 --channel deep-softmax --width 0.1,0.2,0.3",
                    "--width must be one number"),
          std::pair("theory --alpha 0.1 --channel deep-softmax --tokens 1", "tokens"),
          std::pair("theory --alpha 0.1 --width 0.1,0.2", "--width must be one number for one layer"),
          std::pair("theory --alpha 0.1 --channel deep-softmax --plot a.png", "--plot"),
          std::pair("amp --alpha 0.1 --channel deep-softmax --precision float", "--precision"),
          std::pair("theory --alpha 0.1 --channel multi-head --heads 0", "--heads"),
          std::pair("theory --alpha 0.1 --channel multi-head --prior wigner",
                    "--prior with --channel multi-head"),
          std::pair("phase --alpha 0.1,0.2 --widths 0.1,0.2 --channel deep-softmax", "of one layer")}) {
        cli::expect_bad_usage({arguments, complaint});
    }
}

}  // namespace
