// SPDX-License-Identifier: MIT
#include "bayesaim/theory/erm.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "bayesaim/channels/table.hpp"
#include "bayesaim/losses/table.hpp"
#include "bayesaim/priors/user_spectrum.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/theory/state_evolution.hpp"

#include "support/expect_invalid.hpp"

namespace bayesaim::theory {
namespace {

// Reference numbers: a prototype in another language that integrates the law with its own quadrature, each number
// converged to the digits shown and compared with direct minimisation. Where that prototype was not converged (width 0.1 with
// lambda = 0.2, generalisation at beta = 5, beta = 3), the numbers are those of a midpoint rule of 200,000 points over the
// cubic of the law, and of a double sum of 4001 x 4001 points.
constexpr double shown = 6e-9;  // half a unit of the last digit shown, and the roundoff of both

std::unique_ptr<losses::Loss> loss_of(const std::string& loss, int tokens = 2, double beta = 1) {
    channels::ChannelOptions options;
    options.tokens = tokens;
    options.beta = beta;
    return losses::make_loss(loss, *channels::make_channel("softmax", options));
}

std::unique_ptr<losses::Loss> square(double label_noise, int tokens = 2) {
    channels::ChannelOptions options;
    options.tokens = tokens;
    options.label_noise = label_noise;
    return losses::make_loss("square", *channels::make_channel("linear", options));
}

/// A loss whose closed form theory does not see: it has to iterate.
class Hidden final : public losses::Loss {
  public:
    explicit Hidden(std::unique_ptr<losses::Loss> loss) : loss_(std::move(loss)) {}
    std::string name() const override { return "hidden"; }
    channels::Geometry geometry() const override { return loss_->geometry(); }
    void score(const losses::ConstRowsRef& y, const losses::ConstRowsRef& omega, const losses::Overlap& v,
               losses::RowsRef g, Eigen::Ref<Eigen::VectorXd> log_z) const override {
        loss_->score(y, omega, v, g, log_z);
    }
    losses::Overlap score_with_slope(const losses::ConstRowsRef& y, const losses::ConstRowsRef& omega,
                                     const losses::Overlap& v, losses::RowsRef g) const override {
        return loss_->score_with_slope(y, omega, v, g);
    }
    losses::ProximalMeans means(const losses::Alignment& at, double variance,
                                const losses::Integration& integration) const override {
        return loss_->means(at, variance, integration);
    }
    double generalization(const losses::Alignment& at,
                          const losses::Integration& integration) const override {
        return loss_->generalization(at, integration);
    }

