// SPDX-License-Identifier: MIT
#include "bayesaim/channels/expectations/winning_probability.hpp"

#include <cmath>
#include <numeric>

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bayesaim/numerics/gaussian.hpp"

namespace bayesaim::channels {
namespace {

TEST(WinningProbability, TwoNormalEntriesAreClosedForm) {
    for (const double deviation : {1e-3, 0.4, 3.0}) {
        auto law = WinningProbability::normal(2, deviation);
        for (const double k : {-6.0, -1.0, 0.0, 0.3, 5.0}) {
            const double mean[] = {0.7 + k * deviation * std::sqrt(1.5), 0.7};
            double p[2];
            law.evaluate(mean, 0, p);
            EXPECT_NEAR(p[0], numerics::normal_cdf(k), 1e-12);
            EXPECT_NEAR(p[1], numerics::normal_cdf(-k), 1e-12);
        }
    }
}

/// E 1/(1 + e^(h_2 - h_1)) with normal h of deviations s and s/sqrt(2), by adaptive quadrature.
TEST(WinningProbability, GumbelNoiseGivesTheMeanSoftmax) {
    for (const double deviation : {1e-3, 0.3, 1.0, 1.5, 8.0, 300.0}) {
        auto law = WinningProbability::gumbel_and_normal(2, deviation);
        for (const double gap : {-9.0, -1.0, 0.0, 0.5, 4.0}) {
            const double mean[] = {gap, 0};
            double p[2];
            law.evaluate(mean, 0, p);
            const double spread = deviation * std::sqrt(1.5);
            const auto integrand = [&](double z) {
                return numerics::normal_density(z) / (1 + std::exp(-gap - spread * z));
            };
            // split where the logistic function is steep
            const double centre = std::clamp(-gap / spread, -9.0, 9.0), width = std::min(9.0, 40 / spread);
            double expected = 0;
            const double cuts[] = {-10, std::max(-10.0, centre - width), centre,
                                   std::min(10.0, centre + width), 10};
            for (int i = 0; i < 4; ++i) {
                if (cuts[i] < cuts[i + 1])
                    expected += boost::math::quadrature::gauss_kronrod<double, 31>::integrate(
                        integrand, cuts[i], cuts[i + 1], 12, 1e-13);
            }
            EXPECT_NEAR(p[0], expected, 1e-10) << "deviation " << deviation << ", gap " << gap;
        }
    }
}

RC_GTEST_PROP(WinningProbability, SumsToOneForAnyMeans, ()) {
    const int tokens = *rc::gen::inRange(2, 9);
    const double deviation = std::pow(10.0, *rc::gen::inRange(-4, 4));
    const auto steps =
        *rc::gen::container<std::vector<int>>(static_cast<std::size_t>(tokens), rc::gen::inRange(-400, 400));
    std::vector<double> mean(steps.begin(), steps.end()), p(mean.size());
    for (double& m : mean) m *= 0.037 * deviation;
    const int diagonal = *rc::gen::inRange(0, tokens);
    for (auto law : {WinningProbability::normal(tokens, deviation),
                     WinningProbability::gumbel_and_normal(tokens, deviation)}) {
        law.evaluate(mean.data(), diagonal, p.data());
        RC_ASSERT(std::abs(std::accumulate(p.begin(), p.end(), 0.0) - 1) < 1e-10);
    }
}

}  // namespace
}  // namespace bayesaim::channels
