// SPDX-License-Identifier: MIT
// Several layers and heads, from the command line.
#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include <gtest/gtest.h>

#include "hdf5_arrays.hpp"
#include "program.hpp"

namespace {

using cli::bayesaim;

/// With one layer the row of the table makes the closed-form channel.
TEST(LayersTheory, OneLayerIsSoftmax) {
    const auto deep =
        bayesaim("theory --channel deep-softmax --layers 1 --width 0.5 --alpha 0.12 --format json");
    ASSERT_EQ(deep.exit_code, 0) << deep.err;
    EXPECT_NEAR(deep.json()["points"][0]["estimation_error"].get<double>(), 0.2744104098, 1e-9);
}

/// An independent implementation gives C = (0.8238, -0.0041, 0.5562). The second layer is learned first.
TEST(LayersTheory, TwoLayersReachTheReference) {
    const auto run = bayesaim(
        "theory --channel deep-softmax --width 0.5 --alpha 0.1 --integration-points 512 --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    const double standard_error = point["standard_error"];
    EXPECT_NEAR(point["estimation_error"].get<double>(), 1.38002, 4 * standard_error + 3e-3);
    EXPECT_NEAR(point["layer_errors"][0].get<double>(), 0.82378, 4 * standard_error + 3e-3);
    EXPECT_NEAR(point["error_matrix"][0][1].get<double>(), -0.00409, 2e-3);
    EXPECT_EQ(point["overlap"].size(), 2U);
    EXPECT_EQ(point["conjugate_overlap"][1].size(), 2U);
}

/// The read-out determines both layers about equally well. Without data the error is 2.
TEST(LayersTheory, ReadOutsOfSeq2seqTellBothLayersAlike) {
    const auto run = bayesaim(
        "theory --channel deep-seq2seq --width 0.5 --alpha 0.1 --integration-points 64 --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto point = run.json()["points"][0];
    const double standard_error = point["standard_error"], error = point["estimation_error"];
    EXPECT_LT(standard_error, 0.03);
    EXPECT_NEAR(error, 1.361, 4 * standard_error);  // 8192 points
    EXPECT_NEAR(point["layer_errors"][0].get<double>() / point["layer_errors"][1].get<double>(), 1, 0.06);
}

TEST(LayersThreshold, IsTheLawOfCounting) {
    const auto strong = [](const std::string& arguments) {
        return bayesaim("threshold --format json " + arguments).json()["strong_recovery"].get<double>();
    };
    EXPECT_NEAR(strong("--channel deep-softmax --width 0.5"), 0.375, 1e-12);
    EXPECT_NEAR(strong("--channel deep-softmax --layers 1 --width 0.5"), strong("--width 0.5"), 1e-12);
    EXPECT_NEAR(strong("--channel deep-softmax --width 0.4,0.8"), (0.32 + 0.48) / 2, 1e-12);
}

TEST(LayersAmpCommand, LearnsBothLayersAndIsDeterministic) {
    const std::string command =
        "amp --channel deep-softmax --width 0.5 --alpha 0.2 --dim 60 --seed 500 --seeds 3 --iterations 15 "
        "--format json --threads ";
    const auto one = bayesaim(command + "1").json()["points"][0],
               two = bayesaim(command + "2 --token-storage regenerate").json()["points"][0];
    EXPECT_EQ(one["mean_error"], two["mean_error"]);
    // At d = 60 an independent implementation ends at 0.583(22) and 0.221(8); 1 each without data.
    const double standard_error = one["standard_error"];
    EXPECT_LT(standard_error, 0.06);
    EXPECT_NEAR(one["layer_errors"][0].get<double>(), 0.583, 4 * std::hypot(standard_error, 0.022));
    EXPECT_NEAR(one["layer_errors"][1].get<double>(), 0.221, 4 * std::hypot(standard_error, 0.008));
    EXPECT_NEAR(one["theory_error"].get<double>(), 0.753, 0.03);
}

TEST(LayersAmpCommand, RecordsEveryLayerAndPredictsNewSamples) {
    const cli::Workplace place;
    const auto file = place.file("record.csv");
    const auto run = bayesaim(
        "amp --channel deep-softmax --width 0.5 --alpha 0.3 --dim 50 --seeds 2 --iterations 16 "
        "--test-samples 1000 --format json --record " +
        file);
    EXPECT_EQ(run.exit_code, 0);  // too few iterations: a status
    const auto point = run.json()["points"][0];
    EXPECT_EQ(point["status"], "iteration limit");
    const double measured = point["generalization_error"], theory = point["theory_generalization_error"];
    // 16 iterations are not all.
    EXPECT_GT(measured, 0.8 * theory);
    EXPECT_LT(measured, 2 * theory);
    EXPECT_GT(point["plugin_generalization_error"].get<double>(), measured);
    EXPECT_GT(point["theory_plugin_generalization_error"].get<double>(), theory);
    std::istringstream lines(cli::read(file));
    std::string header, line;
    std::getline(lines, header);
    EXPECT_EQ(header.rfind("alpha,seed,iteration,true_error,true_error_1,true_error_2,predicted_error", 0),
              0U)
        << header;
    int count = 0;
    for (; std::getline(lines, line); ++count) {
        double alpha, seed, iteration, sum, first, second;
        char comma;
        std::istringstream(line) >> alpha >> comma >> seed >> comma >> iteration >> comma >> sum >> comma >>
            first >> comma >> second;
        EXPECT_NEAR(sum, first + second, 1e-12);
    }
    EXPECT_EQ(count, 32);
}

/// Three layers and three tokens, without residual connections: the last layer is learned best, and the error
/// of the average is reported.
TEST(LayersTheory, TakesLayersTokensAndResidual) {
    for (const auto& [arguments, layers] :
         {std::pair("--layers 3 --alpha 0.15", 3U), std::pair("--tokens 3 --alpha 0.05", 2U),
          std::pair("--residual 0 --alpha 0.1", 2U)}) {
        const auto run =
            bayesaim(std::string("theory --channel deep-softmax --width 0.5 --integration-points 16 "
                                 "--format json ") +
                     arguments);
        ASSERT_EQ(run.exit_code, 0) << run.err;
        const auto point = run.json()["points"][0];
        const std::vector<double> errors = point["layer_errors"];
        ASSERT_EQ(errors.size(), layers);
        EXPECT_EQ(*std::min_element(errors.begin(), errors.end()), errors.back()) << arguments;
        EXPECT_GT(point["standard_error"].get<double>(), 0) << arguments;
        EXPECT_LT(point["standard_error"].get<double>(), 0.08 * point["estimation_error"].get<double>())
            << arguments;
    }
}

class LayersFiles : public testing::Test {
  protected:
    const cli::Workplace place;
    const std::string
        data = place.file("data.h5"),
        bare = place.file("bare.h5"), test = place.file("test.h5"), estimate = place.file("estimate.h5"),
        make =
            "generate --channel deep-softmax --width 0.5,0.3 --residual 1.5 --beta 1.5 --dim 30 "
            "--alpha 0.2 --output ";
};

TEST_F(LayersFiles, FitNeedsNoRepetitionAndNoTeacher) {
    ASSERT_EQ(bayesaim(make + data).exit_code, 0);
    ASSERT_EQ(bayesaim(make + bare + " --no-weights").exit_code, 0);
    ASSERT_EQ(bayesaim(make + test + " --test").exit_code, 0);
    const auto fit = bayesaim("fit " + data + " --iterations 20 --format json --output " + estimate);
    const auto configuration = fit.json()["configuration"];
    EXPECT_EQ(configuration["width"], nlohmann::json({0.5, 0.3}));
    EXPECT_EQ(configuration["layers"], 2);
    EXPECT_EQ(configuration["residual"], 1.5);
    EXPECT_EQ(configuration["beta"], 1.5);

    const std::vector<double> truth = cli::read_array(data, "weights"),
                              found = cli::read_array(estimate, "weights"),
                              error = cli::read_array(estimate, "error");
    ASSERT_EQ(found.size(), 1800U);
    ASSERT_EQ(error.size(), 4U);
    const auto point = fit.json()["points"][0];
    for (std::size_t l = 0; l < 2; ++l) {
        double sum = 0;
        for (std::size_t i = 900 * l; i < 900 * (l + 1); ++i) sum += std::pow(truth[i] - found[i], 2) / 30;
        EXPECT_NEAR(point["measured_layer_errors"][l].get<double>(), sum, 1e-12);
        EXPECT_LT(sum, 0.8);  // 1 without data
        EXPECT_EQ(point["predicted_layer_errors"][l].get<double>(), error[3 * l]);
    }
    EXPECT_NEAR(point["predicted_error"].get<double>(), error[0] + error[3], 1e-15);
    EXPECT_LT(point["training_fit"].get<double>(), 0.05);

    // The same from the data alone.
    const auto other = place.file("other.h5");
    const auto blind =
        bayesaim("fit " + bare + " --iterations 20 --threads 1 --format json --output " + other);
    EXPECT_EQ(cli::read(other), cli::read(estimate));
    EXPECT_TRUE(blind.json()["points"][0]["measured_error"].is_null());
    EXPECT_EQ(blind.json()["points"][0]["training_fit"], point["training_fit"]);

    const auto prediction = bayesaim("predict " + estimate + " " + test + " --format json --output " +
                                     place.file("predictions.h5"));
    ASSERT_EQ(prediction.exit_code, 0) << prediction.err;
    const auto new_samples = prediction.json()["points"][0];
    const double measured = new_samples["generalization_error"];
    EXPECT_LT(measured, new_samples["plugin_generalization_error"].get<double>());
    EXPECT_GT(measured, 1.5 * point["training_fit"].get<double>());
    // At d = 30 the error that AMP predicts, and the prediction error that follows, are too small by a third.
    EXPECT_NEAR(measured / new_samples["expected_generalization_error"].get<double>(), 1, 0.45);
}

/// The read-out of a seq2seq model: rows of the outputs sum to (c+1)^(L-1).
TEST_F(LayersFiles, ReadOutsOfSeq2seqAreFitted) {
    const auto made = bayesaim(
        "generate --channel deep-seq2seq --width 0.5 --residual 0.5 --dim 30 --alpha 0.3 "
        "--output " +
        data);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const std::vector<double> outputs = cli::read_array(data, "outputs");
    ASSERT_EQ(outputs.size(), 4 * 270U);
    for (std::size_t i = 0; i < outputs.size(); i += 2) ASSERT_NEAR(outputs[i] + outputs[i + 1], 1.5, 1e-12);
    const auto fit = bayesaim("fit " + data + " --iterations 12 --format json --output " + estimate);
    EXPECT_EQ(fit.json()["configuration"]["channel"], "deep-seq2seq");
    const auto point = fit.json()["points"][0];
    for (const int l : {0, 1}) EXPECT_LT(point["measured_layer_errors"][l].get<double>(), 0.7);
    const auto prediction = bayesaim("predict " + estimate + " " + data + " --format json --output " +
                                     place.file("predictions.h5"));
    ASSERT_EQ(prediction.exit_code, 0) << prediction.err;
    const auto bad = bayesaim("fit " + data + " --residual 1 --output " + place.file("bad.h5"));
    EXPECT_EQ(bad.exit_code, 1);
    EXPECT_NE(bad.err.find("sum of the outputs of sample 0, row 0 must be 2, got 1.5"), std::string::npos)
        << bad.err;
}

/// Read-outs of saturated attention, whose row sums are right up to round-off, are accepted. AMP is lost on
/// them and ends with a status, not with an error message about its own numbers.
TEST_F(LayersFiles, SaturatedReadOutsEndWithAStatus) {
    ASSERT_EQ(
        bayesaim("generate --channel deep-seq2seq --width 0.5 --residual 0.7 --beta 30 --dim 20 --alpha 1 "
                 "--output " +
                 data)
            .exit_code,
        0);
    const auto fit = bayesaim("fit " + data + " --iterations 1 --format json --output " + estimate);
    EXPECT_EQ(fit.exit_code, 0) << fit.err;
    EXPECT_NE(fit.json()["points"][0]["status"], "converged");
}

TEST_F(LayersFiles, BadOnesGiveOneLineAndLeaveNoOutput) {
    const cli::Arrays good = {{"tokens", {{6, 2, 4}, std::vector<double>(48, 0.5)}},
                              {"log_outputs", {{6, 2, 2}, std::vector<double>(24, std::log(0.5))}}};
    const struct {
        const char* what;
        std::function<void(cli::Arrays&, cli::Texts&)> spoil;
        const char* complaint;
    } cases[] = {{"one layer of weights",
                  [](cli::Arrays& a, cli::Texts&) {
                      a["weights"] = {{1, 4, 4}, std::vector<double>(16, 1)};
                  },
                  "dataset /weights must be of shape (2, 4, 4), as /tokens is (6, 2, 4), got (1, 4, 4)"},
                 {"NaN in the second layer",
                  [](cli::Arrays& a, cli::Texts&) {
                      a["weights"] = {{2, 4, 4}, std::vector<double>(32, 1)};
                      a["weights"].values[20] = std::nan("");
                  },
                  "dataset /weights, sample 1, must be a finite number, got nan"},
                 {"probabilities", [](cli::Arrays& a, cli::Texts&) { a["log_outputs"].values[6] = 0; },
                  "dataset /log_outputs: sum of the probabilities of sample 1, row 1 must be 1, got 1.5"},
                 {"layers", [](cli::Arrays&, cli::Texts& t) { t["layers"] = "two"; },
                  "attribute layers must be a number, got 'two'"},
                 {"residual", [](cli::Arrays&, cli::Texts& t) { t["residual"] = "strong"; },
                  "attribute residual must be a number, got 'strong'"},
                 {"widths", [](cli::Arrays&, cli::Texts& t) { t["width"] = "0.5,wide"; },
                  "attribute width must be a number, or one for each layer: 0.4,0.8, got '0.5,wide'"},
                 {"too many widths", [](cli::Arrays&, cli::Texts& t) { t["width"] = "0.5,0.5,0.5"; },
                  "width must be one number, or one for each of the 2 layers, got 3 numbers"}};
    for (const auto& bad : cases) {
        cli::Arrays arrays = good;
        cli::Texts attributes = {{"channel", "deep-softmax"}};
        bad.spoil(arrays, attributes);
        cli::write_file(data, arrays, attributes);
        const std::string call = "fit " + data + " --output " + estimate;
        cli::expect_bad_usage({call.c_str(), bad.complaint});
        EXPECT_EQ(place.file_count(), 1U) << bad.what;
    }
}

/// Several layers take the options of one: starts, adaptive damping, float tokens, a response, a picture.
TEST(LayersAmpCommand, TakesTheOptionsOfOneLayer) {
    const std::string amp =
        "amp --channel deep-softmax --width 0.5 --alpha 0.3 --dim 30 --iterations 2 --format json ";
    for (const char* more : {"--initial prior", "--initial informed", "--adaptive-damping",
                             "--precision float", "--response power", "--response slope"}) {
        const auto run = bayesaim(amp + more);
        EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 2) << run.err;  // two iterations are hardly enough
        EXPECT_EQ(run.json()["points"][0]["layer_errors"].size(), 2U) << more;
    }
    // An informed start is next to the truth.
    EXPECT_LT(bayesaim(amp + "--initial informed").json()["points"][0]["mean_error"].get<double>(), 0.2);
    const cli::Workplace place;
    const auto picture = place.file("curve.svg");
    ASSERT_EQ(
        bayesaim("theory --channel deep-softmax --width 0.5 --alpha 0.1,0.2 --integration-points 16 --plot " +
                 picture)
            .exit_code,
        0);
    EXPECT_NE(cli::read(picture).find("<svg"), std::string::npos);
}

/// M heads of width rho whose logits are averaged are one layer of width M rho, scaled by 1/sqrt(M).
TEST(MultiHead, IsAWiderLayer) {
    const auto error = [](const std::string& arguments) {
        return bayesaim("theory --alpha 0.1 --format json " + arguments)
            .json()["points"][0]["estimation_error"]
            .get<double>();
    };
    EXPECT_NEAR(3 * error("--channel multi-head --heads 3 --width 0.2"), error("--width 0.6"), 1e-10);
}

TEST(LayersCommands, RejectNonsense) {
    for (const auto& [arguments, complaint] :
         {std::pair("theory --alpha 0.1 --channel deep-softmax --residual -1", "residual"),
          std::pair("theory --alpha 0.1 --channel deep-softmax --layers 0", "--layers"),
          std::pair("theory --alpha 0.1 --channel deep-softmax --width 0.1,0.2,0.3",
                    "width must be one number, or one for each of the 2 layers, got 3 numbers"),
          std::pair("theory --alpha 0.1 --channel deep-softmax --tokens 1", "tokens"),
          std::pair("amp --alpha 0.1 --width 0.1,0.2", "width must be one number, got 2 numbers"),
          std::pair("theory --alpha 0.1 --channel deep-softmax --limit small-width",
                    "--limit small-width is not available for several layers"),
          std::pair("amp --alpha 0.1 --channel deep-softmax --label-noise 1",
                    "--label-noise applies only to --channel linear (channel is deep-softmax)"),
          std::pair("theory --alpha 0.1 --layers 2",
                    "--layers applies only to --channel deep-softmax or deep-seq2seq (channel is softmax)"),
          std::pair("threshold --channel hardmax --residual 1",
                    "--residual applies only to --channel deep-softmax or"),
          std::pair("gd --alpha 0.1 --channel linear --layers 2", "--layers"),  // gd has no such option
          std::pair("gd --alpha 0.1 --channel deep-softmax",
                    "--channel deep-softmax is not available for this command"),
          std::pair("theory --alpha 0.1 --channel deep-softmax --heads 2",
                    "--heads applies only to --channel multi-head"),
          std::pair("theory --alpha 0.1 --channel deep-seq2seq --tokens 3",
                    "deep-seq2seq channel: tokens must be 2, got 3"),
          std::pair("theory --alpha 0.1 --channel deep-seq2seq --layers 1", "deep-seq2seq channel: layers"),
          std::pair("phase --alpha 0.1,0.2 --widths 0.1,0.2 --channel deep-seq2seq",
                    "--channel deep-seq2seq is not available for this command"),
          std::pair("generate --alpha 0.1 --channel deep-softmax --residual=-1 --output a.h5", "residual"),
          std::pair("theory --alpha 0.1 --channel multi-head --heads 0", "--heads"),
          std::pair("theory --alpha 0.1 --channel multi-head --prior wigner",
                    "prior wigner cannot be combined with channel multi-head"),
          std::pair("phase --alpha 0.1,0.2 --widths 0.1,0.2 --channel deep-softmax",
                    "--channel deep-softmax is not available for this command")}) {
        cli::expect_bad_usage({arguments, complaint});
    }
}

}  // namespace
