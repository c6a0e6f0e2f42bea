// SPDX-License-Identifier: MIT
// The explicit curve of Marchenko-Pastur against the engine, which knows nothing of it.
#include "bayesaim/spectral/marchenko_pastur_curve.hpp"

#include <cmath>
#include <memory>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

#include "support/tolerance.hpp"
#include "support/without_curve.hpp"

namespace bayesaim::spectral {
namespace {

/// Widths from 1e-4 to 1e4, a third of them within 0.1 of 1, and noise variances.
struct Cases {
    explicit Cases(double least, double most) : low(std::log(least)), high(std::log(most)) {}
    void next() {
        width = ++count % 3 == 0 ? 0.9 + 0.2 * uniform(random)
                                 : std::exp(std::log(1e4) * (2 * uniform(random) - 1));
        noise = std::exp(low + (high - low) * uniform(random));
        place = fmt::format("width {}, noise variance {}", width, noise);
    }
    double low, high, width = 0, noise = 0;
    int count = 0;
    std::string place;
    std::mt19937_64 random{1};
    std::uniform_real_distribution<> uniform;
};

TEST(MarchenkoPasturCurve, ErrorAndSlopeAreThoseOfTheEngine) {
    test::WorstError error(1e-12), slope(1e-10);
    Cases cases(1e-8, 100);
    for (int i = 0; i < 4000; ++i) {
        cases.next();
        const MarchenkoPasturLaw law(cases.width);
        const test::WithoutCurve plain(law);
        const auto known = law.known_error(cases.noise);
        ASSERT_TRUE(known) << cases.place;
        const FreeConvolution engine(plain, cases.noise);
        // The engine's mmse is D times 1 - ..: its round-off is some epsilon of D.
        error.add(test::scaled_error(known->error, engine.mmse(), engine.mmse() + 1e-3 * cases.noise),
                  cases.place);
        slope.add(test::scaled_error(known->slope, engine.mmse_derivative(),
                                     engine.mmse_derivative() + 1e-3 * engine.mmse() / cases.noise),
                  cases.place);
    }
}

TEST(MarchenkoPasturCurve, NodesGiveTheIntegralsOfTheEngine) {
    test::WorstError mass(1e-12), error(1e-11), slope(1e-9), energy(1e-11), moment(1e-11);
    Cases cases(1e-8, 1e6);
    for (int i = 0; i < 1000; ++i) {
        cases.next();
        // Heads scale the law: half of the cases.
        const auto base = std::make_shared<MarchenkoPasturLaw>(cases.width);
        const ScaledLaw law(base, i % 2 == 0 ? 1 : 0.3);
        const test::WithoutCurve plain(law);
        ASSERT_FALSE(law.known_bulks(cases.noise).empty()) << cases.place;
        const FreeConvolution curve(law, cases.noise), engine(plain, cases.noise);
        mass.add(test::relative_error(curve.mass(), 1), cases.place);
        error.add(test::relative_error(curve.mmse(), engine.mmse()), cases.place);
        slope.add(test::relative_error(curve.mmse_derivative(), engine.mmse_derivative()), cases.place);
        energy.add(test::scaled_error(curve.log_energy(), engine.log_energy(), 1), cases.place);
        moment.add(test::relative_error(curve.second_moment(), engine.second_moment()), cases.place);
    }
}

TEST(MarchenkoPasturCurve, WithoutNoiseTheErrorOverTheNoiseIsOneLessTheSquaredAtom) {
    for (const double width : {1e-4, 0.1, 0.5, 0.999, 1.0, 1.001, 10.0}) {
        const MarchenkoPasturLaw law(width);
        const double noise = 1e-12, limit = width < 1 ? width * (2 - width) : 1;
        const auto known = law.known_error(noise);
        ASSERT_TRUE(known) << width;
        // The correction is of order D^{1/3} at width 1, where the gap closes, and of order D elsewhere.
        EXPECT_LE(std::abs(known->error / noise - limit), std::abs(width - 1) < 0.01 ? 1e-3 : 1e-7) << width;
    }
}

TEST(MarchenkoPasturCurve, NextToMergingBulksTheEngineTakesOver) {
    // One bulk and two bulks, closer and closer to merging: many nodes, then none.
    const double width = 0.5, root = std::cbrt(1 / std::sqrt(width)), merging = std::pow(root * root - 1, 3);
    const MarchenkoPasturLaw law(width);
    const test::WithoutCurve plain(law);
    test::WorstError worst(1e-11);
    int unknown = 0;
    for (double shift = 0.1; shift > 1e-15; shift /= 10) {
        for (const double side : {-1.0, 1.0}) {
            const double noise = merging * (1 + side * shift);
            unknown += law.known_error(noise) ? 0 : 1;
            worst.add(
                test::relative_error(error_point(law, noise).error, FreeConvolution(plain, noise).mmse()),
                fmt::format("shift {}", side * shift));
        }
    }
    EXPECT_GT(unknown, 0);
    EXPECT_LT(unknown, 24);
}

}  // namespace
}  // namespace bayesaim::spectral
