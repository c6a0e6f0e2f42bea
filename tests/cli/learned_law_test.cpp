// SPDX-License-Identifier: MIT
// --prior spectrum with laws that were learned: text files with variances, and estimates of `fit`.
#include <cmath>

#include <gtest/gtest.h>

#include "hdf5_arrays.hpp"
#include "program.hpp"

namespace {

using cli::bayesaim;

double error_of(const std::string& arguments) {
    const auto run = bayesaim("theory --alpha 0.1 --format json " + arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.json()["points"][0]["estimation_error"];
}

/// One semicircle of variance 1 is the prior wigner, or ginibre.
TEST(LearnedLaw, OfOneBumpIsTheGaussianPrior) {
    const cli::Workplace place;
    const std::string text = place.write("law.txt", "0 1 1\n"), law = place.file("tied.h5"),
                      untied = place.file("untied.h5");
    cli::write_file(law, {{"law", {{1, 1, 3}, {0, 1, 1}}}}, {{"prior", "spectrum"}});
    cli::write_file(untied, {{"law", {{1, 1, 3}, {0, 1, 1}}}},
                    {{"prior", "spectrum"}, {"attention", "cross"}});
    const double wigner = error_of("--prior wigner");
    EXPECT_NEAR(error_of("--prior spectrum --spectrum " + text), wigner, 1e-5);
    EXPECT_NEAR(error_of("--prior spectrum --spectrum " + law), wigner, 1e-5);
    EXPECT_NEAR(error_of("--attention cross --prior spectrum --spectrum " + untied),
                error_of("--attention cross --prior ginibre"), 1e-5);
    const auto configuration = bayesaim("theory --alpha 0.1 --format json --prior spectrum --spectrum " + law)
                                   .json()["configuration"];
    EXPECT_EQ(configuration["spectrum"], law);
    EXPECT_EQ(configuration["bumps"], 1);
}

TEST(LearnedLaw, ServesTheOtherCommands) {
    const cli::Workplace place;
    const std::string law = place.file("law.h5"), untied = place.file("untied.h5");
    cli::write_file(law, {{"law", {{1, 2, 3}, {0, 0.5, 0, 1.5, 0.5, 0.3}}}});
    cli::write_file(untied, {{"law", {{1, 3, 3}, {-1.5, 0.2, 0.1, 0, 0.6, 0.05, 1.5, 0.2, 0.1}}}},
                    {{"attention", "cross"}});
    for (const std::string& file : {law, untied}) {
        const std::string prior = " --prior spectrum --format json --spectrum " + file;
        const auto denoise = bayesaim("denoise --noise-variance 0.3 --dim 300" + prior);
        ASSERT_EQ(denoise.exit_code, 0) << denoise.err;
        EXPECT_NEAR(denoise.json()["points"][0]["relative_difference"].get<double>(), 0, 0.03);
        const auto spectrum = bayesaim("spectrum --noise-variance 0.3" + prior);
        ASSERT_EQ(spectrum.exit_code, 0) << spectrum.err;
        EXPECT_NEAR(spectrum.json()["mmse"].get<double>(),
                    denoise.json()["points"][0]["predicted_error"].get<double>(), 1e-12);
        const auto amp = bayesaim("amp --alpha 0.15 --dim 60 --seeds 2 --quiet" + prior +
                                  (file == untied ? " --attention cross" : ""));
        ASSERT_EQ(amp.exit_code, 0) << amp.err;
        const auto point = amp.json()["points"][0];
        EXPECT_NEAR(point["mean_error"].get<double>(), point["theory_error"].get<double>(),
                    0.15 * point["theory_error"].get<double>())
            << point;
    }
}

/// An estimate without /law has the law of its prior.
TEST(LearnedLaw, IsThatOfTheFamilyOfAnEstimate) {
    const cli::Workplace place;
    const std::string data = place.file("data.h5"), estimate = place.file("estimate.h5");
    ASSERT_EQ(bayesaim("generate --dim 40 --alpha 0.15 --width 0.5 --scale 2 --output " + data).exit_code, 0);
    const auto fit = bayesaim("fit " + data + " --quiet --format json --output " + estimate);
    ASSERT_EQ(fit.exit_code, 0) << fit.err;
    EXPECT_EQ(fit.json()["configuration"]["scale"], 2);
    EXPECT_EQ(error_of("--prior spectrum --spectrum " + estimate), error_of("--width 0.5 --scale 2"));
}

/// Softmax sees 2 S as it sees S at twice the inverse temperature.
TEST(ScaleOption, OfAmpMultipliesTheErrorByItsSquare) {
    const std::string call = "amp --alpha 0.15 --dim 50 --width 0.5 --format json --quiet";
    const auto one = bayesaim(call + " --beta 2").json()["points"][0],
               two = bayesaim(call + " --scale 2").json()["points"][0];
    EXPECT_NEAR(two["mean_error"].get<double>(), 4 * one["mean_error"].get<double>(), 1e-6);
    EXPECT_NEAR(two["theory_error"].get<double>(), 4 * one["theory_error"].get<double>(), 1e-9);
}

TEST(ScaleOption, StudiesHaveIt) {
    const cli::Workplace place;
    const std::string study =
        place.write("study.toml",
                    "width = 0.5\nscale = [1.0, 2.0]\nalpha = 0.1\n[[run]]\nestimator = \"theory\"\n"
                    "[[run]]\nestimator = \"amp\"\ndim = 20\nmax_iterations = 20\n");
    const auto sweep = bayesaim("sweep " + study + " --quiet --output " + place.file("results"));
    ASSERT_EQ(sweep.exit_code, 0) << sweep.err;
    EXPECT_NE(cli::read(place.file("results/results.csv")).find("scale"), std::string::npos);
    for (const char* run : {"estimator = \"theory\"\nscale = 0.0\n",
                            "estimator = \"theory\"\nscale = 2.0\nprior = \"wigner\"\n",
                            "estimator = \"small-width\"\nscale = 2.0\n"}) {
        const std::string bad = place.write("bad.toml", std::string("[[run]]\nalpha = 0.2\n") + run);
        const auto refused = bayesaim("sweep " + bad + " --quiet --output " + place.file("no"));
        EXPECT_EQ(refused.exit_code, 1) << run;
        EXPECT_NE(refused.err.find("scale"), std::string::npos) << refused.err;
    }
}

TEST(LearnedLaw, RefusesWhatDoesNotFit) {
    const cli::Workplace place;
    const std::string law = place.file("law.h5"), none = place.file("none.h5");
    cli::write_file(law, {{"law", {{1, 1, 3}, {0, 1, 1}}}});
    cli::write_file(none, {{"weights", {{1, 1, 1}, {1}}}});
    const auto expect_refused = [](const std::string& call, const std::string& message) {
        const auto run = bayesaim(call);
        EXPECT_EQ(run.exit_code, 1) << call;
        EXPECT_NE(run.err.find(message), std::string::npos) << run.err;
        EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    };
    expect_refused("theory --alpha 0.1 --attention cross --prior spectrum --spectrum " + law,
                   "spectrum file must be of untied attention");
    expect_refused("theory --alpha 0.1 --prior spectrum --spectrum " + none,
                   "an estimate with the dataset /law");
}

}  // namespace
