// SPDX-License-Identifier: MIT
// The stored functions of hardmax: exact numbers at both ends, an exact integral, and averages computed anew.
#include "bayesaim/channels/hardmax/universal.hpp"

#include <cmath>
#include <numbers>
#include <numeric>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bayesaim/channels/expectations/output_disagreement.hpp"
#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/hardmax/recursion.hpp"

#include "support/tolerance.hpp"

namespace bayesaim::channels {
namespace {

/// f'(x) and f''(x) from values on one side, side = +-1, of seventh order.
double one_sided_slope(auto f, double x, double side, double h = 1e-3) {
    constexpr double weights[] = {-363.0 / 140, 7,        -21.0 / 2, 35.0 / 3,
                                  -35.0 / 4,    21.0 / 5, -7.0 / 6,  1.0 / 7};
    double sum = 0;
    for (int k = 0; k < 8; ++k) sum += weights[k] * f(x + side * k * h);
    return side * sum / h;
}

/// The numbers of no error and of no data; see docs/theory.md.
struct Ends {
    int tokens;
    double value_zero, slope_zero, value_one, slope_one, curvature_one, entropy;
};
constexpr Ends ends[] = {
    {2, 1.441294339029, -0.0621209261, 1.239431893981, -0.3343390508, -0.255379, 1.362705298417},
    {3, 3.242912262815, -0.0539386777, 2.850748458160, -0.6431230286, -0.479228, 3.092493158096},
    {4, 5.249707946178, 0.0828504796, 4.755193814237, -0.8353284909, -0.68323, 5.068888289727},
    {5, 7.403268800413, 0.3043105203, 6.893792816468, -0.8837126299, -0.7960, 7.227965850986},
    {6, 9.670596377544, 0.5925820662, 9.229241094949, -0.7840808585, -0.776, 9.533164461546}};

TEST(HardmaxUniversal, HasTheExactValuesSlopesCurvatureAndIntegral) {
    using namespace hardmax_universal;
    for (const Ends& at : ends) {
        SCOPED_TRACE(fmt::format("T = {}", at.tokens));
        const auto p = [&](double r) { return power(at.tokens, r); };
        const double stored = at.tokens == 2 ? 1e-11 : 1e-9;  // digits of the stored coefficients
        EXPECT_NEAR(p(0), at.value_zero, stored);
        EXPECT_NEAR(p(1), at.value_one, stored);
        EXPECT_NEAR(one_sided_slope(p, 0, 1), at.slope_zero, 1e-8);
        EXPECT_NEAR(one_sided_slope(p, 1, -1), at.slope_one, 1e-8);
        EXPECT_NEAR(-information(at.tokens, 1), at.entropy, stored);
        const auto slope = [&](double r) { return one_sided_slope(p, r, -1); };
        // p'' is known with errors of its own, and the fit may use them.
        EXPECT_NEAR(one_sided_slope(slope, 1, -1, 1e-2), at.curvature_one,
                    at.tokens == 2   ? 1e-6
                    : at.tokens == 3 ? 1e-5
                    : at.tokens == 4 ? 1e-4
                                     : 2e-3);
    }
}

/// Without data the sums over labels are exact.
TEST(HardmaxUniversal, ValueAndIntegralAreThoseOfTheRecursionWithoutData) {
    for (const int tokens : {2, 3, 4, 5}) {
        HardmaxRecursion recursion(tokens);
        const auto pairs = static_cast<std::size_t>(recursion.pairs());
        const std::vector<double> omega(pairs, 0);
        std::vector<double> g(pairs);
        std::vector<int> labels(static_cast<std::size_t>(tokens), 0);
        double power = 0, entropy = 0;
        while (true) {
            if (recursion.possible(labels)) {
                const double log_z = recursion.evaluate(labels, omega, 1, g), z = std::exp(log_z);
                power += z * std::inner_product(g.begin(), g.end(), g.begin(), 0.0);
                entropy -= z * log_z;
            }
            std::size_t digit = 0;
            while (digit < labels.size() && ++labels[digit] == tokens) labels[digit++] = 0;
            if (digit == labels.size()) break;
        }
        EXPECT_NEAR(hardmax_universal::power(tokens, 1), power, 2e-9) << tokens;
        EXPECT_NEAR(-hardmax_universal::information(tokens, 1), entropy, 2e-9) << tokens;
    }
}

OrderParameters at_ratio(double r) {
    return {linalg::scalar_overlap(1.5 * (1 - r * r)), linalg::scalar_overlap(1.5 * r * r)};
}

TEST(HardmaxUniversal, TwoTokensAreTheirQuadrature) {
    const Hardmax stored(2);
    const HardmaxSampled quadrature(2);
    test::WorstError power(2e-12), information(2e-12);
    for (double r = 0.001; r <= 1; r *= 1.1) {
        const auto parameters = at_ratio(r);
        const std::string place = fmt::format("r = {}", r);
        power.add(test::relative_error(stored.score_power(parameters, {}).value(0, 0),
                                       quadrature.score_power(parameters, {}).value(0, 0)),
                  place);
        information.add(
            std::abs(*stored.information(parameters, {}) - *quadrature.information(parameters, {})), place);
    }
}

TEST(HardmaxUniversal, ManyTokensAreTheirSampledAverages) {
    for (const auto& [tokens, points, error] : {std::tuple{3, 256, 0.02}, std::tuple{4, 32, 0.06}}) {
        const Hardmax stored(tokens);
        const HardmaxSampled sampled(tokens);
        for (const double r : {0.4, 0.7}) {
            const auto parameters = at_ratio(r);
            const auto estimate = sampled.score_power(parameters, {.points = points});
            const double ratio = stored.score_power(parameters, {}).value(0, 0) / estimate.value(0, 0) - 1;
            EXPECT_LT(std::abs(ratio), 4 * estimate.relative_error) << tokens << " tokens, r = " << r;
            EXPECT_LT(estimate.relative_error, error);
        }
    }
}

TEST(HardmaxUniversal, GeneralizationErrorsAreTheirQuadrature) {
    for (int tokens = 2; tokens <= 6; ++tokens) {
        const Hardmax stored(tokens);
        const HardmaxSampled quadrature(tokens);
        test::WorstError optimal(1e-12), plug_in(1e-12);
        for (const double r : {1e-6, 1e-3, 0.03, 0.2, 0.5, 0.8, 0.99, 1.0}) {
            const auto a = stored.generalization(at_ratio(r), {}),
                       b = quadrature.generalization(at_ratio(r), {});
            optimal.add(test::relative_error(a.bayes_optimal, b.bayes_optimal),
                        fmt::format("T {}, r {}", tokens, r));
            plug_in.add(test::relative_error(a.plug_in, b.plug_in), fmt::format("T {}, r {}", tokens, r));
        }
    }
}

}  // namespace
}  // namespace bayesaim::channels
