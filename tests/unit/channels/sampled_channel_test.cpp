// SPDX-License-Identifier: MIT
#include "bayesaim/channels/sampled_channel.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/softmax.hpp"

namespace bayesaim::channels {
namespace {

/// A channel with closed forms that keeps them to itself.
template <class Exact>
class OnlyDrawsAndScores final : public SampledChannel {
  public:
    explicit OnlyDrawsAndScores(Exact exact) : exact_(std::move(exact)) {}

    std::string name() const override { return "only-draws"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {}; }
    int tokens() const override { return exact_.tokens(); }
    bool logarithmic_outputs() const override { return exact_.logarithmic_outputs(); }
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override {
        exact_.draw(index, seed, first_sample, outputs);
    }
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override {
        exact_.score(outputs, omega, variance, g, log_z);
    }

  private:
    Exact exact_;
};

const OrderParameters parameters{linalg::scalar_overlap(0.9), linalg::scalar_overlap(0.35)};

TEST(SampledChannel, AgreesWithTheClosedForm) {
    const Linear exact(2, 0.3);
    const OnlyDrawsAndScores sampled(exact);
    const ScorePower expected = exact.score_power(parameters, {}), got = sampled.score_power(parameters, {});
    EXPECT_GT(got.relative_error, 0);
    EXPECT_LT(got.relative_error, 0.02);
    EXPECT_NEAR(got.value(0, 0) / expected.value(0, 0), 1, 4 * got.relative_error);
    EXPECT_NEAR(*sampled.information(parameters, {}), *exact.information(parameters, {}), 0.05);
}

TEST(SampledChannel, PredictionsAndTheirErrorAreThoseOfTheClosedForm) {
    const Softmax exact(2);
    const OnlyDrawsAndScores sampled(exact);
    Rows omega(2, 3), expected(2, 4), got(2, 4);
    omega << 0.3, -1, 0.2, 1.5, 0.1, -0.4;
    for (const double variance : {0.0, 0.7}) {
        exact.predict(omega, linalg::scalar_overlap(variance), expected);
        sampled.predict(omega, linalg::scalar_overlap(variance), got);
        EXPECT_LT((got - expected).cwiseAbs().maxCoeff(), variance > 0 ? 2e-3 : 1e-15);  // 512 points
    }
    const auto reference = exact.generalization(parameters, {});
    const auto error = sampled.generalization(parameters, {.shifts = 4, .points = 8});
    EXPECT_NEAR(error.bayes_optimal / reference.bayes_optimal, 1, 4 * error.relative_error + 0.01);
    EXPECT_NEAR(error.plug_in / reference.plug_in, 1, 4 * error.relative_error + 0.01);
    EXPECT_LT(error.relative_error, 0.2);
}

TEST(SampledChannel, BitsDoNotDependOnThreads) {
    const OnlyDrawsAndScores sampled(Linear(2, 0.3));
    ThreadPool pool(3);
    EXPECT_EQ(sampled.score_power(parameters, {}).value,
              sampled.score_power(parameters, {.pool = &pool}).value);
}

}  // namespace
}  // namespace bayesaim::channels
