// SPDX-License-Identifier: MIT
// --aspect: cross-attention whose keys have another dimension than the queries.
#include <cmath>

#include "cli/program.hpp"

namespace {

using cli::bayesaim;

TEST(AspectOption, TheoryHasThePublishedNumbers) {
    const auto result = bayesaim(
        "theory --channel linear --attention cross --tokens 1 --key-tokens 1 --aspect 2 --width 0.5 --alpha "
        "0.3,0.6 "
        "--format json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto json = result.json();
    EXPECT_EQ(json["configuration"]["aspect"], 2);
    EXPECT_NEAR(json["points"][0]["estimation_error"].get<double>(), 0.590245391, 2e-9);
    EXPECT_NEAR(json["points"][1]["estimation_error"].get<double>(), 0.051176643, 2e-9);
}

TEST(AspectOption, AspectOneIsNoOption) {
    const std::string call = "theory --attention cross --width 0.5 --alpha 0.1,0.3 --format json";
    EXPECT_EQ(bayesaim(call).out, bayesaim(call + " --aspect 1").out);
}

TEST(AspectOption, ThresholdAndPhaseCountParameters) {
    const auto threshold = bayesaim("threshold --attention cross --aspect 2 --width 0.5 --format json");
    ASSERT_EQ(threshold.exit_code, 0) << threshold.err;
    EXPECT_NE(threshold.out.find("0.3125"), std::string::npos) << threshold.out;  // 0.625/(T (Tk - 1))
    const auto phase =
        bayesaim("phase --attention cross --aspect 2 --widths 0.5,1 --alpha 0.9x,1.1x --format json");
    ASSERT_EQ(phase.exit_code, 0) << phase.err;
    EXPECT_EQ(phase.json()["configuration"]["aspect"], 2);
    EXPECT_EQ(phase.json()["points"].size(), 4u);
}

TEST(AspectOption, AmpIsNextToTheory) {
    const auto amp = bayesaim(
        "amp --attention cross --aspect 2 --width 0.5 --alpha 0.2 --dim 50 --seeds 4 --format json --quiet");
    ASSERT_EQ(amp.exit_code, 0) << amp.err;
    const auto json = amp.json();
    const auto point = json["points"][0];
    EXPECT_EQ(json["configuration"]["aspect"], 2);
    EXPECT_NEAR(point["mean_error"].get<double>(), point["theory_error"].get<double>(), 0.08) << amp.out;
}

/// generate, fit and predict on keys of 90 dimensions and queries of 60.
TEST(AspectOption, FilesHaveBothDimensions) {
    const cli::Workplace place;
    const std::string model = " --attention cross --key-tokens 3 --aspect 1.5 --width 0.5 --dim 60 ";
    const std::string data = place.file("data.h5"), test = place.file("test.h5"),
                      estimate = place.file("estimate.h5");
    const auto made = bayesaim("generate" + model + "--alpha 0.1 --output " + data + " --format json");
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_EQ(made.json()["points"][0]["samples"], 540);  // 0.1 * 60 * 90
    EXPECT_EQ(made.json()["points"][0]["key_dim"], 90);
    ASSERT_EQ(bayesaim("generate" + model + "--alpha 0.5 --test --output " + test).exit_code, 0);
    const auto fit = bayesaim("fit " + data + " --output " + estimate + " --format json");
    ASSERT_EQ(fit.exit_code, 0) << fit.err;
    EXPECT_EQ(fit.json()["configuration"]["aspect"], 1.5);
    EXPECT_NEAR(fit.json()["points"][0]["alpha"].get<double>(), 0.1, 1e-12);
    EXPECT_LT(fit.json()["points"][0]["measured_error"].get<double>(), 0.6);
    const auto predict =
        bayesaim("predict " + estimate + " " + test + " --output " + place.file("p.h5") + " --format json");
    ASSERT_EQ(predict.exit_code, 0) << predict.err;
    const auto point = predict.json()["points"][0];
    EXPECT_NEAR(point["generalization_error"].get<double>(),
                point["expected_generalization_error"].get<double>(),
                0.2 * point["expected_generalization_error"].get<double>());
    // what contradicts the arrays
    const auto refused = bayesaim("fit " + data + " --aspect 2 --output " + place.file("no.h5"));
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.err.find("--aspect must be 1.5: tokens have dimension 60, key tokens 90, got 2"),
              std::string::npos)
        << refused.err;
    const std::string square = place.file("square.h5");
    ASSERT_EQ(bayesaim("generate --attention cross --key-tokens 3 --dim 60 --alpha 0.1 --output " + square)
                  .exit_code,
              0);
    const auto other = bayesaim("predict " + estimate + " " + square + " --output " + place.file("no.h5"));
    EXPECT_EQ(other.exit_code, 1);
    EXPECT_NE(other.err.find("dimension of the key tokens must be 90"), std::string::npos) << other.err;
    EXPECT_EQ(bayesaim("fit " + square + " --aspect 1.5 --output " + place.file("no.h5")).exit_code, 1);
}

TEST(AspectOption, DenoiseMeasuresTheMmse) {
    const auto result = bayesaim(
        "denoise --prior bilinear --aspect 2 --width 0.5 --noise-variance 0.5 --dim 300 --format json");
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto point = result.json()["points"][0];
    EXPECT_NEAR(point["predicted_error"].get<double>(), 0.247300203, 1e-8);
    EXPECT_NEAR(point["relative_difference"].get<double>(), 0, 0.03);
    EXPECT_NEAR(point["error_before"].get<double>(), 0.5, 0.02);
}

TEST(AspectOption, StudiesHaveIt) {
    const cli::Workplace place;
    const std::string study =
        place.write("study.toml",
                    "attention = \"cross\"\nwidth = 0.5\naspect = [1.0, 2.0]\nalpha = 0.2\n"
                    "[[run]]\nestimator = \"theory\"\n"
                    "[[run]]\nestimator = \"amp\"\ndim = 20\nmax_iterations = 20\n");
    const auto sweep = bayesaim("sweep " + study + " --quiet --output " + place.file("results"));
    ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
    EXPECT_NE(cli::read(place.file("results/results.csv")).find("aspect"), std::string::npos);
    EXPECT_NE(
        bayesaim("sweep " +
                 place.write("tied.toml", "aspect = 2.0\n[[run]]\nestimator = \"theory\"\nalpha = 0.2\n") +
                 " --quiet --output " + place.file("no"))
            .err.find("aspect"),
        std::string::npos);
}

class BadAspect : public testing::TestWithParam<cli::BadCall> {};
TEST_P(BadAspect, GivesOneLineAndExitCodeOne) { cli::expect_bad_usage(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    Program, BadAspect,
    testing::Values(cli::BadCall{"theory --alpha 0.1 --attention cross --aspect 0",
                                 "--aspect must be positive and finite, got 0"},
                    cli::BadCall{"theory --alpha 0.1 --attention cross --aspect=-2",
                                 "--aspect must be positive and finite, got -2"},
                    cli::BadCall{"theory --alpha 0.1 --attention cross --aspect 1e9", "--aspect must be"},
                    cli::BadCall{"amp --alpha 0.3 --attention cross --aspect 0.001 --dim 20",
                                 "aspect must be one that leaves a key dimension at dimension 20, got 0.001"},
                    cli::BadCall{"theory --alpha 0.1 --aspect 2",
                                 "--aspect applies only to --attention cross"},
                    cli::BadCall{"amp --alpha 0.1 --attention masked --tokens 3 --aspect 2",
                                 "--aspect applies only to --attention cross"},
                    cli::BadCall{"threshold --attention cross --prior spectrum --spectrum x --aspect 2",
                                 "--aspect applies only to --prior bilinear or ginibre"},
                    cli::BadCall{"theory --alpha 0.1 --attention cross --aspect 2 --limit small-width",
                                 "--aspect cannot be combined with --limit small-width"},
                    cli::BadCall{"spectrum --prior bilinear --noise-variance 0.1 --aspect 2",
                                 "--aspect is not available for this command"}));

}  // namespace