  private:
    std::unique_ptr<losses::Loss> loss_;
};

TEST(ErmRecovery, TraceRatiosHaveTheReferenceValues) {
    for (const auto& [rho, ratio] : {std::pair(0.05, 0.18401473512),
                                     {0.1, 0.31514363023},
                                     {0.25, 0.58788367346},
                                     {0.5, 0.84434996437},
                                     {0.75, 0.96552153364},
                                     {1.0, 1.0},
                                     {2.0, 1.0}}) {
        EXPECT_NEAR(trace_recovery_ratio(rho), ratio, 6e-12) << rho;
        const double rest = std::max(0.0, 1 - rho);
        EXPECT_GE(trace_recovery_ratio(rho), 1 - rest * rest) << "the Bayes-optimal one is below";
    }
    EXPECT_NEAR(trace_recovery_ratio(0.01) / 0.01, 4.63, 5e-3);
    EXPECT_NEAR(*erm_thresholds(priors::Wishart(0.5).law(), *loss_of("logit", 3), Penalty::trace).recovery,
                0.08443499644, 6e-12);
    EXPECT_NEAR(*erm_thresholds(priors::Wishart(0.5).law(), *square(0), Penalty::trace).recovery,
                0.14072499406, 6e-12);
    // Only the fraction of nonzero eigenvalues counts.
    const double values[] = {0, 1, 3}, weights[] = {0.5, 0.25, 0.25};
    EXPECT_NEAR(
        *erm_thresholds(priors::UserSpectrum(values, weights).law(), *square(0), Penalty::trace).recovery,
        0.14072499406, 1e-10);
    EXPECT_FALSE(erm_thresholds(priors::Wigner().law(), *square(0), Penalty::trace).recovery)
        << "S* has negative eigenvalues, which no S >= 0 has";
}

TEST(ErmInterpolation, ThresholdsHaveTheReferenceValues) {
    const auto ratio = [](double width, double nu) {
        return 6 *
               *erm_thresholds(priors::Wishart(width).law(), *square(1.5 * nu), Penalty::trace).interpolation;
    };
    EXPECT_NEAR(ratio(0.5, 1.0 / 3), 0.60041468305, 6e-11);
    EXPECT_NEAR(ratio(0.5, 0.1), 0.65793797354, 6e-11);
    EXPECT_NEAR(ratio(0.5, 0.01), 0.75338554505, 6e-11);
    EXPECT_NEAR(ratio(1, 0.1), 0.75192425057, 6e-11);
    EXPECT_NEAR(ratio(0.1, 0.1), 0.53855329993, 6e-11);
}

struct Line {
    double lambda, error, training, zeros;
};

TEST(Erm, LinearAttentionWithNoiseHasTheReferenceValues) {
    const auto expect = [](double width, double alpha, double noise, const std::vector<Line>& lines) {
        const priors::Wishart prior(width);
        for (const auto& [lambda, error, training, zeros] : lines) {
            const ErmPoint point = solve_erm(prior.law(), *square(noise), alpha, lambda);
            EXPECT_EQ(point.status, Termination::converged);
            EXPECT_NEAR(point.error, error, shown) << lambda;
            EXPECT_NEAR(point.training_loss, training, shown) << lambda;
            EXPECT_NEAR(point.zero_fraction, zeros, shown) << lambda;
            EXPECT_NEAR(point.alignment.error(), point.error, 1e-11) << "Q - 2 m + q";
            EXPECT_NEAR(point.generalization_error, 6 * point.error, 1e-12) << "T (T + 1) E";
        }
    };
    expect(0.5, 0.1, 0.5,
           {{0.05, 0.72691560, 0.06750321, 0.50037303},
            {0.2, 0.57298522, 0.31210785, 0.59174845},
            {0.5, 0.66248929, 0.89298481, 0.69036377}});
    expect(0.1, 0.04, 0.1,
           {{0.05, 0.28300635, 0.02859141, 0.76205904}, {0.2, 0.34475387, 0.26877934, 0.83666238}});
    expect(1, 0.1, 0.1,
           {{0.05, 0.65063596, 0.02381496, 0.48342853}, {0.2, 0.76733917, 0.20175805, 0.56398060}});
    const ErmPoint point = solve_erm(priors::Wishart(0.5).law(), *square(0.5), 0.1, 0.2);
    EXPECT_NEAR(point.noise_variance, 1.51053093, shown);
    EXPECT_NEAR(point.threshold, 0.98384676, shown);
    EXPECT_NEAR(point.divergence, 0.39671631, shown);
}

TEST(Erm, LogitsHaveTheReferenceValues) {
    const priors::Wishart prior(0.5);
    for (const auto& [lambda, error, training, zeros] : {Line{0, 0.35701371, 0, 0.53686211},
                                                         {0.001, 0.35768105, 7.91e-6, 0.53809528},
                                                         {0.05, 0.40074875, 0.01308765, 0.58344635},
                                                         {0.2, 0.53090677, 0.12377219, 0.66048103}}) {
        const ErmPoint point = solve_erm(prior.law(), *loss_of("logit"), 0.12, lambda);
        EXPECT_NEAR(point.error, error, shown);
        EXPECT_NEAR(point.training_loss, training, shown);
        EXPECT_NEAR(point.zero_fraction, zeros, shown);
    }
    EXPECT_NEAR(solve_erm(prior.law(), *loss_of("logit"), 0.12, 0.2).generalization_error, 0.153836030, 1e-9);
    EXPECT_NEAR(solve_erm(prior.law(), *loss_of("logit", 2, 5), 0.12, 0.05).generalization_error, 0.42761121,
                shown);
    for (const auto& [lambda, error, training, zeros] :
         {Line{0.05, 0.42406550, 0.01677833, 0.59922645}, {0.2, 0.60068436, 0.14475029, 0.68924646}}) {
        const ErmPoint point = solve_erm(prior.law(), *loss_of("row-logit"), 0.12, lambda);
        EXPECT_NEAR(point.error, error, shown);
        EXPECT_NEAR(point.training_loss, training, shown);
        EXPECT_NEAR(point.zero_fraction, zeros, shown);
    }
}

TEST(Erm, CrossEntropyHasTheReferenceValues) {
    const priors::Wishart prior(0.5);
    constexpr double quadrature = 1e-5;  // of the reference
    for (const auto& [lambda, error, training, zeros] : {Line{0.2, 1.125145, 0.2104295, 0.822366},
                                                         {0.05, 0.6936411, 0.0389217, 0.6823755},
                                                         {0.01, 0.461996, 0.0039873, 0.597195},
                                                         {0.001, 0.37104, 0.000102, 0.54905}}) {
        const ErmPoint point = solve_erm(prior.law(), *loss_of("cross-entropy"), 0.12, lambda);
        EXPECT_EQ(point.status, Termination::converged);
        EXPECT_NEAR(point.error, error, quadrature) << lambda;
        EXPECT_NEAR(point.training_loss, training, quadrature) << lambda;
        EXPECT_NEAR(point.zero_fraction, zeros, quadrature) << lambda;
        EXPECT_LT(point.relative_error, 1e-5);
    }
    const ErmPoint limit = solve_erm(prior.law(), *loss_of("cross-entropy"), 0.12, 0);
    EXPECT_NEAR(limit.error, 0.35701371, shown) << "the interpolator is that of the logits";
    const ErmPoint three = solve_erm(prior.law(), *loss_of("cross-entropy", 3), 0.06, 0.05);
    EXPECT_NEAR(three.error, 0.5927, 2e-3) << "Sobol points: 3 digits";
    EXPECT_GT(three.relative_error, 0);
}

TEST(Erm, SquareLossOfOutputsHasTheReferenceValues) {
    for (const auto& [lambda, error, training, zeros] :
         {Line{0.04, 0.905, 0.0316, 0.729}, {0.01, 0.640, 0.00560, 0.643}, {0.002, 0.487, 0.00065, 0.590}}) {
        const ErmPoint point = solve_erm(priors::Wishart(0.5).law(), *loss_of("square"), 0.12, lambda);
        EXPECT_NEAR(point.error, error, 1e-3);  // 2 to 3 digits are given
        EXPECT_NEAR(point.training_loss, training, 1e-4);
        EXPECT_NEAR(point.zero_fraction, zeros, 1e-3);
    }
}

struct Optimum {
    double alpha, ridgeless, lambda, error;
};

TEST(OptimalErm, HasTheReferenceValues) {
    const auto expect = [](double width, const losses::Loss& loss, const std::vector<Optimum>& lines) {
        const priors::Wishart prior(width);
        for (const auto& [alpha, ridgeless, lambda, error] : lines) {
            EXPECT_NEAR(solve_erm(prior.law(), loss, alpha, 0).error, ridgeless, shown) << alpha;
            const ErmPoint best = solve_optimal_erm(prior.law(), loss, alpha);
            EXPECT_NEAR(best.regularization, lambda, 6e-6) << alpha;
            EXPECT_NEAR(best.error, error, shown) << alpha;
        }
    };
    expect(0.5, *loss_of("logit"),
           {{0.01875, 1.41866340, 0.17030, 1.39131630},
            {0.05625, 0.98995062, 0.01049, 0.98965455},
            {0.09375, 0.58655574, 0, 0.58655574},
            {0.15, 0.16099882, 0, 0.16099882},
            {0.18, 0.04135854, 0, 0.04135854},
            {0.2, 0.00513549, 0, 0.00513549}});
    // Two minima along lambda: one at 0+, the other inside.
    expect(0.1, *loss_of("logit"),
           {{0.00475, 1.14287718, 0.19414, 1.08982542},
            {0.02375, 0.79886647, 0.04292, 0.79385203},
            {0.04, 0.44432552, 0.00192, 0.44429919},
            {0.06, 0.11502326, 0, 0.11502326}});
    expect(1, *loss_of("logit"),
           {{0.05, 1.55035010, 0.03876, 1.54817003}, {0.125, 0.74789708, 0, 0.74789708}});
    expect(0.5, *square(0.5),
           {{0.05, 1.09679588, 0.18504, 0.99110187},
            {0.1, 3.50413004, 0.19979, 0.57298512},
            {0.2, 0.43244011, 0.26280, 0.26263618},
            {0.4, 0.14840137, 0.33862, 0.11879048},
            {1, 0.05036017, 0.46374, 0.04486966}});
    expect(0.5, *square(0.1), {{0.1, 0.40436512, 0.03913, 0.32001189}, {1, 0.01072132, 0.16061, 0.00998118}});
}

TEST(OptimalErm, IsAMinimum) {
    const priors::Wishart prior(0.5);
    const auto expect = [&](const losses::Loss& loss, double alpha, const ErmOptions& options) {
        const ErmPoint best = solve_optimal_erm(prior.law(), loss, alpha, options);
        ASSERT_GT(best.regularization, 0);
        for (const double factor : {0.8, 1.25})
            EXPECT_GT(solve_erm(prior.law(), loss, alpha, factor * best.regularization, options).error,
                      best.error);
    };
    expect(*square(0.5), 0.2, {.penalty = Penalty::frobenius});
    expect(*square(0.5, 3), 0.1, {});
}

/// d(minimum)/dlambda is the penalty at the minimum.
TEST(Erm, ObjectiveGrowsWithLambdaAsThePenaltySays) {
    const priors::Wishart prior(0.5);
    const auto expect = [&](const losses::Loss& loss, double alpha, double lambda, Penalty penalty,
                            double accuracy) {
        const ErmOptions options{.penalty = penalty, .tolerance = 1e-12};
        const double step = 1e-3 * lambda;
        const auto at = [&](double x) { return solve_erm(prior.law(), loss, alpha, x, options); };
        const double slope = (at(lambda + step).objective - at(lambda - step).objective) / (2 * step);
        const ErmPoint point = at(lambda);
        EXPECT_NEAR(slope, penalty == Penalty::trace ? point.trace : 0.5 * point.alignment.self_overlap,
                    accuracy)
            << loss.name();
    };
    // Differences have an error of (step/lambda)^2.
    for (const Penalty penalty : {Penalty::trace, Penalty::frobenius}) {
        expect(*square(0.5), 0.1, 0.2, penalty, 1e-6);
        expect(*loss_of("logit"), 0.12, 0.05, penalty, 1e-6);
        expect(*loss_of("row-logit"), 0.12, 0.05, penalty, 1e-6);
        expect(*loss_of("cross-entropy"), 0.12, 0.05, penalty, 1e-6);
        expect(*loss_of("square"), 0.12, 0.04, penalty, 1e-5);
    }
}

TEST(Erm, IterationFindsTheClosedForms) {
    for (const double width : {0.1, 0.5, 1.5}) {
        const priors::Wishart prior(width);
        for (const Penalty penalty : {Penalty::trace, Penalty::frobenius}) {
            for (const double lambda : {0.02, 0.3}) {
                const ErmOptions options{.penalty = penalty};
                const ErmPoint closed = solve_erm(prior.law(), *square(0.3, 3), 0.07, lambda, options),
                               iterated =
                                   solve_erm(prior.law(), Hidden(square(0.3, 3)), 0.07, lambda, options);
                EXPECT_EQ(iterated.status, Termination::converged);
                EXPECT_NEAR(iterated.error, closed.error, 1e-8);
                EXPECT_NEAR(iterated.training_loss, closed.training_loss, 1e-8);
                EXPECT_NEAR(iterated.objective, closed.objective, 1e-8);
                EXPECT_NEAR(iterated.response, closed.response, 1e-7 * closed.response);
            }
        }
    }
}

/// Ridge regression on d^2/2 numbers from c d^2/2 equations.
TEST(Erm, EntriesOfSAreRidgeRegression) {
    const priors::Wishart prior(0.5);
    constexpr double q = 1.5, nu = 1.0 / 3;
    const ErmOptions options{.penalty = Penalty::frobenius};
    for (const double alpha : {0.05, 0.1}) {
        const double c = 6 * alpha;
        EXPECT_NEAR(solve_erm(prior.law(), *square(0.5), alpha, 0, options).error,
                    q * (1 - c) + c * nu / (1 - c), 1e-12);
        EXPECT_NEAR(solve_erm(prior.law(), *square(0.5), alpha, 1e-9, options).error,
                    q * (1 - c) + c * nu / (1 - c), 1e-5);
        EXPECT_EQ(solve_erm(prior.law(), *square(0.5), alpha, 0, options).training_loss, 0);
    }
    for (const double alpha : {0.2, 0.5}) {
        EXPECT_NEAR(solve_erm(prior.law(), *square(0.5), alpha, 0, options).error, nu / (6 * alpha - 1),
                    1e-12);
        EXPECT_NEAR(solve_erm(prior.law(), *square(0.5), alpha, 1e-9, options).error, nu / (6 * alpha - 1),
                    1e-6);
    }
    // The best lambda is nu/Q times what a prior N(0, Q) of the entries would have: E solves E = Q/(1 + Q c/(E + nu)).
    const ErmPoint best = solve_optimal_erm(prior.law(), *square(0.5), 0.2, options);
    EXPECT_NEAR(best.error, q / (1 + q * 1.2 / (best.error + nu)), 1e-9);
    EXPECT_EQ(solve_erm(prior.law(), *square(0), 0.2, 0, options).status, Termination::exact_recovery);
}

TEST(Erm, RankDoesNotGoToThatOfTheTeacherAtRecovery) {
    const ErmPoint half = solve_erm(priors::Wishart(0.5).law(), *loss_of("logit"), 0.225, 0);
    EXPECT_EQ(half.status, Termination::exact_recovery);
    EXPECT_EQ(half.error, 0);
    EXPECT_NEAR(half.zero_fraction, 0.35845421, shown);
    EXPECT_NEAR(solve_erm(priors::Wishart(0.5).law(), *loss_of("logit"), 0.225, 1e-4).zero_fraction, 0.35974,
                1e-5);
    EXPECT_NEAR(solve_erm(priors::Wishart(0.1).law(), *loss_of("logit"), 0.09, 0).zero_fraction, 0.80225038,
                shown);
    EXPECT_NEAR(solve_erm(priors::Wishart(0.1).law(), *loss_of("logit"), 0.09, 0.001).error, 0.000013, 1e-6);
}

TEST(Erm, LimitsOfLambda) {
    const priors::Wishart prior(0.5);
    for (const char* name : {"logit", "cross-entropy", "row-logit"}) {
        const ErmPoint none = solve_erm(prior.law(), *loss_of(name), 0.1, 1e3);
        EXPECT_EQ(none.status, Termination::converged) << name;
        EXPECT_NEAR(none.error, 1.5, 1e-9) << "S = 0";
        EXPECT_NEAR(none.zero_fraction, 1, 1e-12);
    }
    for (const double alpha : {0.05, 0.12}) {
        const double limit = solve_erm(prior.law(), *loss_of("logit"), alpha, 0).error;
        EXPECT_NEAR(solve_erm(prior.law(), *loss_of("logit"), alpha, 1e-6).error, limit, 1e-5 * limit);
    }
    const ErmPoint nothing = solve_erm(prior.law(), *loss_of("logit"), 0, 0.1);
    EXPECT_EQ(nothing.error, 1.5);
    EXPECT_EQ(nothing.zero_fraction, 1);
}

/// Any teacher: E is that of soft thresholding S* + sqrt(D) Xi, by an integral over its law that is done here.
TEST(Erm, OtherTeachersSolveTheEquations) {
    const double values[] = {-0.5, 0, 1, 2.5}, weights[] = {0.1, 0.4, 0.3, 0.2};
    const priors::UserSpectrum atoms(values, weights);
    const priors::Wigner wigner;
    for (const priors::Prior* prior :
         {static_cast<const priors::Prior*>(&atoms), static_cast<const priors::Prior*>(&wigner)}) {
        const double q = prior->law().second_moment();
        for (const double lambda : {0.0, 0.1}) {
            const ErmPoint point = solve_erm(prior->law(), *square(0.2), 0.1, lambda);
            ASSERT_EQ(point.status, Termination::converged);
            const spectral::FreeConvolution spectrum(prior->law(), point.noise_variance);
            double error = 0, divergence = 0, mass = 0;
            for (const auto& [low, high] : spectrum.edges()) {
                constexpr int steps = 20000;
                for (int i = 0; i < steps; ++i) {
                    const double x = low + (high - low) * (i + 0.5) / steps;
                    const auto at = spectrum.at(x);
                    const double weight = at.density * (high - low) / steps,
                                 kept = std::max(x - point.threshold, 0.0);
                    // E (f - s)^2 = f^2 - 2 f E[s|x], the rest of it is Q
                    error += weight * (kept * kept - 2 * kept * at.denoised);
                    divergence += weight * 2 * kept * at.hilbert;
                    mass += weight;
                }
            }
            EXPECT_NEAR(mass, 1, 1e-4);
            EXPECT_NEAR(point.error, q + error, 1e-3);
            const double c = 0.6, nu = 0.2 * 4 / 6;
            EXPECT_NEAR(c * point.noise_variance, point.error + nu, 1e-10);
            EXPECT_NEAR(point.threshold * (c - divergence), lambda, 1e-3);
        }
    }
}

RC_GTEST_PROP(ErmProperty, TrainingIsNeverBetterThanBayes, ()) {
    const auto between = [](double low, double high) {
        return low * std::pow(high / low, *rc::gen::inRange(0, 1001) / 1000.0);
    };
    const priors::Wishart prior(between(0.05, 3));
    const int tokens = *rc::gen::inRange(2, 5);
    const double alpha = between(0.01, 1), lambda = between(1e-4, 10);
    const bool linear = *rc::gen::inRange(0, 2) == 0;
    const Penalty penalty = *rc::gen::inRange(0, 2) == 0 ? Penalty::trace : Penalty::frobenius;
    channels::ChannelOptions options;
    options.tokens = tokens;
    options.label_noise = linear ? between(1e-3, 2) : 0;
    const auto channel = channels::make_channel(linear ? "linear" : "softmax", options);
    const auto loss = losses::make_loss(linear                         ? "square"
                                        : *rc::gen::inRange(0, 2) == 0 ? "logit"
                                                                       : "row-logit",
                                        *channel);
    const double bayes =
        solve_state_evolution(SpectralCurve(prior.law()), *channel, alpha, Start::uninformed).error();
    const ErmOptions erm{.penalty = penalty};
    for (const ErmPoint& point :
         {solve_erm(prior.law(), *loss, alpha, lambda, erm), solve_erm(prior.law(), *loss, alpha, 0, erm),
          solve_optimal_erm(prior.law(), *loss, alpha, erm)}) {
        RC_ASSERT(succeeded(point.status));
        RC_ASSERT(std::isfinite(point.error) && point.error >= bayes * (1 - 1e-9));
        RC_ASSERT(point.training_loss >= 0);
        RC_ASSERT(point.zero_fraction > -1e-9 && point.zero_fraction < 1 + 1e-9);
    }
}

TEST(Erm, RefusesWhatMakesNoSense) {
    const priors::Wishart prior(0.5);
    test::expect_invalid([&] { solve_erm(prior.law(), *square(0.5), 0.1, -1); }, "regularization must");
    test::expect_invalid([&] { solve_erm(prior.law(), *square(0.5), -0.1, 1); }, "alpha must");
    test::expect_invalid([&] { solve_erm(prior.law(), *square(0.5), 0.1, std::nan("")); },
                         "regularization must");
    test::expect_invalid([&] { solve_erm(prior.law(), *loss_of("square", 3), 0.1, 0.1); },
                         "not available for more than two tokens");
}

}  // namespace
}  // namespace bayesaim::theory
