// SPDX-License-Identifier: MIT
#include "bayesaim/theory/free_entropy.hpp"

#include <cmath>

#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <gtest/gtest.h>

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::theory {
namespace {

/// The derivative of the free entropy along any path (q, qhat(q)) vanishes at the fixed point.
TEST(FreeEntropy, IsStationaryAtTheFixedPoint) {
    const spectral::MarchenkoPasturLaw law(0.5);
    const SpectralCurve prior(law);
    const channels::Hardmax channel(2);
    const double alpha = 0.7;
    const FixedPoint point = solve_state_evolution(prior, channel, alpha, Start::uninformed);
    const auto at = [&](double error) {
        FixedPoint p = point;
        p.parameters = {linalg::scalar_overlap(prior.total()(0, 0) - error), linalg::scalar_overlap(error)};
        p.conjugate = linalg::scalar_overlap(4 * alpha * channel.score_power(p.parameters, {}).value(0, 0));
        return *free_entropy(prior, channel, alpha, p);
    };
    const double step = 1e-3 * point.error();
    const double slope = (at(point.error() + step) - at(point.error() - step)) / (2 * step);
    const double away = (at(1.2 * point.error()) - at(1.2 * point.error() - step)) / step;
    EXPECT_LT(std::abs(slope), 1e-5);
    EXPECT_GT(std::abs(away), 1e-3) << "the test has no power";
}

TEST(FreeEntropy, SmallWidthCurveIsTheIntegralOfItsOverlap) {
    const SmallWidthCurve curve;
    for (const double x : {0.5, 1.5, 6.0}) {
        const auto overlap = [&](double s) { return (1 - curve.at(1 / s).error) / 4; };
        const double integral =
            x <= 1 ? 0 : boost::math::quadrature::gauss_kronrod<double, 31>::integrate(overlap, 1.0, x);
        EXPECT_NEAR(curve.free_entropy(x), integral, 1e-12);
    }
}

/// A made-up channel of one token with a sudden gain of information: F(q) = (1 + gain/(1 + exp(-(q -
/// centre)/width)))/4, so that two fixed points coexist. I_out is its integral.
class SuddenChannel final : public channels::Channel {
  public:
    std::string name() const override { return "sudden"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {}; }
    int tokens() const override { return 1; }
    bool sampled() const override { return false; }
    void draw(const channels::ConstRowsRef&, std::uint64_t, std::uint64_t, channels::RowsRef) const override {
    }
    void score(const channels::ConstRowsRef&, const channels::ConstRowsRef&, const Overlap&,
               channels::RowsRef, Eigen::Ref<Eigen::VectorXd>) const override {}
    channels::ScorePower score_power(const OrderParameters& p, const channels::Integration&) const override {
        return {
            linalg::scalar_overlap(0.25 * (1 + gain / (1 + std::exp(-(p.overlap(0, 0) - centre) / width)))),
            0};
    }
    std::optional<double> information(const OrderParameters& p, const channels::Integration&) const override {
        const double q = p.overlap(0, 0);
        return 0.25 * (q + gain * width * std::log1p(std::exp((q - centre) / width)));
    }

  private:
    static constexpr double gain = 20, centre = 0.6, width = 0.02;
};

TEST(FirstOrderTransition, TheSearchStopsDuringTheBisectionToo) {
    const auto law = spectral::MarchenkoPasturLaw::semicircle();
    int calls = 0;
    TransitionSearch search{.steps = 60, .tolerance = 1e-9};
    search.progress = [&](double) { return ++calls <= 60; };  // the steps are at most 60
    EXPECT_FALSE(find_first_order_transition(SpectralCurve(law), SuddenChannel(), search));
    EXPECT_EQ(calls, 61);
}

/// Semicircle prior: q = qhat/(1 + qhat), so a fixed point solves q/(1-q) = 4 alpha F(q), and all three
/// thresholds follow from scalar equations that are solved here by a fine scan.
TEST(FirstOrderTransition, FindsSpinodalsAndTheInformationTheoreticThreshold) {
    const auto law = spectral::MarchenkoPasturLaw::semicircle();
    const SpectralCurve prior(law);
    const SuddenChannel channel;
    const auto transition = find_first_order_transition(prior, channel, {.steps = 60, .tolerance = 1e-9});
    ASSERT_TRUE(transition);
    EXPECT_LT(transition->appears, transition->information_theoretic);
    EXPECT_LT(transition->information_theoretic, transition->algorithmic);

    // Spinodals: alpha(q) = q/(1-q) / (4F) has its local maximum (algorithmic) and minimum (appears).
    const auto alpha_of = [&](double q) {
        return q / (1 - q) /
               (4 * channel.score_power({linalg::scalar_overlap(q), linalg::scalar_overlap(1 - q)}, {})
                        .value(0, 0));
    };
    double highest = 0, lowest = 1e9;
    for (double q = 0.3; q < 0.6; q += 1e-5) highest = std::max(highest, alpha_of(q));
    for (double q = 0.6; q < 0.9; q += 1e-5) lowest = std::min(lowest, alpha_of(q));
    EXPECT_NEAR(transition->algorithmic, highest, 1e-6 * highest);
    EXPECT_NEAR(transition->appears, lowest, 1e-6 * lowest);

    // At the information-theoretic threshold the potentials are equal:
    // -q qhat/4 + (qhat - log(1+qhat))/4 + alpha I_out.
    const double alpha = transition->information_theoretic;
    const BayesOptimal point = solve_bayes_optimal(prior, channel, alpha);
    ASSERT_TRUE(point.differ);
    const auto potential = [&](const FixedPoint& p) {
        const double q = p.parameters.overlap(0, 0), conjugate = q / (1 - q);
        return -q * conjugate / 4 + (conjugate - std::log1p(conjugate)) / 4 +
               alpha * *channel.information(p.parameters, {});
    };
    EXPECT_NEAR(potential(point.informed), potential(point.uninformed), 1e-7);
    EXPECT_GT(point.uninformed.error(), 1.5 * point.informed.error());
    // Above it the informed fixed point is optimal, although an algorithm does not find it.
    const BayesOptimal hard = solve_bayes_optimal(prior, channel, 0.5 * (alpha + transition->algorithmic));
    EXPECT_TRUE(hard.informed_wins);
}

TEST(FirstOrderTransition, NoneForHardmax) {
    const spectral::MarchenkoPasturLaw law(0.5);
    EXPECT_FALSE(find_first_order_transition(SpectralCurve(law), channels::Hardmax(2),
                                             {.lowest = 0.05, .highest = 5, .steps = 6}));
}

}  // namespace
}  // namespace bayesaim::theory
