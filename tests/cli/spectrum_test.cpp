// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "program.hpp"

using cli::bayesaim;

TEST(SpectrumCommand, PrintsTheReferenceMmse) {
    const auto run = bayesaim("spectrum --width 0.5 --noise-variance 0.1 --format json");
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto json = run.json();
    EXPECT_NEAR(json["mmse"].get<double>(), 0.0665414932026, 1e-12);
    EXPECT_NEAR(json["second_moment"].get<double>(), 1.6, 1e-12);
    EXPECT_EQ(json["edges"].size(), 1U);
    EXPECT_EQ(json["command"], "spectrum");
    EXPECT_EQ(json["configuration"]["width"], 0.5);
    ASSERT_EQ(json["points"].size(), 201U);
    for (const char* key : {"x", "density", "hilbert", "denoised"}) {
        EXPECT_TRUE(json["points"][100][key].is_number()) << key;
    }
}

TEST(SpectrumCommand, CsvHasTheKeysOfJsonAsColumnsAndTheSameNumbers) {
    const auto csv = bayesaim("spectrum --noise-variance 2 --points 3 --format csv");
    const auto json = bayesaim("spectrum --noise-variance 2 --points 3 --format json").json();
    std::istringstream lines(csv.out);
    std::string line;
    std::getline(lines, line);
    EXPECT_EQ(line,
              "x,density,hilbert,denoised,prior,width,noise_variance,points");  // results, then settings
    for (const auto& point : json["points"]) {
        ASSERT_TRUE(std::getline(lines, line));
        EXPECT_EQ(std::stod(line), point["x"].get<double>());
    }
    EXPECT_FALSE(std::getline(lines, line));
}

TEST(SpectrumCommand, TakesAUsersSpectrum) {
    const cli::Workplace place;
    const auto file = place.write("atoms.txt", "-1 0.5\n1 0.5  # two atoms\n");
    const auto json =
        bayesaim("spectrum --prior spectrum --spectrum " + file + " --noise-variance 0.01 --format json")
            .json();
    EXPECT_EQ(json["edges"].size(), 2U);
    EXPECT_NEAR(json["mmse"].get<double>() / 0.01, 0.5, 0.01);  // 1 - sum of squared weights for small noise
}

TEST(SpectrumCommand, DrawsEveryKindOfPicture) {
    const cli::Workplace place;
    for (const char* ending : {"png", "svg", "pdf"}) {
        const auto file = place.file(std::string("picture.") + ending);
        const auto run = bayesaim("spectrum --width 0.5 --noise-variance 0.1 --dim 100 --plot " + file);
        ASSERT_EQ(run.exit_code, 0) << run.err;
        EXPECT_GT(std::filesystem::file_size(file), 5000U) << ending;
    }
    EXPECT_EQ(place.file_count(), 3U) << "something besides the pictures was left behind";
}

TEST(SpectrumCommand, OutputFileHoldsWhatWouldBePrinted) {
    const cli::Workplace place;
    const auto file = place.file("table.csv");
    const auto run = bayesaim("spectrum --noise-variance 1 --format csv --output " + file);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(cli::read(file), bayesaim("spectrum --noise-variance 1 --format csv").out);
    EXPECT_EQ(place.file_count(), 1U);
}

TEST(DenoiseCommand, MeasuredErrorIsThePredictedOne) {
    const auto json = bayesaim("denoise --width 0.5 --noise-variance 0.5 --dim 1000 --format json").json();
    const auto& point = json["points"][0];
    EXPECT_NEAR(point["predicted_error"].get<double>(), 0.249259331846, 1e-11);
    EXPECT_NEAR(point["measured_error"].get<double>() / point["predicted_error"].get<double>(), 1, 0.01);
}

TEST(DenoiseCommand, SameSeedSameBitsForAnyNumberOfThreads) {
    const std::string command =
        "denoise --noise-variance 1 --dim 150 --seed 7 --seeds 2 --format json --threads ";
    const auto one = bayesaim(command + "1");
    EXPECT_EQ(one.out, bayesaim(command + "2").out);
    EXPECT_EQ(one.out, bayesaim(command + "3").out);
    EXPECT_NE(one.out, bayesaim("denoise --noise-variance 1 --dim 150 --seed 8 --seeds 2 --format json").out);
}

class BadUsage : public testing::TestWithParam<cli::BadCall> {};

