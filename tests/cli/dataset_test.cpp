// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "hdf5_arrays.hpp"
#include "program.hpp"

namespace {

using cli::Array;
using cli::Arrays;
using cli::bayesaim;
using cli::read_array;
using cli::Texts;
using cli::write_file;

double read_number(const std::string& file, const char* name) {
    const hid_t in = H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT),
                attribute = H5Aopen(in, name, H5P_DEFAULT);
    double value = std::numeric_limits<double>::quiet_NaN();
    H5Aread(attribute, H5T_NATIVE_DOUBLE, &value);
    H5Aclose(attribute);
    H5Fclose(in);
    return value;
}

/// Six valid samples of two tokens in four dimensions, with hardmax labels.
Arrays good() {
    Array tokens{{6, 2, 4}, std::vector<double>(48)}, outputs{{6, 2, 2}, {}};
    for (std::size_t i = 0; i < tokens.values.size(); ++i)
        tokens.values[i] = std::sin(3.0 * static_cast<double>(i));
    for (int i = 0; i < 12; ++i)
        outputs.values.insert(outputs.values.end(), {i % 3 == 0 ? 0.0 : 1.0, i % 3 == 0 ? 1.0 : 0.0});
    return {{"tokens", tokens}, {"outputs", outputs}};
}

Array constant(std::vector<hsize_t> shape, double value) {
    const hsize_t size = std::accumulate(shape.begin(), shape.end(), hsize_t{1}, std::multiplies<>());
    return {std::move(shape), std::vector<double>(size, value)};
}

void expect_one_line(const cli::Run& run, const std::string& complaint) {
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find(complaint), std::string::npos) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

struct BadFile {
    const char* what;
    const char* channel;
    std::function<void(Arrays&, Texts&)> spoil;
    const char* complaint;
    friend std::ostream& operator<<(std::ostream& out, const BadFile& bad) { return out << bad.what; }
};

class FitOfABadFile : public testing::TestWithParam<BadFile> {};

