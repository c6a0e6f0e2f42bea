// SPDX-License-Identifier: MIT
// Integrals of mu_D above a threshold, against the cubic equation of the law in 50 digits and its quadrature.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/atomic_law.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"

#include "support/cubic_oracle.hpp"
#include "support/generators.hpp"
#include "support/tolerance.hpp"
#include "support/without_curve.hpp"

namespace bayesaim::spectral {
namespace {

constexpr double pi = std::numbers::pi;

/// Quadrature and roundoff: the rules aim at 1e-13.
constexpr double agreement = 1e-12;

void add(TailMoments& sum, double mass, double excess, double hilbert, double density) {
    sum.mass += mass;
    sum.first += mass * excess;
    sum.second += mass * excess * excess;
    sum.hilbert += mass * hilbert;
    sum.divergence += 2 * mass * excess * hilbert;
    sum.divergence_growth += 2 * mass * (hilbert * hilbert - std::pow(pi * density, 2) / 3);
}

/// Calls f(distance from the nearer end, whether that is the lower one, weight) on an interval of length 2: x = tanh(pi/2
/// sinh t) in equal steps of t, which no singularity at an end disturbs.
void double_exponential(const std::function<void(double, bool, double)>& f) {
    constexpr double step = 0.03;
    for (int k = -125; k <= 125; ++k) {
        const double t = step * k, s = 0.5 * pi * std::sinh(std::abs(t)),
                     from_end = 2 / (1 + std::exp(2 * s));
        f(from_end, k < 0, step * 0.5 * pi * std::cosh(t) / std::pow(std::cosh(s), 2));
    }
}

/// The slow and obvious integrals of the cubic's root, cut at the threshold, where bulks merge, and at 0, next to which a
/// Wishart matrix of width 1 has a peak.
TailMoments exact_above(const test::CubicOracle& oracle, double threshold) {
    TailMoments sum;
    const auto add_piece = [&](const test::Real& low, const test::Real& high) {
        const test::Real half = (high - low) / 2;
        double_exponential([&](double from_end, bool left, double weight) {
            const test::Real x = left ? low + half * from_end : high - half * from_end;
            const test::CubicRoots roots = oracle.roots(x);
            const double density = static_cast<double>(roots.im) / pi;
            add(sum, static_cast<double>(half) * weight * density, static_cast<double>(x - threshold),
                static_cast<double>(roots.re), density);
        });
    };
    for (const test::OracleInterval& bulk : oracle.bulks()) {
        if (bulk.high <= threshold) continue;
        std::vector<test::Real> cuts{std::max<test::Real>(bulk.low, threshold), bulk.high};
        for (const test::Real& cut : {oracle.neck(), test::Real(0)}) {
            if (cuts.front() < cut && cut < bulk.high) cuts.push_back(cut);
        }
        std::sort(cuts.begin(), cuts.end());
        for (std::size_t i = 0; i + 1 < cuts.size(); ++i) add_piece(cuts[i], cuts[i + 1]);
    }
    return sum;
}

/// The largest difference. Units: 1 for N, the standard deviation s of mu_D for x, and 1/sqrt(D), its largest value, for
/// H; integrals have the products of these as units.
double difference(const TailMoments& a, const TailMoments& b, const SpectralLaw& law, double noise) {
    const double s = std::sqrt(law.variance() + noise), h = 1 / std::sqrt(noise);
    return std::max({test::scaled_error(a.mass, b.mass, 1), test::scaled_error(a.first, b.first, s),
                     test::scaled_error(a.second, b.second, s * s),
                     test::scaled_error(a.hilbert, b.hilbert, h),
                     test::scaled_error(a.divergence, b.divergence, s * h),
                     test::scaled_error(a.divergence_growth, b.divergence_growth, h * h)});
}

/// Inside each bulk, next to its ends, at them, in gaps, and on both outer sides.
std::vector<double> thresholds(const FreeConvolution& spectrum) {
    const std::vector<Interval> bulks = spectrum.edges();
    std::vector<double> result;
    for (std::size_t i = 0; i < bulks.size(); ++i) {
        const auto [low, high] = bulks[i];
        for (const double part : {0.0, 1e-6, 0.1, 0.5, 0.95, 1 - 1e-6, 1.0})
            result.push_back(low + part * (high - low));
        if (i > 0) result.push_back(0.5 * (bulks[i - 1].high + low));
    }
    result.push_back(bulks.front().low - 1);
    result.push_back(bulks.back().high + 1);
    return result;
}

TEST(FreeConvolutionTail, WishartIntegralsAreThoseOfTheCubic) {
    test::WorstError worst(agreement);
    for (const double width : {0.1, 0.5, 1.0, 2.0}) {
        const MarchenkoPasturLaw curve(width);
        const test::WithoutCurve engine(curve);
        std::vector<double> noises{1e-6, 1e-3, 0.1, 1.0, 30.0, 1e3};
        if (width < 1) {  // just before bulks merge, and after
            const double merging = test::WishartOracle::merging_noise(width);
            noises.insert(noises.end(), {merging * (1 - 1e-3), merging * (1 + 1e-3)});
        }
        for (const double noise : noises) {
            const test::WishartOracle oracle(width, noise);
            const FreeConvolution by_curve(curve, noise), by_engine(engine, noise);
            for (const double threshold : thresholds(by_curve)) {
                const TailMoments exact = exact_above(oracle, threshold);
                for (const FreeConvolution* spectrum : {&by_curve, &by_engine})
                    worst.add(difference(spectrum->above(threshold), exact, curve, noise),
                              fmt::format("width {}, D {}, threshold {}, {}", width, noise, threshold,
                                          spectrum == &by_curve ? "curve" : "engine"));
            }
        }
    }
}

TEST(FreeConvolutionTail, TwoAtomsIntegralsAreThoseOfTheCubic) {
    const AtomicLaw law(std::vector<double>{-1, 1});
    test::WorstError worst(agreement);
    for (const double noise : {1e-6, 0.01, 0.9, 1.0, 1.1, 10.0, 1e3}) {
        const test::TwoAtomsOracle oracle(noise);
        const FreeConvolution spectrum(law, noise);
        for (const double threshold : thresholds(spectrum))
            worst.add(difference(spectrum.above(threshold), exact_above(oracle, threshold), law, noise),
                      fmt::format("D {}, threshold {}", noise, threshold));
    }
}

/// Three unequal atoms: no cubic, but density and Hilbert transform at points have their own tests.
TEST(FreeConvolutionTail, AtomsIntegralsAreThoseOfTheDensityAndTheHilbertTransform) {
    const std::vector<double> positions{0, 1, 4}, weights{0.5, 0.3, 0.2};
    const AtomicLaw law(positions, weights);
    // Points are found to a rounding of lambda, which next to an edge is the square root of it.
    constexpr double pointwise = 1e-10;
    test::WorstError worst(pointwise);
    for (const double noise : {1e-4, 0.05, 0.3, 2.0, 100.0}) {
        const FreeConvolution spectrum(law, noise);
        for (const double threshold : thresholds(spectrum)) {
            TailMoments sum;
            for (const auto& [low, high] : spectrum.edges()) {
                if (high <= threshold) continue;
                const double from = std::max(low, threshold), half = 0.5 * (high - from);
                double_exponential([&, high = high](double from_end, bool left, double weight) {
                    const double x = left ? from + half * from_end : high - half * from_end;
                    const SpectrumPoint point = spectrum.at(x);
                    add(sum, half * weight * point.density, x - threshold, point.hilbert, point.density);
                });
            }
            worst.add(difference(spectrum.above(threshold), sum, law, noise),
                      fmt::format("D {}, threshold {}", noise, threshold));
        }
    }
}

/// A semicircle of variance s^2 = 1 + D: H = x/(2 s^2), and with t = threshold/s, w = sqrt(4 - t^2)
///   int_{x>t} = (arccos(t/2) - t w/4)/pi,  int x = w^3/(6 pi),  int x^2 = int + t w^3/(8 pi).
TEST(FreeConvolutionTail, WignerIntegralsHaveClosedForms) {
    const auto law = MarchenkoPasturLaw::semicircle();
    test::WorstError worst(agreement);
    for (const double noise : {1e-6, 0.3, 1.0, 20.0, 1e3}) {
        const FreeConvolution spectrum(law, noise);
        const double s = std::sqrt(1 + noise);
        for (const double t : {-2.5, -2.0, -1.999, -1.0, 0.0, 0.7, 1.9, 1.9999, 2.0, 3.0}) {
            const double u = std::clamp(t, -2.0, 2.0), w = std::sqrt(4 - u * u);
            const double mass = (std::acos(0.5 * u) - 0.25 * u * w) / pi, x1 = std::pow(w, 3) / (6 * pi),
                         x2 = mass + u * std::pow(w, 3) / (8 * pi);
            TailMoments exact;
            exact.mass = mass;
            exact.first = s * (x1 - t * mass);
            exact.second = s * s * (x2 - 2 * t * x1 + t * t * mass);
            exact.hilbert = x1 / (2 * s);
            exact.divergence = x2 - t * x1;
            exact.divergence_growth = t * x1 / (2 * s * s);
            worst.add(difference(spectrum.above(s * t), exact, law, noise),
                      fmt::format("D {}, t {}", noise, t));
        }
    }
}

RC_GTEST_PROP(FreeConvolutionTail, AllIsAboveALowThresholdAndNothingAboveAHighOne, ()) {
    const double width = test::log_uniform(1e-3, 1e3), noise = test::log_uniform(1e-8, 1e6);
    RC_LOG() << "width " << width << ", noise variance " << noise << '\n';
    const MarchenkoPasturLaw law(width);
    const FreeConvolution spectrum(law, noise);
    const auto edges = spectrum.edges();
    const double below = edges.front().low - test::uniform(0, 3),
                 scale = std::abs(law.mean()) + std::abs(below) + std::sqrt(1 + noise);
    const TailMoments all = spectrum.above(below), none = spectrum.above(edges.back().high);
    RC_ASSERT(test::scaled_error(all.mass, 1, 1) < agreement);
    RC_ASSERT(test::scaled_error(all.first, law.mean() - below, scale) < agreement);
    RC_ASSERT(test::scaled_error(all.second, 1 + noise + std::pow(law.mean() - below, 2), scale * scale) <
              agreement);
    // int H = 0 and 2 int x H = 1 over all x: pairs of eigenvalues repel with equal forces.
    RC_ASSERT(std::abs(all.hilbert) * std::sqrt(noise) < agreement);
    RC_ASSERT(test::scaled_error(all.divergence, 1, 1 + scale / std::sqrt(noise)) < agreement);
    RC_ASSERT(none.mass == 0 && none.first == 0 && none.second == 0 && none.divergence == 0);
}

/// What is above a threshold and what is below it, that is above it after a change of sign, are everything.
RC_GTEST_PROP(FreeConvolutionTail, BothSidesOfAThresholdAreEverything, ()) {
    std::vector<double> positions, weights, mirrored;
    double total = 0;
    for (int i = test::integer(1, 6); i > 0; --i) {
        positions.push_back(test::uniform(-3, 3));
        mirrored.push_back(-positions.back());
        weights.push_back(test::log_uniform(1e-3, 1));
        total += weights.back();
    }
    for (double& weight : weights) weight /= total;
    const AtomicLaw law(positions, weights), mirror(mirrored, weights);
    const double noise = test::log_uniform(1e-5, 1e3);
    const FreeConvolution spectrum(law, noise), reflection(mirror, noise);
    const Interval bulk = spectrum.edges()[static_cast<std::size_t>(
        test::integer(0, static_cast<int>(spectrum.edges().size()) - 1))];
    const double threshold = bulk.low + test::uniform(-0.1, 1.1) * (bulk.high - bulk.low);
    RC_LOG() << "positions " << rc::toString(positions) << ", weights " << rc::toString(weights) << ", D "
             << noise << ", threshold " << threshold << '\n';
    const TailMoments above = spectrum.above(threshold), below = reflection.above(-threshold);
    const double mean = law.mean() - threshold, scale = 3 + std::sqrt(noise), h = 1 / std::sqrt(noise);
    RC_ASSERT(test::scaled_error(above.mass + below.mass, 1, 1) < agreement);
    RC_ASSERT(test::scaled_error(above.first - below.first, mean, scale) < agreement);
    RC_ASSERT(test::scaled_error(above.second + below.second, law.variance() + noise + mean * mean,
                                 scale * scale) < agreement);
    RC_ASSERT(test::scaled_error(above.hilbert, below.hilbert, h) < agreement);
    RC_ASSERT(test::scaled_error(above.divergence + below.divergence, 1, scale * h) < agreement);
    RC_ASSERT(above.divergence >= -agreement * scale * h);
}

/// The derivatives that the solvers of theory use, by differences of the integrals themselves.
TEST(FreeConvolutionTail, DerivativesAreThoseOfTheIntegrals) {
    constexpr double step = 1e-3, finite_difference = 1e-8;  // step^4 and 1e-13/step
    // f'(0) times the step
    const auto change = [](const auto& f) { return (8 * (f(1) - f(-1)) - (f(2) - f(-2))) / 12; };
    test::WorstError worst(finite_difference);
    const AtomicLaw atoms(std::vector<double>{0, 1, 4}, std::vector<double>{0.5, 0.3, 0.2});
    const MarchenkoPasturLaw half(0.5), two(2);
    for (const SpectralLaw* law : std::initializer_list<const SpectralLaw*>{&half, &two, &atoms}) {
        for (const double noise : {0.005, 0.1, 1.0, 10.0}) {
            const FreeConvolution spectrum(*law, noise);
            const Interval bulk = spectrum.edges().back();
            const double width = bulk.high - bulk.low, h = 1 / std::sqrt(noise);
            for (const double part : {0.2, 0.6}) {
                const double threshold = bulk.low + part * width;
                const TailMoments here = spectrum.above(threshold);
                const auto compare = [&](const char* what, double actual, double expected, double unit) {
                    worst.add(test::scaled_error(actual, expected, unit),
                              fmt::format("{}, mean {}, D {}, part {}", what, law->mean(), noise, part));
                };
                const auto by_noise = [&](double TailMoments::*value) {
                    return change([&](int k) {
                               return FreeConvolution(*law, noise * (1 + k * step)).above(threshold).*value;
                           }) /
                           (step * noise);
                };
                compare("dM1/dD", by_noise(&TailMoments::first), here.hilbert, h);
                compare("dM2/dD", by_noise(&TailMoments::second), here.divergence, 1);
                compare("dJ/dD", by_noise(&TailMoments::divergence), here.divergence_growth, h * h);
                const auto by_threshold = [&](double TailMoments::*value) {
                    return change(
                               [&](int k) { return spectrum.above(threshold + k * step * width).*value; }) /
                           (step * width);
                };
                compare("dN", by_threshold(&TailMoments::mass), -spectrum.at(threshold).density, 1 / width);
                compare("dM1", by_threshold(&TailMoments::first), -here.mass, 1);
                compare("dM2", by_threshold(&TailMoments::second), -2 * here.first, width);
                compare("dJ", by_threshold(&TailMoments::divergence), -2 * here.hilbert, h);
            }
        }
    }
}

/// ||(Y - threshold)_+ - S||^2/d = kappa2 - M2 - 2 threshold M1 + 2 D J, which loses the digits of a small error.
TEST(FreeConvolutionTail, ThresholdingErrorIsThatOfTheMoments) {
    test::WorstError worst(agreement);
    const AtomicLaw atoms(std::vector<double>{-1, 0, 1, 4}, std::vector<double>{0.2, 0.3, 0.3, 0.2});
    const MarchenkoPasturLaw half(0.5), two(2);
    for (const SpectralLaw* law : std::initializer_list<const SpectralLaw*>{&half, &two, &atoms}) {
        for (const double noise : {1e-3, 0.3, 2.0, 50.0}) {
            const FreeConvolution spectrum(*law, noise);
            for (const double threshold : thresholds(spectrum)) {
                const TailMoments tail = spectrum.above(threshold);
                const double expected = law->second_moment() - tail.second - 2 * threshold * tail.first +
                                        2 * noise * tail.divergence;
                worst.add(test::scaled_error(spectrum.thresholding_error(threshold), expected,
                                             law->second_moment() + noise + threshold * threshold),
                          fmt::format("mean {}, D {}, threshold {}", law->mean(), noise, threshold));
            }
        }
    }
}

/// Below the spectrum nothing is cut, and the error is D + threshold^2. If S has eigenvalues 0, of weight 1 - rho, they become
/// a semicircle of variance (1 - rho) D, which a threshold of t times its deviation cuts: the error is D E0(t) with
///   E0(t) = 1 - (1-rho)^2 + rho (1-rho) t^2 + (1-rho)^2 int (x - t)_+^2 of the semicircle.
TEST(FreeConvolutionTail, SmallThresholdingErrorsKeepTheirDigits) {
    const MarchenkoPasturLaw two(2), half(0.5);
    for (const double noise : {1e-8, 1e-12, 1e-16}) {
        const double roundoff = 1e-15 / std::sqrt(noise);  // of eigenvalues
        const double root = std::sqrt(noise);
        EXPECT_LT(test::relative_error(FreeConvolution(two, noise).thresholding_error(3 * root), 10 * noise),
                  roundoff);
        const double t = 0.7, w = std::sqrt(4 - t * t), mass = (std::acos(0.5 * t) - 0.25 * t * w) / pi,
                     x1 = std::pow(w, 3) / (6 * pi), x2 = mass + t * std::pow(w, 3) / (8 * pi);
        const double limit = 0.75 + 0.25 * t * t + 0.25 * (x2 - 2 * t * x1 + t * t * mass);
        EXPECT_LT(
            test::relative_error(FreeConvolution(half, noise).thresholding_error(t * std::sqrt(0.5) * root),
                                 limit * noise),
            roundoff + 10 * root);  // next order in D^{1/2}
    }
}

/// J is the divergence of (x - threshold)_+ per d^2: [sum_{i != j} (f_i - f_j)/(l_i - l_j) + 2 #{l_i > threshold}]/d^2 for
/// the eigenvalues of one large matrix.
TEST(FreeConvolutionTail, DivergenceIsThatOfALargeMatrix) {
    constexpr Eigen::Index dim = 400;
    constexpr double finite_size = 0.006;  // the diagonal alone is 1/d
    const priors::Wishart prior(0.5);
    ThreadPool pool(1);
    const double noise = 0.8;
    const linalg::Matrix noisy =
        prior.sample(dim, 1, 0, pool) +
        std::sqrt(noise) * linalg::gaussian_orthogonal_ensemble(dim, RandomStream(1, Purpose::noise), pool);
    const linalg::Vector values = linalg::symmetric_eigenvalues(noisy);
    const FreeConvolution spectrum(prior.law(), noise);
    for (const double threshold : {-0.5, 0.4, 1.5, 2.5}) {
        const auto f = [&](double x) { return std::max(x - threshold, 0.0); };
        double sum = 0;
        for (Eigen::Index i = 0; i < dim; ++i) {
            for (Eigen::Index j = 0; j < dim; ++j)
                sum += i == j ? 2 * (values[i] > threshold)
                              : (f(values[i]) - f(values[j])) / (values[i] - values[j]);
        }
        EXPECT_NEAR(spectrum.above(threshold).divergence, sum / (dim * dim), finite_size) << threshold;
    }
}

}  // namespace
}  // namespace bayesaim::spectral
