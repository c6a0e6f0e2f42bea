// SPDX-License-Identifier: MIT
// --attention: separate queries and keys.
#include <limits>
#include <string>

#include "cli/hdf5_arrays.hpp"
#include "cli/program.hpp"

namespace {

using cli::bayesaim;

class UntiedFiles : public ::testing::TestWithParam<std::string> {};

/// Above recovery the estimate is the truth, the error that AMP predicts is small too, and new samples are predicted.
/// Outputs that are not seen are minus infinity in these files (softmax). With the power as response the predicted
/// error was 0.25, or the run did not end.
TEST_P(UntiedFiles, AreGeneratedFittedAndPredicted) {
    const cli::Workplace place;
    const std::string model =
        "generate --width 0.5 --tokens 3 --dim 50 --format json --attention " + GetParam();
    const std::string data = place.file("data.h5"), test = place.file("test.h5"),
                      estimate = place.file("estimate.h5"), out = place.file("predictions.h5");
    ASSERT_EQ(bayesaim(model + " --alpha 0.5 --output " + data).exit_code, 0);
    const auto run = bayesaim("fit " + data + " --format json --output " + estimate);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    EXPECT_EQ(point["status"], "exact recovery") << run.out;
    EXPECT_LT(point["measured_error"].get<double>(), 1e-6);
    EXPECT_LT(point["predicted_error"].get<double>(), 1e-6);
    ASSERT_EQ(bayesaim(model + " --alpha 0.1 --test --output " + test).exit_code, 0);
    const auto predicted = bayesaim("predict " + estimate + " " + test + " --format json --output " + out);
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    EXPECT_LT(predicted.json()["points"][0]["generalization_error"].get<double>(), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Attentions, UntiedFiles, ::testing::Values("cross", "masked", "self", "causal"));

/// Neither the lowest number, with which many mask, nor another one changes a bit of the estimate.
TEST(MaskedOutputs, MayHaveAnyFiniteValueOrMinusInfinity) {
    constexpr double lowest = std::numeric_limits<double>::lowest();
    for (const auto& [channel, array] :
         {std::pair("softmax", "log_outputs"), std::pair("linear --label-noise 0.1", "outputs")}) {
        const cli::Workplace place;
        const std::string data = place.file("data.h5"), estimate = place.file("estimate.h5");
        ASSERT_EQ(
            bayesaim("generate --attention causal --tokens 3 --width 0.5 --dim 20 --alpha 0.1 --channel " +
                     std::string(channel) + " --output " + data)
                .exit_code,
            0);
        std::vector<double> outputs = cli::read_array(data, array), weights;
        for (const double masked : {0.0, lowest, -lowest, -std::numeric_limits<double>::infinity()}) {
            for (std::size_t i = 0; i < outputs.size(); i += 9)
                outputs[i + 1] = outputs[i + 2] = outputs[i + 5] = masked;
            cli::overwrite_array(data, array, outputs);
            const auto run = bayesaim("fit " + data + " --iterations 5 --output " + estimate);
            ASSERT_TRUE(run.exit_code == 0 || run.exit_code == 2) << run.err;
            const std::vector<double> found = cli::read_array(estimate, "weights");
            if (weights.empty()) weights = found;
            EXPECT_EQ(found, weights) << channel << ", masked with " << masked;
        }
    }
}

/// The prior of untied attention is bilinear, in studies too, and both parts of S have a column.
TEST(UntiedStudies, NameThePriorAndHaveTheErrorsOfBothParts) {
    const cli::Workplace place;
    const std::string file = place.write("study.toml",
                                         "width = 0.5\nestimator = \"theory\"\nalpha = 0.2\n"
                                         "attention = [\"tied\", \"cross\", \"self\"]\n"),
                      out = place.file("out");
    ASSERT_EQ(bayesaim("sweep " + file + " --quiet --output " + out).exit_code, 0);
    const std::string table = cli::read(out + "/results.csv");
    EXPECT_NE(table.find("theory,wishart,"), std::string::npos) << table;
    EXPECT_NE(table.find("theory,bilinear,0.5,softmax,2,self"), std::string::npos) << table;
    EXPECT_NE(table.find("error_1,error_2"), std::string::npos) << table;
    EXPECT_NE(table.find("0.18355"), std::string::npos) << table;  // of the symmetric part
}

/// Rows of three entries: averages are sampled, but smooth in the order parameters, so that state evolution converges.
TEST(UntiedTheory, CausalHardmaxOfThreeTokensConverges) {
    const auto run = bayesaim(
        "theory --attention causal --channel hardmax --tokens 3 --width 0.5 --alpha 1 --integration-points "
        "1024 "
        "--format json --quiet");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    EXPECT_EQ(point["status"], "converged");
    EXPECT_NEAR(point["estimation_error"].get<double>(), 0.1453,
                0.0005);  // 8192 points: 0.14527; AMP, d = 100: 0.1438(18)
}

}  // namespace
