// SPDX-License-Identifier: MIT
// State evolution of untied attention against numbers that were computed independently (Python), and published ones.
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "bayesaim/channels/rows/row_channel.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/theory/free_entropy.hpp"
#include "bayesaim/theory/methods.hpp"
#include "bayesaim/theory/thresholds.hpp"

namespace bayesaim::theory {
namespace {

using channels::Attention;
using channels::Geometry;
using channels::RowHardmax;
using channels::RowLinear;
using channels::RowSoftmax;

Geometry cross(int queries, int keys) { return {Attention::cross, queries, keys}; }

double error_of(double width, const channels::Channel& channel, double alpha) {
    const priors::Bilinear prior(width);
    const FixedPoint point = solve_state_evolution(SpectralCurve(prior.law()), channel, alpha);
    EXPECT_TRUE(point.status == Termination::converged || point.status == Termination::exact_recovery);
    return point.error();
}

TEST(UntiedStateEvolution, SoftmaxReferences) {
    const RowSoftmax channel(cross(2, 2));
    const struct {
        double width, alpha, error;
    } rows[] = {{0.5, 0.0375, 0.9234496141}, {0.5, 0.1, 0.7768638159},   {0.5, 0.15, 0.6405506319},
                {0.5, 0.2, 0.4958692815},    {0.5, 0.225, 0.4231605668}, {0.5, 0.25, 0.3514551576},
                {0.5, 0.3, 0.2138985739},    {0.5, 0.35, 0.0843815809},  {0.5, 0.376, 0},
                {0.1, 0.038, 0.8753234275},  {0.1, 0.076, 0.4986009707}, {1, 0.2, 0.5698707582},
                {1, 0.4, 0.1420445171},      {2, 0.2, 0.5916340958},     {2, 0.4, 0.1826696411}};
    for (const auto& row : rows)
        EXPECT_NEAR(error_of(row.width, channel, row.alpha), row.error, 1e-9)
            << row.width << " " << row.alpha;
}

/// Only alpha times the number of observed combinations counts.
TEST(UntiedStateEvolution, GeometriesWithEqualCountsAgree) {
    const double expected = error_of(0.5, RowSoftmax(cross(2, 2)), 0.3);
    EXPECT_NEAR(error_of(0.5, RowSoftmax(cross(3, 5)), 0.6 / 12), expected, 1e-12);
    EXPECT_NEAR(error_of(0.5, RowSoftmax({Attention::masked, 4, 4}), 0.6 / 8), expected, 1e-12);
    EXPECT_NEAR(error_of(0.5, RowLinear(cross(3, 2)), 0.1), expected, 1e-12);
    EXPECT_NEAR(error_of(0.5, RowLinear({Attention::masked, 3, 3}), 0.1), expected, 1e-12);
}

TEST(UntiedStateEvolution, HardmaxReferences) {
    const RowHardmax two(cross(2, 2)), three(cross(3, 3));
    const struct {
        double width, alpha, error;
    } rows[] = {{0.5, 0.1, 0.87291373}, {0.5, 0.5, 0.42636740}, {0.5, 1, 0.19141546},  {0.5, 2, 0.06253169},
                {0.5, 5, 0.01071191},   {0.5, 10, 0.00270044},  {0.5, 20, 0.00067649}, {1, 1, 0.24495189},
                {1, 10, 0.00469995},    {0.1, 0.1, 0.73507125}, {0.1, 1, 0.01726834}};
    for (const auto& row : rows)
        EXPECT_NEAR(error_of(row.width, two, row.alpha), row.error, 1e-8) << row.width << " " << row.alpha;
    EXPECT_NEAR(error_of(0.5, three, 0.2), 0.43880281, 1e-8);
    EXPECT_NEAR(error_of(0.5, three, 0.5), 0.15184553, 1e-8);
    // E = (nu/(alpha c))^2 at large alpha, c = 2 J/sqrt(2 pi)
    EXPECT_NEAR(error_of(0.5, two, 200) * std::pow(200 * 1.441294339 / 0.75, 2), 1, 1e-3);
}

TEST(UntiedStateEvolution, NoisyLinearReferences) {
    const RowLinear channel(cross(2, 2), 0.1);
    EXPECT_NEAR(error_of(0.5, channel, 0.2), 0.25118, 1e-5);
    EXPECT_NEAR(error_of(0.5, channel, 0.4), 0.07863, 1e-5);
}

/// Bilinear sequence regression (arXiv 2410.18858, tables of the repository SPOC-group/bilinear-sequence-regression):
/// one linear index a sample. Their fixed points have a tolerance of some 1e-7.
TEST(UntiedStateEvolution, PublishedBilinearSequenceRegression) {
    const RowLinear exact(cross(1, 1)), noisy(cross(1, 1), 0.1);
    EXPECT_NEAR(error_of(0.2, exact, 0.3), 0.347404395, 1e-6);
    EXPECT_NEAR(error_of(0.5, exact, 0.3), 0.640550656, 1e-6);
    EXPECT_NEAR(error_of(1, exact, 0.3), 0.683638313, 1e-6);
    EXPECT_NEAR(error_of(2, exact, 0.6), 0.383493395, 1e-6);
    EXPECT_NEAR(error_of(0.1, noisy, 0.3), 0.152116906, 1e-6);
    EXPECT_NEAR(error_of(0.5, noisy, 0.6), 0.385207144, 1e-6);
    EXPECT_NEAR(error_of(1, noisy, 0.6), 0.463099039, 1e-6);
}

TEST(UntiedThresholds, AreTheKnownOnes) {
    constexpr double pi = std::numbers::pi;
    EXPECT_NEAR(weak_recovery_scaled(RowHardmax(cross(2, 2))), pi / 4, 1e-11);
    EXPECT_NEAR(weak_recovery_scaled(RowHardmax(cross(3, 3))), 8 * pi / 81, 1e-11);
    EXPECT_NEAR(weak_recovery_scaled(RowHardmax(cross(4, 4))), 0.176951, 1e-6);
    EXPECT_NEAR(weak_recovery_scaled(RowSoftmax(cross(3, 3))), 1.0 / 6, 1e-15);
    EXPECT_NEAR(weak_recovery_scaled(RowLinear(cross(2, 2))), 0.25, 1e-15);
    for (const double width : {0.1, 0.5, 2.0}) {
        const priors::Bilinear prior(width);
        const double nu = width < 1 ? 2 * width - width * width : 1;
        EXPECT_NEAR(*strong_recovery(SpectralCurve(prior.law()), RowSoftmax(cross(3, 3))), nu / 6, 1e-14);
        EXPECT_NEAR(*strong_recovery(SpectralCurve(prior.law()), RowSoftmax({Attention::masked, 4, 4})),
                    nu / 8, 1e-14);
    }
}

/// The free entropy is stationary at the fixed point: its derivative along q (with qhat from the prior's curve) vanishes.
TEST(UntiedFreeEntropy, IsStationaryAtTheFixedPoint) {
    const priors::Bilinear prior(0.5);
    const SpectralCurve curve(prior.law());
    const RowHardmax hardmax(cross(2, 2));
    const RowLinear linear(cross(2, 2), 0.1);
    for (const channels::Channel* channel :
         {static_cast<const channels::Channel*>(&hardmax), static_cast<const channels::Channel*>(&linear)}) {
        const double alpha = 0.5;
        const FixedPoint fixed = solve_state_evolution(curve, *channel, alpha);
        const auto at = [&](double conjugate) {
            FixedPoint point = fixed;
            point.conjugate(0, 0) = conjugate;
            const double error = curve.at(1 / conjugate).error;
            point.parameters = {linalg::scalar_overlap(1 - error), linalg::scalar_overlap(error)};
            return *free_entropy(curve, *channel, alpha, point);
        };
        const double conjugate = fixed.conjugate(0, 0), step = 0.01 * conjugate;
        const double slope = (8 * (at(conjugate + step) - at(conjugate - step)) -
                              (at(conjugate + 2 * step) - at(conjugate - 2 * step))) /
                             (12 * step);
        EXPECT_NEAR(slope, 0, 1e-8);
        EXPECT_GT(std::abs(at(1.3 * conjugate) - at(conjugate)), 1e-5);  // and not flat
    }
}

// ---- self and causal attention: two variances --------------------------------------------------------------

FixedPoint two_variances(const channels::Channel& channel, double alpha, double width = 0.5) {
    const priors::Bilinear prior(width);
    const FixedPoint point = solve_state_evolution(PartsCurve(prior.law()), channel, alpha);
    EXPECT_EQ(point.status, Termination::converged);
    return point;
}

/// Sum and difference of the errors of the parts, C11 and C12, computed independently (Python).
struct PartsReference {
    double alpha, sum, difference;
};
void expect_parts(const channels::Channel& channel, const PartsReference& expected, double accuracy) {
    const Overlap error = two_variances(channel, expected.alpha).parameters.error;
    EXPECT_NEAR(error.trace(), expected.sum, accuracy) << expected.alpha;
    EXPECT_NEAR(error(0, 0) - error(1, 1), expected.difference, accuracy) << expected.alpha;
    EXPECT_EQ(error(0, 1), 0);
}

TEST(SelfAttention, References) {
    for (const PartsReference& row : {PartsReference{0.5, 0.451519, -0.114662},
                                      {1, 0.218906, -0.076589},
                                      {2, 0.076728, -0.030591},
                                      {5, 0.013456, -0.005461},
                                      {10, 0.003389, -0.001368}})
        expect_parts(RowHardmax({Attention::self, 2, 2}), row, 1e-6);
    expect_parts(RowSoftmax({Attention::self, 2, 2}), {0.2, 0.495869, -0.128769}, 1e-6);
    expect_parts(RowSoftmax({Attention::self, 2, 2}), {0.3, 0.213899, -0.0963}, 1e-5);
    expect_parts(RowLinear({Attention::self, 2, 2}, 0.1), {0.2, 0.30721, -0.14925}, 1e-5);
    expect_parts(RowLinear({Attention::self, 2, 2}, 0.1), {0.4, 0.11720, -0.06396}, 1e-5);
}

TEST(CausalAttention, References) {
    expect_parts(RowSoftmax({Attention::causal, 3, 3}), {0.15, 0.42316057, -0.08177253}, 1e-8);
    expect_parts(RowSoftmax({Attention::causal, 4, 4}), {0.08, 0.37996477, -0.06432638}, 1e-8);
    expect_parts(RowSoftmax({Attention::causal, 4, 4}), {0.1, 0.21389857, -0.04596458}, 1e-8);
    expect_parts(RowSoftmax({Attention::causal, 8, 8}), {0.015, 0.46672024, -0.03942339}, 1e-8);
    expect_parts(RowLinear({Attention::causal, 2, 2}, 0.1), {0.2, 0.42891526, -0.18456789}, 1e-8);
    expect_parts(RowLinear({Attention::causal, 3, 3}, 0.1), {0.1, 0.40493561, -0.12015740}, 1e-8);
}

/// Without noise the sum of both errors is that of one variance; the difference is not 0.
TEST(SelfAttention, SumOfErrorsWithoutNoiseIsThatOfOneVariance) {
    EXPECT_NEAR(two_variances(RowSoftmax({Attention::self, 3, 3}), 0.1).error(),
                error_of(0.5, RowSoftmax(cross(3, 3)), 0.1), 1e-9);
    EXPECT_NEAR(two_variances(RowSoftmax({Attention::causal, 4, 4}), 0.1).error(),
                error_of(0.5, RowLinear(cross(2, 3)), 0.1), 1e-9);
}

/// The fixed point is where the plain iteration ends.
TEST(SelfAttention, NewtonFindsThePlainIteration) {
    const auto expect_same = [](double width, const channels::Channel& channel, double alpha) {
        const priors::Bilinear prior(width);
        const PartsCurve curve(prior.law());
        const Overlap expected = state_evolution_trajectory(curve, channel, alpha, 400).back().error;
        const auto point = solve_parts(curve, channel, alpha, Start::uninformed, {});
        ASSERT_TRUE(point) << channel.name() << " " << width << " " << alpha;
        const Overlap found = point->parameters.error;
        for (int part = 0; part < 2; ++part)
            EXPECT_NEAR(found(part, part), expected(part, part), 1e-10 * expected(part, part))
                << channel.name() << " " << width << " " << alpha;
    };
    for (const double width : {0.02, 0.5, 2.0}) {
        for (const Attention attention : {Attention::self, Attention::causal}) {
            const Geometry three{attention, 3, 3};
            const double recovery =
                *strong_recovery(PartsCurve(priors::Bilinear(width).law()), RowSoftmax(three));
            for (const double part : {0.001, 0.2, 0.5, 0.9})
                expect_same(width, RowSoftmax(three), part * recovery);
            for (const double noise : {0.01, 0.5}) {
                for (const double alpha : {0.001, 0.05, 0.3, 10.0})
                    expect_same(width, RowLinear(three, noise), alpha);
            }
        }
    }
    expect_same(0.5, RowLinear({Attention::self, 1, 1}, 0.1), 0.5);  // tells nothing of S_anti
}

/// The iteration would take thousands of steps there.
TEST(SelfAttention, ConvergesNextToRecovery) {
    for (const double alpha : {0.3746, 0.37496}) {
        const double expected = error_of(0.5, RowSoftmax(cross(2, 2)), alpha);
        EXPECT_NEAR(two_variances(RowSoftmax({Attention::self, 2, 2}), alpha).error(), expected,
                    1e-7 * expected);
    }
}

TEST(SelfAttention, Thresholds) {
    const priors::Bilinear half(0.5), wide(1), narrow(0.25);  // nu = 0.75, 1, 0.4375
    const auto strong = [](const priors::Bilinear& prior, const channels::Channel& channel) {
        return *strong_recovery(PartsCurve(prior.law()), channel);
    };
    const RowLinear linear({Attention::self, 2, 2});
    EXPECT_NEAR(strong(narrow, linear), 0.4375 / 4, 1e-12);  // counting of all
    EXPECT_NEAR(strong(half, linear), 0.25, 1e-12);          // counting of the antisymmetric part
    EXPECT_NEAR(strong(wide, linear), 0.5, 1e-12);
    EXPECT_NEAR(strong(half, RowSoftmax({Attention::self, 2, 2})), 0.375, 1e-12);
    EXPECT_NEAR(strong(wide, RowSoftmax({Attention::self, 3, 3})), 1.0 / 6, 1e-12);
    EXPECT_NEAR(strong(half, RowSoftmax({Attention::causal, 4, 4})), 0.125, 1e-12);
    // Without data both parts have the same error, and rows are independent.
    EXPECT_NEAR(weak_recovery_scaled(RowHardmax({Attention::self, 2, 2}), {}), std::numbers::pi / 4, 1e-10);
    EXPECT_NEAR(weak_recovery_scaled(RowSoftmax({Attention::self, 3, 3}), {}), 1.0 / 6, 1e-12);
    EXPECT_NEAR(weak_recovery_scaled(RowSoftmax({Attention::causal, 3, 3}), {}), 1.0 / 3, 1e-12);
}

}  // namespace
}  // namespace bayesaim::theory
