// SPDX-License-Identifier: MIT
#include "bayesaim/priors/user_spectrum.hpp"

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/spectrum_file.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "support/expect_invalid.hpp"
#include "support/temporary_file.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::priors {
namespace {

using test::expect_invalid;
using test::TemporaryFile;

double parameter(const Prior& prior, const std::string& name) {
    for (const auto& [key, value] : prior.parameters()) {
        if (key == name) return value;
    }
    return test::not_a_number;
}

TEST(ReadSpectrum, TakesOneEigenvaluePerLine) {
    const TemporaryFile file("1\n-2.5\n+1.5\n1e1\n");
    const auto prior = read_spectrum(file.path());
    EXPECT_EQ(prior->name(), "spectrum");
    EXPECT_EQ(parameter(*prior, "atoms"), 4);
    EXPECT_DOUBLE_EQ(parameter(*prior, "mean"), 2.5);
    EXPECT_DOUBLE_EQ(parameter(*prior, "second_moment"), (1 + 6.25 + 2.25 + 100) / 4);
}

TEST(ReadSpectrum, TakesWeights) {
    for (const char* content :
         {"1 0.25\n3 0.75\n", "1,0.25\n3,0.75\n", "1\t0.25\n 3 ,  0.75  ", "3 7.5e-1\n1 .25"}) {
        const TemporaryFile file(content);
        const auto prior = read_spectrum(file.path());
        EXPECT_EQ(parameter(*prior, "atoms"), 2) << content;
        EXPECT_DOUBLE_EQ(prior->law().mean(), 2.5) << content;
        EXPECT_DOUBLE_EQ(prior->law().variance(), 0.75) << content;
    }
}

TEST(ReadSpectrum, SkipsCommentsEmptyLinesAndCarriageReturns) {
    const TemporaryFile file("# eigenvalues\r\n\r\n1 # one\r\n   \r\n  3\r\n#4\n");
    const auto prior = read_spectrum(file.path());
    EXPECT_EQ(parameter(*prior, "atoms"), 2);
    EXPECT_DOUBLE_EQ(prior->law().mean(), 2);
}

TEST(ReadSpectrum, NamesFileAndLineOfWhatIsWrong) {
    const auto expect_error = [](const std::string& content, const std::string& place,
                                 const std::string& message) {
        const TemporaryFile file(content);
        expect_invalid([&] { read_spectrum(file.path()); }, file.path() + place + message);
    };
    expect_error("1\n2\nthree\n", ":3", " must be a number, got 'three'");
    expect_error("1\n2x\n", ":2", " must be a number, got '2x'");
    expect_error("1\n+-2\n", ":2", " must be a number, got '+-2'");
    expect_error("1\n+\n", ":2", " must be a number, got '+'");
    expect_error("1e999\n", ":1", " must be a number, got '1e999'");
    expect_error("# a\n\nnan\n", ":3", " must be a finite number, got nan");
    expect_error("inf\n", ":1", " must be a finite number, got inf");
    expect_error(
        "1 0.5 2 3\n", ":1",
        " must be an eigenvalue, if you like with its weight, or with weight and variance, got 4 numbers");
    expect_error("1 0.5\n2\n", ":2", " must be like the lines before: 2 number(s), got 1 number(s)");
    expect_error("1\n2 0.5\n", ":2", " must be like the lines before: 1 number(s), got 2 number(s)");
    expect_error("1 0.5 0\n2 0.5\n", ":2", " must be like the lines before: 3 number(s), got 2 number(s)");
}

TEST(ReadSpectrum, RefusesWeightsThatAreNotProbabilities) {
    const TemporaryFile sum("1 0.5\n2 0.4\n"), negative("1 1.5\n2 -0.5\n");
    expect_invalid([&] { read_spectrum(sum.path()); },
                   "spectrum file '" + sum.path() + "': sum of the weights must be 1, got 0.9");
    expect_invalid([&] { read_spectrum(negative.path()); },
                   "weight of atom 2 must be positive and finite, got -0.5");
}

TEST(ReadSpectrum, RefusesFilesWithoutEigenvalues) {
    for (const char* content : {"", "\n\n", "# only this\n"}) {
        const TemporaryFile file(content);
        expect_invalid([&] { read_spectrum(file.path()); },
                       "spectrum file must be non-empty, got no eigenvalue in '" + file.path() + "'");
    }
}

TEST(ReadSpectrum, RefusesWhatCannotBeRead) {
    expect_invalid([] { read_spectrum("/nowhere/at/all.txt"); },
                   "cannot read spectrum file '/nowhere/at/all.txt': No such file or directory");
    const std::string folder = ::testing::TempDir();
    expect_invalid([&] { read_spectrum(folder); },
                   "cannot read spectrum file '" + folder + "': Is a directory");
    expect_invalid([] { read_spectrum(""); }, "cannot read spectrum file '': No such file or directory");
}

TEST(UserSpectrum, SamplesHaveExactlyTheGivenEigenvalues) {
    const std::vector<double> eigenvalues{4, -1, 0, 2.5};
    ThreadPool pool(1);
    const linalg::Vector values =
        linalg::symmetric_eigenvalues(UserSpectrum(eigenvalues).sample(4, 1, 0, pool));
    const double expected[] = {-1, 0, 2.5, 4};
    for (Eigen::Index i = 0; i < 4; ++i) EXPECT_NEAR(values[i], expected[i], 1e-14);
}

TEST(UserSpectrum, WeightsBecomeMultiplicities) {
    // The number of levels (i + 1/2)/d below the weight.
    const auto multiplicity = [](double weight, Eigen::Index dim) {
        const std::vector<double> eigenvalues{1, 3}, weights{weight, 1 - weight};
        ThreadPool pool(1);
        const linalg::Matrix s = UserSpectrum(eigenvalues, weights).sample(dim, 1, 0, pool);
        return (linalg::symmetric_eigenvalues(s).array() < 2).count();
    };
    EXPECT_EQ(multiplicity(0.3, 50), 15);
    EXPECT_EQ(multiplicity(0.25, 5), 1);
    EXPECT_EQ(multiplicity(0.35, 5), 2);
}

TEST(UserSpectrum, EigenvectorsHaveNoPreferredDirection) {
    // S = diag(1, 0, .., 0) rotated: E S_11 = 1/d, E S_11^2 = 3/(d (d+2)).
    constexpr Eigen::Index dim = 5;
    const std::vector<double> eigenvalues{1, 0, 0, 0, 0};
    const UserSpectrum prior(eigenvalues);
    ThreadPool pool(1);
    std::vector<double> first, squared, last;
    for (std::uint64_t draw = 0; draw < 4000; ++draw) {
        const linalg::Matrix s = prior.sample(dim, 3, draw, pool);
        first.push_back(s(0, 0));
        squared.push_back(s(0, 0) * s(0, 0));
        last.push_back(s(dim - 1, 0));
    }
    EXPECT_LE(test::estimate(first).deviation(1.0 / dim), 4);
    EXPECT_LE(test::estimate(squared).deviation(3.0 / (dim * (dim + 2))), 4);
    EXPECT_LE(test::estimate(last).deviation(0), 4);
}

TEST(UserSpectrum, RefusesDimensionZero) {
    const std::vector<double> eigenvalues{1};
    ThreadPool pool(1);
    expect_invalid([&] { UserSpectrum(eigenvalues).sample(0, 1, 0, pool); },
                   "dimension must be at least 1, got 0");
}

TEST(UserSingularValues, SamplesHaveExactlyTheGivenSingularValues) {
    const TemporaryFile file("4\n1\n0\n2.5\n");
    const auto prior = read_spectrum(file.path(), false);
    EXPECT_FALSE(prior->symmetric());
    EXPECT_EQ(parameter(*prior, "atoms"), 4);
    EXPECT_NEAR(parameter(*prior, "mean"), 1.875, 1e-15);
    EXPECT_NEAR(parameter(*prior, "second_moment"), 5.8125, 1e-15);
    ThreadPool pool(1);
    const linalg::Matrix s = prior->sample(4, 1, 0, pool);
    EXPECT_GT((s - s.transpose()).norm(), 0.1);
    const linalg::Vector squares = linalg::symmetric_eigenvalues(s * s.transpose());
    const double expected[] = {0, 1, 6.25, 16};
    for (Eigen::Index i = 0; i < 4; ++i) EXPECT_NEAR(squares[i], expected[i], 1e-13);
}

/// Quantiles of the quarter circle, the singular values of independent entries, whose error is D/(1 + D).
TEST(UserSingularValues, OfIndependentEntriesHaveTheirError) {
    std::string text;
    constexpr int count = 400;
    for (int i = 0; i < count; ++i) {
        double low = 0, high = 2;
        for (int step = 0; step < 60; ++step) {
            const double x = 0.5 * (low + high);
            const double below = (0.5 * x * std::sqrt(4 - x * x) + 2 * std::asin(0.5 * x)) / std::numbers::pi;
            (below < (i + 0.5) / count ? low : high) = x;
        }
        text += fmt::format("{}\n", low);
    }
    const TemporaryFile file(text);
    const auto prior = read_spectrum(file.path(), false);
    for (const double noise : {0.1, 0.3, 1.0, 10.0})  // the quantiles are right to 1/count^2 in the middle
        EXPECT_LT(test::relative_error(spectral::mmse(prior->law(), noise), noise / (1 + noise)), 1e-3)
            << noise;
}

}  // namespace
}  // namespace bayesaim::priors
