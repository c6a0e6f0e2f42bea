// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/learned_laws.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "bayesaim/denoisers/rotation_invariant.hpp"
#include "bayesaim/denoisers/singular_values.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/user_spectrum.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"

namespace bayesaim::spectral {
namespace {

using linalg::Matrix;
using linalg::Vector;

/// R = S + sqrt(D) noise for a draw of S, and the eigenvalues or singular values of R.
struct Draw {
    Draw(const priors::Prior& prior, Eigen::Index dim, double noise_variance, std::uint64_t seed)
        : singular(!prior.symmetric()), noise(noise_variance) {
        ThreadPool pool(1);
        const RandomStream stream(seed, Purpose::noise);
        signal = prior.sample(dim, seed, 0, pool);
        if (singular) {
            noisy = signal + std::sqrt(noise / static_cast<double>(dim)) *
                                 linalg::gaussian_matrix(dim, dim, stream, pool);
            values = linalg::symmetric_eigenvalues(linalg::gram(1, noisy)).cwiseMax(0).cwiseSqrt();
        } else {
            noisy = signal + std::sqrt(noise) * linalg::gaussian_orthogonal_ensemble(dim, stream, pool);
            values = linalg::symmetric_eigenvalues(noisy);
        }
    }
    NoisySpectrum spectrum() const {
        return {{values.data(), static_cast<std::size_t>(values.size())}, noise, singular};
    }
    double error(const SpectralLaw& law) const {
        ThreadPool pool(1);
        const Matrix estimate = singular
                                    ? denoisers::denoise_singular_values(law, noisy, noise, pool).estimate
                                    : denoisers::denoise(law, noisy, noise, pool).estimate;
        return (estimate - signal).squaredNorm() / static_cast<double>(signal.rows());
    }
    bool singular;
    double noise;
    Matrix signal, noisy;
    Vector values;
};

struct Average {
    double mean = 0, spread = 0;
};
Average average(int draws, const std::function<double(std::uint64_t)>& value) {
    double sum = 0, squares = 0;
    for (int i = 1; i <= draws; ++i) {
        const double x = value(static_cast<std::uint64_t>(i));
        sum += x;
        squares += x * x;
    }
    const double mean = sum / draws;
    return {mean, std::sqrt(std::max(0.0, squares / draws - mean * mean))};
}

/// Error with a learned law over the error with the true one, six draws at d = 100.
double loss(const priors::Prior& prior, double noise_variance,
            const std::function<std::unique_ptr<SpectralLaw>(const NoisySpectrum&)>& learn) {
    double learned = 0, oracle = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        const Draw draw(prior, 100, noise_variance, seed);
        learned += draw.error(*learn(draw.spectrum()));
        oracle += draw.error(prior.law());
    }
    return learned / oracle;
}

auto smooth(double relative_width) {
    return [=](const NoisySpectrum& spectrum) {
        return std::make_unique<BumpLaw>(smooth_law(spectrum, relative_width));
    };
}

priors::UserSpectrum signs() {
    const std::vector<double> values{-1, 1}, weights{0.3, 0.7};
    return {values, weights};
}

TEST(LearnedLaws, MomentsAreThoseOfTheSignal) {
    const auto second = [](const priors::Prior& prior) {
        return average(
            40, [&](std::uint64_t seed) { return moments_of(Draw(prior, 20, 3, seed).spectrum()).second; });
    };
    // E tr S^2 = 1 + width + 1/d of Wishart weights. Without the terms in 1/d of the noise 0.15 would be
    // off.
    const Average wishart = second(priors::Wishart(0.5));
    EXPECT_NEAR(wishart.mean, 1.55, 4 * wishart.spread / std::sqrt(40));
    const Average bilinear = second(priors::Bilinear(0.5));
    EXPECT_NEAR(bilinear.mean, 1, 4 * bilinear.spread / std::sqrt(40));

    const std::vector<double> values{-1, 0, 1, 2};
    const Moments symmetric = moments_of({values, 0.4});
    EXPECT_DOUBLE_EQ(symmetric.mean, 0.5);
    EXPECT_DOUBLE_EQ(symmetric.second, 1.5 - 0.4 * 1.25);
    EXPECT_DOUBLE_EQ(moments_of({values, 4}).second, 0.25);  // not below the square of the mean
    EXPECT_DOUBLE_EQ(moments_of({values, 4, true}).second, 1.5e-4);
    EXPECT_EQ(moments_of({values, 4, true}).mean, 0);
}

TEST(LearnedLaws, WishartMomentsGiveWidthAndScale) {
    for (const double width : {0.02, 0.5, 7.0}) {
        for (const double scale : {0.1, 3.0}) {
            const WishartFit fit = wishart_from({scale * std::sqrt(width), scale * scale * (1 + width)});
            EXPECT_LE(test::relative_error(fit.width, width), 1e-14);
            EXPECT_LE(test::relative_error(fit.scale, scale), 1e-14);
            EXPECT_TRUE(fit.family_fits);
            const auto law = wishart_law(fit);
            EXPECT_LE(test::relative_error(law->mean(), scale * std::sqrt(width)), 1e-14);
            EXPECT_LE(test::relative_error(law->second_moment(), scale * scale * (1 + width)), 1e-14);
        }
    }
    for (const Moments& moments : {Moments{0.01, 1}, Moments{1, 1}, Moments{-0.5, 1}, Moments{0, 1}}) {
        const WishartFit fit = wishart_from(moments);
        EXPECT_FALSE(fit.family_fits);
        EXPECT_GE(fit.width, 0.005);
        EXPECT_LE(fit.width, 49.1);
        EXPECT_NEAR(fit.scale * fit.scale * (1 + fit.width), 1, 1e-14);
    }
}

/// The spread is that of 40 draws at d = 100: 5 to 8% for D up to 0.3.
TEST(LearnedLaws, BilinearWidthIsThatOfTheWeights) {
    for (const double width : {0.25, 0.5, 1.0}) {
        for (const double noise_variance : {0.01, 0.3}) {
            const auto [mean, spread] = average(40, [&](std::uint64_t seed) {
                return bilinear_from(Draw(priors::Bilinear(width), 100, noise_variance, seed).spectrum())
                    .width;
            });
            EXPECT_NEAR(mean, width, 4 * spread / std::sqrt(40)) << width << ", D = " << noise_variance;
            EXPECT_LE(spread, 0.09 * width) << width << ", D = " << noise_variance;
        }
    }
    const WishartFit fit = bilinear_from(Draw(priors::Bilinear(0.5), 100, 0.1, 1).spectrum());
    EXPECT_NEAR(fit.scale, 1, 0.05);
    EXPECT_TRUE(fit.family_fits);
    EXPECT_NEAR(bilinear_law(fit)->second_moment(), fit.scale * fit.scale, 1e-14);
    const std::vector<double> equal(50, 1.0);  // narrower than any width
    EXPECT_FALSE(bilinear_from({equal, 1e-3, true}).family_fits);
    EXPECT_EQ(bilinear_from({equal, 1e-3, true}).width, 200);
}

TEST(LearnedLaws, LinearLawShrinksLinearly) {
    const Moments moments{0.3, 0.3 * 0.3 + 0.8};
    const auto law = linear_law(moments);
    EXPECT_NEAR(mmse(*law, 0.5), 0.8 * 0.5 / 1.3, 1e-6);
    EXPECT_NEAR(FreeConvolution(*law, 0.5).at(1.1).denoised, 0.3 + 0.8 / 1.3 * 0.8, 1e-12);
    EXPECT_LT(linear_law({0.3, 0.09})->variance(), 1e-16);
}

TEST(LearnedLaws, WishartOfTwoMomentsDenoisesLikeTheTrueLaw) {
    const auto learn = [](const NoisySpectrum& spectrum) {
        return wishart_law(wishart_from(moments_of(spectrum)));
    };
    for (const double width : {0.1, 0.5}) {
        for (const double noise_variance : {0.1, 0.5, 2.0})
            EXPECT_LE(loss(priors::Wishart(width), noise_variance, learn), 1.01)
                << width << ", " << noise_variance;
    }
    const auto learn_bilinear = [](const NoisySpectrum& spectrum) {
        return bilinear_law(bilinear_from(spectrum));
    };
    for (const double noise_variance : {0.1, 0.5, 2.0})
        EXPECT_LE(loss(priors::Bilinear(0.5), noise_variance, learn_bilinear), 1.01) << noise_variance;
}

TEST(LearnedLaws, SmoothLawDenoisesLikeTheTrueLaw) {
    for (const double noise_variance : {0.1, 0.5, 2.0}) {
        EXPECT_LE(loss(priors::Wishart(0.5), noise_variance, smooth(0.6)), 1.02) << noise_variance;
        EXPECT_LE(loss(priors::Wishart(0.1), noise_variance, smooth(0.6)), 1.02) << noise_variance;
        EXPECT_LE(loss(priors::Wigner(), noise_variance, smooth(0.6)), 1.01) << noise_variance;
        EXPECT_LE(loss(priors::Bilinear(0.5), noise_variance, smooth(0.6)), 1.01) << noise_variance;
        EXPECT_LE(loss(priors::Bilinear(1), noise_variance, smooth(0.6)), 1.01) << noise_variance;
        // Atoms are not among the bumps; narrow ones come nearer.
        EXPECT_LE(loss(signs(), noise_variance, smooth(0.6)), 1.35) << noise_variance;
        EXPECT_LE(loss(signs(), noise_variance, smooth(0.3)), 1.05) << noise_variance;
    }
}

TEST(LearnedLaws, SmoothLawPromisesItsError) {
    for (const double noise_variance : {0.1, 0.5, 2.0}) {
        double promised = 0, measured = 0;
        for (std::uint64_t seed = 1; seed <= 6; ++seed) {
            const Draw draw(priors::Wishart(0.5), 100, noise_variance, seed);
            const BumpLaw law = smooth_law(draw.spectrum());
            promised += mmse(law, noise_variance);
            measured += draw.error(law);
        }
        EXPECT_NEAR(promised / measured, 1, 0.06) << noise_variance;
    }
}

TEST(LearnedLaws, SmoothLawHasTheMomentsOfTheSpectrum) {
    const Draw draw(priors::Wishart(0.5), 100, 0.3, 1);
    const BumpLaw law = smooth_law(draw.spectrum());
    const Moments moments = moments_of(draw.spectrum());
    EXPECT_NEAR(law.mean(), moments.mean, 0.01);  // rows of the least squares, not constraints
    EXPECT_NEAR(law.second_moment(), moments.second, 0.01);
    EXPECT_NEAR(std::sqrt(law.atomic_concentration()), 0.5, 0.15);  // the atom at 0

    const Draw untied(priors::Bilinear(0.5), 100, 0.3, 1);
    const BumpLaw symmetric = smooth_law(untied.spectrum());
    EXPECT_NEAR(symmetric.mean(), 0, 1e-15);
    EXPECT_NEAR(symmetric.second_moment(), moments_of(untied.spectrum()).second, 0.01);
}

TEST(LearnedLaws, SmoothLawTakesAnySpectrum) {
    const priors::Wigner nothing;
    const Draw draw(nothing, 60, 1, 1);
    for (const double noise_variance : {1e-9, 1e-3, 1.0, 2.5, 1e3}) {  // tr R^2 = 2
        const NoisySpectrum spectrum{draw.spectrum().values, noise_variance};
        const BumpLaw law = smooth_law(spectrum);
        const double error = mmse(law, noise_variance);
        EXPECT_GT(error, 0) << noise_variance;
        EXPECT_LE(error, std::min(noise_variance, law.variance()) * 1.0001) << noise_variance;
    }
    const std::vector<double> equal(20, 2.0), two{-1, 1};
    EXPECT_NEAR(smooth_law({equal, 0.1}).mean(), 2, 0.05);
    EXPECT_NEAR(smooth_law({two, 0.1}).second_moment(), 0.85, 0.05);
}

/// The null is that of 60 draws at d = 100: mean 2.4, 95% below 2.9.
TEST(LearnedLaws, MisfitRejectsAWrongWidth) {
    const priors::Wishart prior(0.5), wrong(1);
    std::vector<double> misfits;
    const Average null = average(60, [&](std::uint64_t seed) {
        const Draw draw(prior, 100, 0.1, seed);
        misfits.push_back(spectral_misfit(prior.law(), draw.spectrum()));
        EXPECT_GT(spectral_misfit(wrong.law(), draw.spectrum()), 12);
        return misfits.back();
    });
    std::sort(misfits.begin(), misfits.end());
    EXPECT_NEAR(null.mean, 2.4, 0.15);
    EXPECT_NEAR(misfits[56], 2.9, 0.3);
    EXPECT_LT(misfits.back(), 4);

    const priors::Bilinear untied(0.5);
    const Draw draw(untied, 100, 0.1, 1);
    EXPECT_LT(spectral_misfit(untied.law(), draw.spectrum()), 4);
    EXPECT_GT(spectral_misfit(priors::Bilinear(1).law(), draw.spectrum()), 8);
    EXPECT_LT(spectral_misfit(smooth_law(draw.spectrum()), draw.spectrum()), 4);
}

/// For the quantiles of mu_D itself the distance is 2 int U dmu_D - int U dmu_D.
TEST(LearnedLaws, DistanceToTheOwnQuantilesIsTheLogEnergy) {
    constexpr int count = 300;
    const priors::Wishart prior(0.5);
    const FreeConvolution spectrum(prior.law(), 0.3);
    std::vector<double> quantiles;
    for (int i = 0; i < count; ++i) {
        double low = spectrum.edges().front().low, high = spectrum.edges().back().high;
        while (high - low > 1e-6) {
            const double middle = 0.5 * (low + high);
            (spectrum.cumulative(middle) < (i + 0.5) / count ? low : high) = middle;
        }
        quantiles.push_back(low);
    }
    EXPECT_NEAR(log_energy_distance(prior.law(), {quantiles, 0.3}), spectrum.log_energy(), 1e-4);
    EXPECT_GT(log_energy_distance(priors::Wishart(1).law(), {quantiles, 0.3}), spectrum.log_energy() + 0.01);
}

TEST(LearnedLaws, EvidenceDecidesBetweenFamilies) {
    for (const bool wishart : {true, false}) {
        const Draw draw =
            wishart ? Draw(priors::Wishart(0.5), 100, 0.5, 1) : Draw(priors::Wigner(), 100, 0.5, 1);
        const Moments moments = moments_of(draw.spectrum());
        const auto nats = [&](const SpectralLaw& law) {
            return -0.5 * 100 * 100 * log_energy_distance(law, draw.spectrum());
        };
        const double gain = nats(*wishart_law(wishart_from(moments))) - nats(*linear_law(moments));
        EXPECT_GT(wishart ? gain : -gain, 100);
        const double best = std::max(nats(*wishart_law(wishart_from(moments))), nats(*linear_law(moments)));
        EXPECT_NEAR(nats(smooth_law(draw.spectrum())), best, 10);
    }
}

TEST(LearnedLaws, EvidenceReadsTheWidth) {
    const auto fit = [](const priors::Prior& prior, Eigen::Index dim, double noise_variance,
                        std::uint64_t seed) {
        const Draw draw(prior, dim, noise_variance, seed);
        return wishart_by_evidence(draw.spectrum(), moments_of(draw.spectrum()));
    };
    // Where the zero eigenvalues stand apart, they are counted.
    const Average counted =
        average(4, [&](std::uint64_t seed) { return fit(priors::Wishart(0.2), 120, 0.06, seed).fit.width; });
    EXPECT_NEAR(counted.mean, 0.2, 0.001);
    EXPECT_LT(counted.spread, 0.002);
    const Average untied =
        average(4, [&](std::uint64_t seed) { return fit(priors::Bilinear(0.2), 60, 0.06, seed).fit.width; });
    EXPECT_NEAR(untied.mean, 0.2, 0.002);

    constexpr int draws = 20;
    double promised = 0;
    const Average seen = average(draws, [&](std::uint64_t seed) {
        const EvidenceFit result = fit(priors::Wishart(0.5), 60, 0.3, seed);
        EXPECT_TRUE(result.fit.family_fits);
        promised += result.log_width_sd / draws;
        return std::log(result.fit.width);
    });
    EXPECT_NEAR(seen.mean, std::log(0.5), 4 * seen.spread / std::sqrt(draws));
    EXPECT_NEAR(seen.spread / promised, 1, 0.5);
}

TEST(LearnedLaws, RefusesWhatIsNoSpectrum) {
    const std::vector<double> descending{2, 1}, one{1}, zero{0, 0}, good{1, 2};
    test::expect_invalid([&] { moments_of({descending, 1}); }, "ascending");
    test::expect_invalid([&] { moments_of({one, 1}); }, "number of eigenvalues must be at least 2, got 1");
    test::expect_invalid([&] { moments_of({good, 0}); }, "noise variance must be positive");
    test::expect_invalid([&] { smooth_law({zero, 1}); }, "largest eigenvalue must be positive");
    test::expect_invalid([&] { smooth_law({good, 1}, 0); }, "relative width");
}

}  // namespace
}  // namespace bayesaim::spectral