TEST_P(BadUsage, GivesOneLineAndExitCodeOne) { cli::expect_bad_usage(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Program, BadUsage,
    testing::Values(
        cli::BadCall{"", "subcommand"},
        cli::BadCall{"--versoin", "unknown option --versoin; did you mean --version? (see bayesaim --help)"},
        cli::BadCall{"dance", "command must be one of theory, threshold, phase, samples, amp, "},
        cli::BadCall{"spectrum", "--noise-variance is required"},
        cli::BadCall{"spectrum --noise-variance 0",
                     "bayesaim: --noise-variance must be positive and finite, got 0"},
        cli::BadCall{"spectrum --noise-variance abc", "--noise-variance must be a number, got 'abc'"},
        cli::BadCall{"spectrum --noise-variance nan", "got nan"},
        cli::BadCall{"spectrum --noise-variance inf", "got inf"},
        cli::BadCall{"spectrum --noise-variance 1 --width 0",
                     "bayesaim: --width must be positive and finite, got 0"},
        cli::BadCall{"spectrum --noise-variance 1 --width -2", "got -2"},
        cli::BadCall{"spectrum --noise-variance 1 --prior cauchy",
                     "bayesaim: --prior must be one of wishart, wigner, spectrum"},
        cli::BadCall{"spectrum --noise-variance 1 --format xml", "--format must be one of table, csv, json"},
        cli::BadCall{"spectrum --noise-variance 1 --points 1", "--points must be between 2 and 1000000, got 1"},
        cli::BadCall{"spectrum --noise-variance 1 --points 2.5",
                     "--points must be a whole number, got '2.5'"},
        cli::BadCall{"spectrum --noise-variance 1 --plot picture.jpg",
                     "--plot must be named *.png, *.svg or *.pdf"},
        cli::BadCall{"spectrum --noise-variance 1 --plot /nowhere/picture.png",
                     "could not write '/nowhere/picture.png': No such file or directory"},
        cli::BadCall{"spectrum --noise-variance 1 --output /nowhere/table",
                     "could not write '/nowhere/table': No such file or directory"},
        cli::BadCall{"spectrum --noise-variance 1 --prior spectrum",
                     "--prior spectrum needs --spectrum FILE"},
        cli::BadCall{"spectrum --noise-variance 1 --prior spectrum --spectrum /nowhere",
                     "cannot read spectrum file '/nowhere': No such file or directory"},
        cli::BadCall{"spectrum --noise-variance 1 --prior spectrum --spectrum /dev/null",
                     "spectrum file must be non-empty"},
        cli::BadCall{"denoise --noise-variance 0", "bayesaim: --noise-variance must be positive"},
        cli::BadCall{"denoise --noise-variance 1 --seed -1",
                     "--seed must be a non-negative whole number, got '-1'"},
        cli::BadCall{"denoise --noise-variance 1 --threads -1",
                     "--threads must be between 0 and 1024, got -1"},
        cli::BadCall{"denoise --noise-variance 1 --dim 10 --width 0.01",
                     "width * dimension must be at least 0.5"},
        cli::BadCall{"denoise --noise-variance 1 --surprise", "surprise"}));

TEST(BadSpectrumFile, WeightsThatDoNotSumToOneLeaveNoOutput) {
    const cli::Workplace place;
    const auto atoms = place.write("atoms.txt", "0 0.5\n1 0.4\n"), table = place.file("table");
    const auto run =
        bayesaim("spectrum --prior spectrum --spectrum " + atoms + " --noise-variance 1 --output " + table);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_NE(run.err.find("sum of the weights must be 1, got 0.9"), std::string::npos) << run.err;
    EXPECT_EQ(place.file_count(), 1U);
}

TEST(Help, EveryCommandShowsAnExample) {
    for (const char* command :
         {"theory", "threshold", "phase", "amp", "spectrum", "denoise", "generate", "fit"}) {
        const auto run = bayesaim(std::string(command) + " --help");
        EXPECT_EQ(run.exit_code, 0);
        EXPECT_NE(run.out.find(std::string("\n  bayesaim ") + command), std::string::npos) << run.out;
    }
    EXPECT_EQ(bayesaim("--version").exit_code, 0);
}

/// A command whose points cannot fail to converge has nothing to be strict about.
TEST(Help, StrictIsOfferedWhereItMeansSomething) {
    const auto offered = [](const std::string& command) {
        return bayesaim(command + " --help").out.find("--strict") != std::string::npos;
    };
    for (const char* command : {"theory", "phase", "amp", "gd", "fit", "sweep", "merge", "figure"})
        EXPECT_TRUE(offered(command)) << command;
    for (const char* command : {"spectrum", "denoise", "generate", "predict", "plot"})
        EXPECT_FALSE(offered(command)) << command;
}

TEST(Help, OfStudiesSaysWhatEachEstimatorIs) {
    const auto run = bayesaim("sweep --help");
    EXPECT_NE(run.out.find("gd: gradient descent"), std::string::npos) << run.out;
    EXPECT_NE(run.out.find("amp: approximate message passing"), std::string::npos) << run.out;
}
