// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/bilinear_law.hpp"

#include <cmath>
#include <complex>
#include <numbers>

#include <Eigen/Eigenvalues>
#include <gtest/gtest.h>

#include "bayesaim/core/random.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "support/expect_invalid.hpp"
#include "support/tolerance.hpp"
#include "support/without_curve.hpp"

namespace bayesaim::spectral {
namespace {

TEST(BilinearLaw, EdgesAreTheKnownOnes) {
    const double widths[] = {0.1, 0.5, 1, 2},
                 outer[] = {4.64758002, 2.96956221, 1.5 * std::numbers::sqrt3, 2.35480041},
                 inner[] = {1.83711731, 0.23811819};
    for (int i = 0; i < 4; ++i) {
        const auto support = BilinearLaw(widths[i]).centred_support();
        EXPECT_NEAR(support.back().high, outer[i], 1e-8);
        EXPECT_EQ(support.front().low, -support.back().high);
        ASSERT_EQ(support.size(), i < 2 ? 3u : 1u);
        if (i < 2) {
            EXPECT_NEAR(support.back().low, inner[i], 1e-8);
        }
    }
}

/// Far away G is the series of the moments, which follow from the free cumulants 1, 1/rho, 1/rho^2:
///   m2 = 1, m4 = 2 + 1/rho, m6 = 5 + 6/rho + 1/rho^2.
TEST(BilinearLaw, MomentsAreThoseOfTheFreeCumulants) {
    for (const double rho : {0.1, 0.5, 1.0, 2.0, 50.0}) {
        const Complex w(150 / std::sqrt(rho) + 30, 40);
        const Complex x = 1.0 / (w * w),
                      series = x * (1.0 + x * (2 + 1 / rho + x * (5 + 6 / rho + 1 / (rho * rho))));
        const Complex m = BilinearLaw(rho).moment_transform(w).value;
        EXPECT_LE(std::abs(m / series - 1.0), 1e-8) << rho;
    }
}

/// Outside the support, in the gap around the atom and beyond the outer edge, G is real and falls.
TEST(BilinearLaw, OnTheAxisTransformsFallOutsideTheSupport) {
    for (const double rho : {0.01, 0.1, 0.5, 0.9, 1.0, 2.0, 40.0}) {
        const BilinearLaw law(rho);
        const auto support = law.centred_support();
        const auto check = [&](double u) {
            const Transform g = law.stieltjes(u);
            EXPECT_EQ(g.value.imag(), 0) << rho << " " << u;
            EXPECT_LT(g.derivative.real(), 0) << rho << " " << u;
            // next to the axis the same root
            EXPECT_LE(std::abs(law.stieltjes({u, 1e-9}).value - g.value), 1e-5 * std::abs(g.value))
                << rho << " " << u;
        };
        for (const double beyond : {1e-3, 0.1, 1.0, 30.0}) check(support.back().high + beyond);
        check(support.front().low - 0.1);
        if (support.size() == 3) {
            for (const double part : {0.01, 0.3, 0.9, 0.999}) check(part * support.back().low);
            EXPECT_NEAR((1e-7 * law.stieltjes(1e-7).value).real(), 1 - rho, 1e-6);  // the atom
        }
    }
}

struct Reference {
    double width, mmse[6];
};
constexpr double noises[] = {0.01, 0.1, 0.5, 1, 2, 10};
constexpr Reference references[] = {
    {0.1, {0.001898946442, 0.018894475090, 0.092342467073, 0.179265074436, 0.336035161272, 0.847986246032}},
    {0.5, {0.007465210524, 0.070987727851, 0.276736573703, 0.439040736362, 0.623677047153, 0.906655493384}},
    {1, {0.009769955123, 0.086467944313, 0.313957899827, 0.479246345584, 0.653452882395, 0.908477966480}},
    {2, {0.009883471332, 0.089825388108, 0.327377422602, 0.493752553119, 0.662983110225, 0.908936813457}}};

/// Computed independently in Python: quadrature of the density from the quartic below.
TEST(BilinearLaw, MmseIsThatOfTheReferenceTable) {
    for (const Reference& row : references) {
        const BilinearLaw law(row.width);
        for (int i = 0; i < 6; ++i) {
            EXPECT_NEAR(mmse(law, noises[i]), row.mmse[i], 1e-11) << row.width << " " << noises[i];
            EXPECT_NEAR(FreeConvolution(law, noises[i]).mass(), 1, 1e-12);
        }
    }
}

/// An independent way to the density and its Hilbert transform: the root with Im g < 0 of
///   D g^4 - w g^3 + (1 - rho - D rho) g^2 + rho w g - rho = 0.
TEST(BilinearLaw, UnderNoiseTheDensityIsThatOfTheQuartic) {
    for (const double rho : {0.1, 0.5, 1.0, 3.0}) {
        const BilinearLaw law(rho);
        for (const double D : {0.02, 0.3, 2.0}) {
            const FreeConvolution spectrum(law, D);
            for (const Interval& bulk : spectrum.edges()) {
                for (const double part : {0.1, 0.35, 0.5, 0.8}) {
                    const double w = bulk.low + part * (bulk.high - bulk.low);
                    Eigen::Matrix4d companion = Eigen::Matrix4d::Zero();
                    const double c[] = {-rho / D, rho * w / D, (1 - rho - D * rho) / D, -w / D};
                    for (int i = 0; i < 4; ++i) companion(i, 3) = -c[i];
                    for (int i = 1; i < 4; ++i) companion(i, i - 1) = 1;
                    std::complex<double> g = 0;
                    const Eigen::EigenSolver<Eigen::Matrix4d> solver(companion);
                    for (const auto& root : solver.eigenvalues())
                        g = root.imag() < g.imag() ? root : g;
                    const SpectrumPoint point = spectrum.at(w);
                    EXPECT_NEAR(point.density, -g.imag() / std::numbers::pi, 1e-11)
                        << rho << " " << D << " " << w;
                    EXPECT_NEAR(point.hilbert, g.real(), 1e-10) << rho << " " << D << " " << w;
                }
            }
        }
    }
}

/// I_in of untied attention is twice the one of symmetric matrices (d^2 entries instead of d^2/2).
TEST(BilinearLaw, FreeEntropyIsThatOfTheReferenceTable) {
    const double conjugates[] = {0.5, 2, 8};
    const struct {
        double width, value[3], tolerance;
    } rows[] = {{0.1, {0.0963874, 0.7227879, 3.593076}, 1e-6},
                {0.5, {0.051900222, 0.499100051, 3.058340628}, 1e-8},
                {1, {0.048600386, 0.466892272, 2.950015153}, 1e-8},
                {2, {0.047625829, 0.455545364, 2.915541643}, 1e-8}};
    for (const auto& row : rows) {
        const BilinearLaw law(row.width);
        for (int i = 0; i < 3; ++i)
            EXPECT_NEAR(2 * prior_free_entropy(law, conjugates[i]), row.value[i], row.tolerance) << row.width;
        // I_in' = q/2, by central differences
        const double qhat = 1.3, step = 1e-4;
        const double slope =
            (prior_free_entropy(law, qhat + step) - prior_free_entropy(law, qhat - step)) / step;
        EXPECT_NEAR(slope, 0.5 * (1 - mmse(law, 1 / qhat)), 1e-8);
    }
}

TEST(BilinearLaw, LimitsOfSmallAndLargeWidth) {
    EXPECT_NEAR(mmse(BilinearLaw(10), 1), 0.499702, 1e-6);
    EXPECT_NEAR(mmse(BilinearLaw(1e4), 1), 0.5, 1e-6);  // independent entries: D/(1+D)
    for (const double t : {0.2, 0.7}) {                 // t = rho D, E = t (2 - t)
        EXPECT_NEAR(mmse(BilinearLaw(1e-4), t * 1e4), t * (2 - t), 1e-2);
        EXPECT_GT(std::abs(mmse(BilinearLaw(1e-4), t * 1e4) - t), 0.1);
    }
    for (const double rho : {0.1, 0.5, 1.0, 2.0}) {
        const double nu = rho < 1 ? 2 * rho - rho * rho : 1;
        EXPECT_NEAR(1 - BilinearLaw(rho).atomic_concentration(), nu, 1e-15);
        EXPECT_NEAR(mmse(BilinearLaw(rho), 1e-9) / 1e-9, nu, 3e-3 * nu);
    }
}

/// Random widths and noises, one and two bulks, against the engine, which does not know the explicit curve.
TEST(BilinearCurve, AgreesWithTheEngine) {
    RandomStream stream(3, Purpose::probe);
    std::vector<double> uniform(600);
    stream.fill_uniform(uniform);
    int known = 0;
    for (std::size_t i = 0; i < uniform.size(); i += 2) {
        const double rho = std::pow(10, -2 + 4 * uniform[i]), D = std::pow(10, -8 + 10 * uniform[i + 1]);
        const BilinearLaw law(rho);
        const test::WithoutCurve plain(law);
        const FreeConvolution engine(plain, D);
        if (const auto error = law.known_error(D)) {
            ++known;
            EXPECT_LE(test::relative_error(error->error, engine.mmse()), 1e-11) << rho << " " << D;
            EXPECT_LE(test::relative_error(error->slope, engine.mmse_derivative()), 1e-9) << rho << " " << D;
        }
        if (law.known_bulks(D).empty()) continue;
        const FreeConvolution curve(law, D);
        const auto edges = curve.edges(), expected = engine.edges();
        ASSERT_EQ(edges.size(), expected.size()) << rho << " " << D;
        for (std::size_t k = 0; k < edges.size(); ++k) {
            EXPECT_NEAR(edges[k].low, expected[k].low, 1e-9 * expected.back().high) << rho << " " << D;
            EXPECT_NEAR(edges[k].high, expected[k].high, 1e-9 * expected.back().high) << rho << " " << D;
            const double x = edges[k].low + 0.37 * (edges[k].high - edges[k].low);
            EXPECT_NEAR(curve.at(x).density, engine.at(x).density, 1e-9) << rho << " " << D;
            EXPECT_NEAR(curve.at(x).denoised, engine.at(x).denoised, 1e-9) << rho << " " << D;
        }
        EXPECT_NEAR(curve.log_energy(), engine.log_energy(), 1e-10) << rho << " " << D;
        EXPECT_NEAR(curve.second_moment(), 1 + D, 1e-11 * (1 + D)) << rho << " " << D;
    }
    EXPECT_GT(known, 250);
}

/// Large noise: 1 - D s is a small difference, which the curve takes from elsewhere. The slope is 1 minus an integral.
TEST(BilinearCurve, HasTheErrorOfLargeNoise) {
    for (const double rho : {0.01, 0.1, 0.5, 1.0, 10.0}) {
        const BilinearLaw law(rho);
        const test::WithoutCurve plain(law);
        for (const double D : {150.0, 1e3, 9e3}) {
            const auto error = law.known_error(D);
            ASSERT_TRUE(error) << rho << " " << D;
            const FreeConvolution engine(plain, D);
            EXPECT_NEAR(error->error, engine.mmse(), 1e-13) << rho << " " << D;
            EXPECT_NEAR(error->slope, engine.mmse_derivative(), 1e-14) << rho << " " << D;
        }
    }
}

// Round-off hides the convergence of panels there: they were halved for minutes.
TEST(BilinearLaw, NoiseThatHidesTheLawHasItsLimitOrAnError) {
    const BilinearLaw law(0.5);
    const ErrorPoint limit = error_point(law, 1e29);
    EXPECT_EQ(limit.error, 1);
    EXPECT_NEAR(limit.slope, 1e-58, 1e-70);
    test::expect_invalid([&] { FreeConvolution(law, 1e29); },
                         "noise variance must be one at which this spectrum can be resolved, got 1e+29");
}

TEST(BilinearLaw, RefusesWidthsThatAreNone) {
    test::expect_invalid([] { BilinearLaw{-1}; }, "width must be positive and finite, got -1");
    test::expect_invalid([] { BilinearLaw{1e9}; }, "width must be between 1e-06 and 1e+06, got 1000000000");
}

}  // namespace
}  // namespace bayesaim::spectral