TEST_P(FitOfABadFile, GivesOneLineAndLeavesNoOutput) {
    const cli::Workplace place;
    const auto file = place.file("bad.h5");
    Arrays arrays = good();
    Texts attributes;
    GetParam().spoil(arrays, attributes);
    write_file(file, arrays, attributes);
    const std::string channel = GetParam().channel;
    const auto run = bayesaim("fit " + file + " --output " + place.file("estimate.h5") +
                              (channel.empty() ? "" : " --channel " + channel));
    expect_one_line(run, GetParam().complaint);
    EXPECT_EQ(place.file_count(), 1U);
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

INSTANTIATE_TEST_SUITE_P(
    Dataset, FitOfABadFile,
    testing::Values(
        BadFile{"no tokens", "hardmax", [](Arrays& a, Texts&) { a.erase("tokens"); },
                "bad.h5': dataset /tokens must be in the file, got none"},
        BadFile{"no outputs", "hardmax", [](Arrays& a, Texts&) { a.erase("outputs"); },
                "bad.h5': dataset /outputs must be in the file, got none"},
        BadFile{"no log outputs", "softmax", [](Arrays& a, Texts&) { a.erase("outputs"); },
                "dataset /log_outputs must be in the file, got none"},
        BadFile{"rank 2", "hardmax",
                [](Arrays& a, Texts&) {
                    a["tokens"].shape = {12, 4};
                },
                "dataset /tokens must be an array (samples, tokens, dim), got 2 dimensions"},
        BadFile{"empty", "hardmax",
                [](Arrays& a, Texts&) {
                    a["tokens"] = constant({0, 2, 4}, 0);
                },
                "dataset /tokens must be a non-empty array"},
        BadFile{"other samples", "hardmax",
                [](Arrays& a, Texts&) {
                    a["outputs"] = constant({5, 2, 2}, 1);
                },
                "dataset /outputs must be of shape (6, 2, 2), as /tokens is (6, 2, 4), got (5, 2, 2)"},
        BadFile{"other tokens", "hardmax",
                [](Arrays& a, Texts&) {
                    a["outputs"] = constant({6, 3, 3}, 1);
                },
                "dataset /outputs must be of shape (6, 2, 2)"},
        BadFile{"other dim", "hardmax",
                [](Arrays& a, Texts&) {
                    a["weights"] = constant({1, 3, 3}, 1);
                },
                "dataset /weights must be of shape (1, 4, 4)"},
        BadFile{"two layers", "hardmax",
                [](Arrays& a, Texts&) {
                    a["weights"] = constant({2, 4, 4}, 1);
                },
                "dataset /weights must be of shape (1, 4, 4), as /tokens is (6, 2, 4), got (2, 4, 4)"},
        BadFile{"NaN token", "hardmax", [](Arrays& a, Texts&) { a["tokens"].values[25] = nan; },
                "dataset /tokens, sample 3, must be a finite number, got nan"},
        BadFile{"infinite token", "hardmax", [](Arrays& a, Texts&) { a["tokens"].values[47] = -infinity; },
                "dataset /tokens, sample 5, must be a finite number, got -inf"},
        BadFile{"NaN output", "hardmax", [](Arrays& a, Texts&) { a["outputs"].values[4] = nan; },
                "dataset /outputs, sample 1, must be a finite number, got nan"},
        BadFile{"NaN weight", "hardmax",
                [](Arrays& a, Texts&) {
                    a["weights"] = constant({1, 4, 4}, nan);
                },
                "dataset /weights, sample 0, must be a finite number, got nan"},
        BadFile{"probabilities", "softmax",
                [](Arrays& a, Texts&) {
                    a["outputs"] = constant({6, 2, 2}, 0.5);
                    a["outputs"].values[11] = 0.6;
                },
                "dataset /outputs: sum of the probabilities of sample 2, row 1 must be 1, got 1.1"},
        BadFile{"log-probabilities", "softmax",
                [](Arrays& a, Texts&) {
                    a["log_outputs"] = constant({6, 2, 2}, -1);
                },
                "dataset /log_outputs: sum of the probabilities of sample 0, row 0 must be 1, got 0.73"},
        BadFile{"zero probability", "softmax", [](Arrays&, Texts&) {},
                "dataset /outputs, probability of sample 0, must be positive and finite, got 0"},
        BadFile{"two ones", "hardmax", [](Arrays& a, Texts&) { a["outputs"].values[9] = 1; },
                "dataset /outputs: hardmax output of sample 2, row 0 must be one 1 and zeros"},
        BadFile{"no one", "hardmax", [](Arrays& a, Texts&) { a["outputs"].values[8] = 0; },
                "dataset /outputs: hardmax output of sample 2, row 0 must be one 1 and zeros"},
        BadFile{"far output", "linear", [](Arrays& a, Texts&) { a["outputs"].values[20] = 1e71; },
                "dataset /outputs: output of sample 5, row 0 must be between -1e+70 and 1e+70, got 1e+71"},
        BadFile{"infinite output", "linear", [](Arrays& a, Texts&) { a["outputs"].values[20] = -infinity; },
                "dataset /outputs: output of sample 5, row 0 must be a finite number, got -inf"},
        BadFile{"not symmetric", "linear", [](Arrays& a, Texts&) { a["outputs"].values[1] = 7; },
                "dataset /outputs: output of sample 0, row 0 must be symmetric"},
        BadFile{"unknown channel", "", [](Arrays&, Texts& texts) { texts["channel"] = "soft\nmax"; },
                "channel must be one of linear, softmax, hardmax"},
        BadFile{"text for a number", "hardmax", [](Arrays&, Texts& texts) { texts["width"] = "wide"; },
                "attribute width must be a number, or one for each layer: 0.4,0.8, got 'wide'"}));

TEST(FitOfAFile, OfTextInsteadOfNumbersIsRefused) {
    const cli::Workplace place;
    const auto file = place.file("text.h5");
    const hid_t out = H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t shape[] = {6, 2, 4};
    const hid_t space = H5Screate_simple(3, shape, nullptr);
    H5Dclose(H5Dcreate2(out, "tokens", H5T_C_S1, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Fclose(out);
    expect_one_line(bayesaim("fit " + file + " --output " + place.file("e.h5")),
                    "/tokens must be an array of numbers");
    EXPECT_EQ(place.file_count(), 1U);
}

// An array that was never written has a shape, but no bytes: its 80 GB would be zeros.
TEST(FitOfAFile, WithoutTheBytesOfItsArraysIsRefused) {
    const cli::Workplace place;
    const auto file = place.file("hollow.h5");
    const hid_t out = H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    const hsize_t shape[] = {10'000'000, 2, 500};
    const hid_t space = H5Screate_simple(3, shape, nullptr);
    for (const char* name : {"tokens", "outputs"})
        H5Dclose(H5Dcreate2(out, name, H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Sclose(space);
    H5Fclose(out);
    expect_one_line(bayesaim("fit " + file + " --channel linear --output " + place.file("e.h5")),
                    "/tokens must be stored as a whole, got (10000000, 2, 500) in 0 bytes");
    EXPECT_EQ(place.file_count(), 1U);
}

TEST(FitOfAFile, TakesWeightsThatAreOneMatrix) {
    const cli::Workplace place;
    const auto fit_with = [&](std::vector<hsize_t> shape) {
        Arrays arrays = good();
        arrays["weights"] = constant(std::move(shape), 0.5);
        write_file(place.file("data.h5"), arrays);
        return bayesaim("fit " + place.file("data.h5") +
                        " --channel hardmax --width 1 --iterations 3 --output " + place.file("e.h5"));
    };
    const auto matrix = fit_with({4, 4}), layer = fit_with({1, 4, 4});
    EXPECT_EQ(matrix.exit_code, 0) << matrix.err;
    EXPECT_NE(matrix.out.find("measured_error"), std::string::npos) << matrix.out;
    EXPECT_EQ(matrix.out, layer.out);
}

TEST(FitOfAFile, ThatIsNotACompleteHdf5FileIsRefused) {
    const cli::Workplace place;
    const auto output = " --output " + place.file("estimate.h5"), file = place.file("data.h5");
    expect_one_line(bayesaim("fit " + file + output),
                    "cannot read dataset '" + file + "': No such file or directory");
    expect_one_line(bayesaim("fit /tmp" + output), "cannot read dataset '/tmp': Is a directory");
    expect_one_line(bayesaim("fit " + place.write("text.h5", "tokens\n") + output), "must be an HDF5 file");
    write_file(file, good());
    const auto size = std::filesystem::file_size(file);
    for (const auto length : {size - 1, size / 2, size / 8}) {
        std::filesystem::resize_file(file, length);
        expect_one_line(bayesaim("fit " + file + output), "must be a complete HDF5 file, got '" + file);
    }
    EXPECT_EQ(place.file_count(), 2U);
}

TEST(FitOfAFile, ChecksItsArguments) {
    const cli::Workplace place;
    const auto file = place.file("data.h5");
    write_file(file, good(), {{"channel", "hardmax"}});
    expect_one_line(bayesaim("fit " + file), "--output is required");
    expect_one_line(bayesaim("fit " + file + " --output " + file),
                    "--output must be another file than the one that is read");
    expect_one_line(bayesaim("fit " + file + " --output /nowhere/e.h5"),
                    "could not write '/nowhere/e.h5': No such file or directory");
    expect_one_line(bayesaim("fit " + file + " --tokens 3 --output " + place.file("e.h5")),
                    "--tokens must be 2, as in");
    EXPECT_EQ(place.file_count(), 1U);
    EXPECT_EQ(read_array(file, "tokens"), good()["tokens"].values);
}

TEST(FitOfAFile, RefusesOptionsThatItsModelDoesNotHave) {
    const cli::Workplace place;
    const auto file = place.file("data.h5");
    write_file(file, good(), {{"channel", "hardmax"}});
    for (const auto& [options, complaint] :
         {std::pair(" --beta 2",
                    "--beta applies only to --channel softmax, deep-softmax, deep-seq2seq or multi-head "
                    "(channel is hardmax)"),
          {" --heads 2", "--heads applies only to --channel multi-head (channel is hardmax)"},
          {" --layers 2", "--layers applies only to --channel deep-softmax"},
          {" --prior wigner --width 0.5",
           "--width applies only to --prior wishart, multi-head, bilinear or power-law (prior is wigner)"},
          {" --spectrum a.txt", "--spectrum applies only to --prior spectrum (prior is wishart)"},
          {" --width 0.5,0.5", "width must be one number, got 2 numbers"},
          {" --prior no",
           "prior must be one of wishart, wigner, spectrum, multi-head, bilinear, ginibre, power-law, got "
           "'no'"}}) {
        expect_one_line(bayesaim("fit " + file + options + " --output " + place.file("e.h5")), complaint);
    }
    EXPECT_EQ(place.file_count(), 1U);
}

/// The prior of the file names the heads.
TEST(FitOfAFile, OfSeveralHeadsTakesWhatTheyHave) {
    const cli::Workplace place;
    const auto file = place.file("data.h5"), output = " --output " + place.file("e.h5");
    ASSERT_EQ(
        bayesaim("generate --channel multi-head --heads 3 --width 0.2 --dim 10 --alpha 0.2 --output " + file)
            .exit_code,
        0);
    const auto heads = [&](const std::string& options) {
        return bayesaim("fit " + file + " --iterations 1 --format json" + options + output)
            .json()["configuration"]["heads"];
    };
    EXPECT_EQ(heads(""), 3);
    EXPECT_EQ(heads(" --channel multi-head --prior wishart"), 3);
    EXPECT_EQ(heads(" --heads 4"), 4);
    const auto predictions = place.file("p.h5");
    ASSERT_EQ(bayesaim("predict " + place.file("e.h5") + " " + file + " --output " + predictions).exit_code,
              0);
    EXPECT_EQ(read_number(predictions, "heads"), 4);
    // Other channels have other outputs, or other weights.
    expect_one_line(bayesaim("fit " + file + output + " --channel linear"), "/outputs must be in the file");
    expect_one_line(bayesaim("fit " + file + output + " --channel deep-softmax"),
                    "/weights must be of shape (2, 10, 10)");
    write_file(file, good(), {{"prior", "multi-head"}}, {{"heads", 2.5}});
    expect_one_line(bayesaim("fit " + file + output),
                    "attribute heads must be a whole number up to 1000000, got 2.5");
}

TEST(GenerateCommand, ChecksItsArguments) {
    const cli::Workplace place;
    const auto output = " --output " + place.file("data.h5");
    expect_one_line(bayesaim("generate --alpha 0.1"), "--output is required");
    expect_one_line(bayesaim("generate" + output), "--alpha is required");
    expect_one_line(bayesaim("generate --alpha 0" + output), "--alpha must be positive and finite, got 0");
    expect_one_line(bayesaim("generate --alpha 1 --precision half" + output),
                    "--precision must be one of double, float");
    expect_one_line(bayesaim("generate --alpha 1 --dim 10 --output /nowhere/a.h5"),
                    "could not write '/nowhere/a.h5'");
    // The file is HDF5, whatever its name is.
    for (const char* name : {"data.csv", "data.json"})
        expect_one_line(bayesaim("generate --alpha 1 --dim 10 --output " + place.file(name)),
                        "--output must be the name of an HDF5 file, such as *.h5, got '");
    EXPECT_EQ(place.file_count(), 0U);
}

TEST(GenerateCommand, SameSeedSameBytesForAnyNumberOfThreads) {
    const cli::Workplace place;
    const auto make = [&](const std::string& options) {
        const auto run =
            bayesaim("generate --dim 20 --alpha 0.5 --output " + place.file("data.h5") + options);
        EXPECT_EQ(run.exit_code, 0) << run.err;
        return cli::read(place.file("data.h5"));
    };
    const auto one = make(" --seed 5 --threads 1");
    EXPECT_EQ(one, make(" --seed 5 --threads 2"));
    EXPECT_NE(one, make(" --seed 6 --threads 1"));
    EXPECT_LT(make(" --precision float --no-weights").size(), 0.6 * static_cast<double>(one.size()));
}

TEST(GenerateAndFit, EstimateIsBetterThanThePrior) {
    const double prior_error = 0.5;  // kappa2 - kappa1^2 = width of the Wishart prior
    for (const std::string channel :
         {"hardmax --alpha 0.4", "softmax --alpha 0.15", "linear --label-noise 0.1 --alpha 0.4"}) {
        const cli::Workplace place;
        const auto data = place.file("data.h5"), estimate = place.file("estimate.h5");
        const auto made = bayesaim("generate --dim 30 --width 0.5 --format json --channel " + channel +
                                   " --output " + data);
        ASSERT_EQ(made.exit_code, 0) << made.err;
        EXPECT_EQ(made.json()["points"][0]["bytes"], std::filesystem::file_size(data));
        const auto run = bayesaim("fit " + data + " --format json --output " + estimate);
        ASSERT_EQ(run.exit_code, 0) << channel << run.err;
        const auto point = run.json()["points"][0];
        EXPECT_EQ(point["samples"], made.json()["points"][0]["samples"]);
        EXPECT_EQ(run.json()["configuration"]["width"], 0.5);
        EXPECT_LT(point["measured_error"].get<double>(), 0.9 * prior_error) << channel;
        EXPECT_NEAR(point["measured_error"].get<double>(), point["predicted_error"].get<double>(),
                    0.2 * prior_error);
        EXPECT_EQ(point["status"], "converged");

        const std::vector<double> truth = read_array(data, "weights"),
                                  found = read_array(estimate, "weights");
        double error = 0;
        for (std::size_t i = 0; i < truth.size(); ++i) error += std::pow(truth[i] - found[i], 2) / 30;
        EXPECT_NEAR(point["measured_error"].get<double>(), error, 1e-12);
        EXPECT_EQ(point["predicted_error"].get<double>(), read_number(estimate, "predicted_error"));
    }
}

/// ||y - softmax(h)||^2 averaged over the samples, h_ab = (x_a' S x_b - delta_ab Tr S) / sqrt(d), by hand.
double softmax_fit(const std::vector<double>& x, const std::vector<double>& log_y,
                   const std::vector<double>& s, std::size_t d) {
    const std::size_t samples = x.size() / (2 * d);
    double trace = 0, sum = 0;
    for (std::size_t i = 0; i < d; ++i) trace += s[i * d + i];
    for (std::size_t row = 0; row < 2 * samples; ++row) {  // a token of a sample
        double h[2] = {};
        for (std::size_t b = 0; b < 2; ++b) {
            const std::size_t other = row / 2 * 2 + b;
            for (std::size_t i = 0; i < d; ++i)
                for (std::size_t j = 0; j < d; ++j) h[b] += x[row * d + i] * s[i * d + j] * x[other * d + j];
            h[b] = (h[b] - (other == row ? trace : 0)) / std::sqrt(static_cast<double>(d));
        }
        for (std::size_t b = 0; b < 2; ++b) {
            const double probability = 1 / (1 + std::exp(h[1 - b] - h[b]));
            sum += std::pow(probability - std::exp(log_y[row * 2 + b]), 2);
        }
    }
    return sum / static_cast<double>(samples);
}

TEST(GenerateAndFit, WithoutWeightsTheFitIsTheSameAndItsErrorUnknown) {
    const cli::Workplace place;
    const auto with = place.file("with.h5"), without = place.file("without.h5"),
               estimate = place.file("estimate.h5");
    const std::string make = "generate --dim 30 --alpha 0.1 --width 0.5 --output ";
    ASSERT_EQ(bayesaim(make + with).exit_code, 0);
    ASSERT_EQ(bayesaim(make + without + " --no-weights").exit_code, 0);
    const auto fit = [&](const std::string& arguments) {
        const auto run = bayesaim("fit " + arguments + " --format json --output " + estimate);
        return std::pair(run.json()["points"][0], cli::read(estimate));
    };
    // A few iterations only: at convergence the fit is nearly exact and the comparison is weak.
    const auto [known, known_estimate] = fit(with + " --threads 1 --iterations 4");
    const auto [unknown, unknown_estimate] = fit(without + " --threads 2 --iterations 4");
    EXPECT_EQ(known_estimate, unknown_estimate);
    EXPECT_TRUE(known["measured_error"].is_number());
    EXPECT_TRUE(unknown["measured_error"].is_null());
    const double expected = softmax_fit(read_array(without, "tokens"), read_array(without, "log_outputs"),
                                        read_array(estimate, "weights"), 30);
    EXPECT_GT(expected, 1e-3);
    EXPECT_NEAR(unknown["training_fit"].get<double>() / expected, 1, 1e-9);
}

/// A misspelled attribute was ignored in silence.
TEST(GenerateAndFit, NamesAttributesThatItDoesNotUseAndSettingsThatItTakes) {
    const cli::Workplace place;
    const auto data = place.file("data.h5");
    std::vector<double> tokens(48), outputs(24);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::sin(static_cast<double>(i * i));
    for (std::size_t i = 0; i < outputs.size(); i += 2) {
        const double y = 0.3 + 0.4 * std::abs(tokens[i]);
        outputs[i] = std::log(y);
        outputs[i + 1] = std::log(1 - y);
    }
    cli::write_file(data, {{"tokens", {{6, 2, 4}, tokens}}, {"log_outputs", {{6, 2, 2}, outputs}}},
                    {{"betta", "2"}, {"channel", "softmax"}});
    const auto run =
        bayesaim("fit " + data + " --width 1 --iterations 1 --output " + place.file("estimate.h5"));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.err.find("attribute 'betta' of '" + data + "' is not known and is ignored"),
              std::string::npos)
        << run.err;
    EXPECT_NE(run.err.find("does not give beta; it is taken as 1"), std::string::npos) << run.err;
}

TEST(GenerateAndFit, RunThatStopsTooEarlySaysSo) {
    const cli::Workplace place;
    const auto data = place.file("data.h5"), estimate = place.file("estimate.h5");
    ASSERT_EQ(bayesaim("generate --dim 20 --alpha 0.1 --output " + data).exit_code, 0);
    const auto run = bayesaim("fit " + data + " --iterations 2 --format json --output " + estimate);
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_NE(run.err.find("AMP did not converge (status iteration limit)"), std::string::npos) << run.err;
    EXPECT_EQ(run.json()["points"][0]["status"], "iteration limit");
    EXPECT_EQ(read_number(estimate, "iterations"), 2);
    EXPECT_EQ(place.file_count(), 2U);
}

TEST(GenerateAndFit, OptionsComeBeforeTheAttributesOfTheFile) {
    const cli::Workplace place;
    const auto data = place.file("data.h5");
    ASSERT_EQ(bayesaim("generate --dim 20 --alpha 0.1 --width 0.5 --beta 2 --output " + data).exit_code, 0);
    const std::string fit = "fit " + data + " --iterations 1 --format json --output " + place.file("e.h5");
    const auto as_file = bayesaim(fit).json()["configuration"];
    EXPECT_EQ(as_file["beta"], 2);
    EXPECT_EQ(as_file["width"], 0.5);
    const auto chosen = bayesaim(fit + " --beta 3 --prior wigner").json()["configuration"];
    EXPECT_EQ(chosen["beta"], 3);
    EXPECT_EQ(chosen["prior"], "wigner");
}

TEST(GenerateAndFit, HelpShowsAnExample) {
    for (const char* command : {"generate", "fit", "predict"}) {
        const auto run = bayesaim(std::string(command) + " --help");
        EXPECT_EQ(run.exit_code, 0);
        EXPECT_NE(run.out.find(std::string("\n  bayesaim ") + command), std::string::npos) << run.out;
    }
}

}  // namespace
