// SPDX-License-Identifier: MIT
#include "bayesaim/priors/learned_spectrum.hpp"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "bayesaim/core/hdf5_file.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/spectrum_file.hpp"
#include "bayesaim/priors/table.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "support/expect_invalid.hpp"
#include "support/temporary_file.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::priors {
namespace {

using spectral::Bump;
using test::expect_invalid;
using test::TemporaryFile;

/// An estimate as `fit` writes it, with this law and these attributes.
class EstimateFile : public TemporaryFile {
  public:
    explicit EstimateFile(const std::vector<Bump>& law, const Attributes& attributes = {})
        : TemporaryFile("") {
        std::vector<double> numbers;
        for (const auto& [centre, weight, variance] : law)
            numbers.insert(numbers.end(), {centre, weight, variance});
        Hdf5Writer out(path(), 8 * static_cast<std::ptrdiff_t>(numbers.size()));
        if (!law.empty()) out.write("law", {1, static_cast<std::ptrdiff_t>(law.size()), 3}, numbers.data());
        out.finish(attributes);
    }
};

const std::vector<Bump> tied = {{-1, 0.25, 0.2}, {0, 0.25, 0}, {2, 0.5, 0.4}};
const std::vector<Bump> untied = {{-1.5, 0.2, 0.1}, {0, 0.6, 0.05}, {1.5, 0.2, 0.1}};

double parameter(const Prior& prior, const std::string& name) {
    for (const auto& [key, value] : prior.parameters()) {
        if (key == name) return value;
    }
    return test::not_a_number;
}

/// S of variance sigma^2 under noise D is a semicircle again: mmse = sigma^2 D/(sigma^2 + D).
TEST(LearnedSpectrum, OneBumpIsTheScaledGaussianPrior) {
    const LearnedSpectrum prior(std::vector<Bump>{{0.5, 1, 4}});
    EXPECT_DOUBLE_EQ(prior.law().mean(), 0.5);
    EXPECT_LE(test::relative_error(spectral::mmse(prior.law(), 0.7), 4 * 0.7 / 4.7), 1e-5);
    EXPECT_EQ(parameter(prior, "bumps"), 1);
    EXPECT_DOUBLE_EQ(parameter(prior, "second_moment"), 4.25);
}

TEST(LearnedSpectrum, EigenvaluesAreTheQuantilesOfTheLaw) {
    constexpr Eigen::Index dim = 40;
    ThreadPool pool(1);
    const LearnedSpectrum prior(tied);
    const spectral::BumpLaw law(tied);
    const linalg::Vector values = linalg::symmetric_eigenvalues(prior.sample(dim, 1, 0, pool));
    for (Eigen::Index i = 0; i < dim; ++i)
        EXPECT_NEAR(values[i], law.quantile((static_cast<double>(i) + 0.5) / dim), 1e-12);
    EXPECT_NEAR(values.mean(), prior.law().mean(), 0.02);
    EXPECT_NEAR(values.squaredNorm() / dim, prior.law().second_moment(), 0.05);
    EXPECT_NE(prior.sample(dim, 1, 0, pool), prior.sample(dim, 1, 1, pool));
    expect_invalid([&] { prior.sample(0, 1, 0, pool); }, "dimension must be at least 1, got 0");
}

TEST(LearnedSpectrum, SingularValuesAreTheQuantilesOfTheSize) {
    constexpr Eigen::Index dim = 200;
    ThreadPool pool(1);
    const LearnedSpectrum prior(untied, false);
    EXPECT_FALSE(prior.symmetric());
    EXPECT_NEAR(prior.law().mean(), 0, 1e-15);
    const linalg::Matrix s = prior.sample(dim, 1, 0, pool);
    EXPECT_GT((s - s.transpose()).norm(), 1);
    EXPECT_NEAR(s.squaredNorm() / dim, prior.law().variance(), 0.01);
    const linalg::Vector squares = linalg::symmetric_eigenvalues(linalg::gram(1, s));
    EXPECT_EQ((squares.array() > 0.64).count(), 80);  // two fifths around 1.5
    expect_invalid([] { LearnedSpectrum(tied, false); }, "the law of singular values must be symmetric");
    // Partners of one centre may stand in any order.
    const LearnedSpectrum ties(
        std::vector<Bump>{{1, 0.1, 0.2}, {-1, 0.4, 0.1}, {-1, 0.1, 0.2}, {1, 0.4, 0.1}}, false);
    EXPECT_NEAR(ties.law().variance(), 1.12, 1e-14);
}

TEST(BumpLaw, QuantilesInvertTheDistribution) {
    const spectral::BumpLaw semicircle(std::vector<Bump>{{0, 1, 1}}), law(tied);
    EXPECT_NEAR(semicircle.quantile(0.5), 0, 1e-15);
    EXPECT_NEAR(semicircle.quantile(0.5 + (std::sqrt(3) / 4 + std::numbers::pi / 6) / std::numbers::pi), 1,
                1e-14);
    EXPECT_NEAR(semicircle.quantile(0), -2, 1e-7);
    EXPECT_NEAR(semicircle.quantile(1), 2, 1e-7);
    for (const double level : {0.26, 0.4, 0.49}) EXPECT_NEAR(law.quantile(level), 0, 1e-15) << level;
    EXPECT_NEAR(law.quantile(0.125), -1, 1e-14);
    expect_invalid([&] { law.quantile(1.5); }, "level of a quantile must be between 0 and 1, got 1.5");
}

TEST(ReadSpectrum, TakesVariances) {
    const TemporaryFile file("-1 0.25 0.2\n0 0.25 0\n2, 0.5, 0.4\n"), singular("1.5 0.4 0.1\n0 0.6 0.05\n"),
        atoms("1 0.25 0\n2 0.75 0\n"), negative("1 0.5 -1\n2 0.5 0\n");
    const auto prior = read_spectrum(file.path());
    EXPECT_EQ(prior->name(), "spectrum");
    EXPECT_TRUE(prior->symmetric());
    EXPECT_EQ(prior->parameters(), LearnedSpectrum(tied).parameters());
    const auto general = read_spectrum(singular.path(), false);
    EXPECT_FALSE(general->symmetric());
    EXPECT_NEAR(general->law().variance(), LearnedSpectrum(untied, false).law().variance(), 1e-15);
    EXPECT_EQ(parameter(*read_spectrum(atoms.path()), "atoms"), 2);
    expect_invalid([&] { read_spectrum(negative.path()); }, "variance of bump 1 must be non-negative");
    expect_invalid([&] { read_spectrum(file.path(), false); }, "singular value must be non-negative");
}

TEST(ReadSpectrum, TakesTheLearnedLawOfAnEstimate) {
    const EstimateFile file(tied, {{"prior", "spectrum"}}), cross(untied, {{"attention", "cross"}});
    for (const auto symmetric : {std::optional<bool>(), std::optional(true)}) {
        const auto prior = read_spectrum(file.path(), symmetric);
        EXPECT_EQ(prior->parameters(), LearnedSpectrum(tied).parameters());
        EXPECT_EQ(spectral::mmse(prior->law(), 0.3), spectral::mmse(spectral::BumpLaw(tied), 0.3));
    }
    EXPECT_FALSE(read_spectrum(cross.path())->symmetric());
    EXPECT_FALSE(read_spectrum(cross.path(), false)->symmetric());
    EXPECT_EQ(make_prior("spectrum", {.spectrum = file.path()})->law().mean(),
              spectral::BumpLaw(tied).mean());
    expect_invalid([&] { read_spectrum(file.path(), false); },
                   "spectrum file must be of untied attention, got '" + file.path() + "', of tied attention");
    expect_invalid([&] { read_spectrum(cross.path(), true); },
                   "spectrum file must be of tied attention, got '" + cross.path() + "', of cross attention");
}

TEST(ReadSpectrum, TakesTheFamilyOfAnEstimate) {
    const EstimateFile wishart({}, {{"prior", "wishart"}, {"width", 0.3}, {"scale", 2.0}}),
        bilinear({}, {{"prior", "bilinear"}, {"width", 0.3}, {"attention", "masked"}});
    const auto prior = read_spectrum(wishart.path()), general = read_spectrum(bilinear.path(), false);
    EXPECT_EQ(prior->name(), "spectrum");
    EXPECT_EQ(prior->parameters(), Wishart(0.3, 2).parameters());
    EXPECT_EQ(spectral::mmse(prior->law(), 0.3), spectral::mmse(Wishart(0.3, 2).law(), 0.3));
    ThreadPool pool(1);
    EXPECT_EQ(prior->sample(20, 1, 0, pool), Wishart(0.3, 2).sample(20, 1, 0, pool));
    EXPECT_FALSE(general->symmetric());
    EXPECT_EQ(general->parameters(), Bilinear(0.3).parameters());
}

TEST(ReadSpectrum, RefusesEstimatesWithoutALaw) {
    const EstimateFile nothing({}), spectrum({}, {{"prior", "spectrum"}}), unknown({}, {{"prior", "gauss"}}),
        layers({}, {{"prior", "wishart"}, {"width", "0.4,0.8"}}), sum({{0, 0.5, 1}});
    for (const EstimateFile* file : {&nothing, &spectrum})
        expect_invalid([&] { read_spectrum(file->path()); },
                       "spectrum file must be a text, or an estimate with the dataset /law, got '" +
                           file->path() + "' without it");
    expect_invalid([&] { read_spectrum(unknown.path()); }, "prior must be one of");
    expect_invalid([&] { read_spectrum(layers.path()); }, "attribute width must be a number");
    expect_invalid([&] { read_spectrum(sum.path()); }, "sum of the weights must be 1, got 0.5");
    const TemporaryFile wrong("");
    {
        const double numbers[4] = {0, 1, 0, 0};
        Hdf5Writer out(wrong.path(), 32);
        out.write("law", {1, 1, 4}, numbers);
        out.finish({});
    }
    expect_invalid([&] { read_spectrum(wrong.path()); },
                   "dataset /law must be an array (1, bumps, 3), got (1, 1, 4)");
}

}  // namespace
}  // namespace bayesaim::priors
