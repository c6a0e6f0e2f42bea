// SPDX-License-Identifier: MIT
// What every channel of the table promises (testing/channel_contract), at one and several tokens.
#include "bayesaim/testing/channel_contract.hpp"

#include <gmock/gmock.h>

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/table.hpp"

namespace bayesaim::channels {
namespace {

using bayesaim::testing::check_channel;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Case {
    std::string channel;
    ChannelOptions options;
    bayesaim::testing::ChannelCheck check;
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        return out << c.channel << " T=" << c.options.tokens << " beta=" << c.options.beta
                   << " noise=" << c.options.label_noise << " " << c.check.name;
    }
};

/// Every row of the table; the printed hardmax score is wrong on purpose and breaks the contract (see below).
std::vector<Case> cases() {
    std::vector<Case> result;
    const auto add = [&](const std::string& channel, const ChannelOptions& options) {
        for (const auto& check : bayesaim::testing::channel_checks())
            result.push_back({channel, options, check});
    };
    for (const ChannelEntry& entry : channel_table()) {
        if (entry.name == "hardmax-as-printed") continue;
        if (entry.name == "linear") {
            add(entry.name, {.tokens = 1});
            add(entry.name, {.tokens = 3, .label_noise = 0.3});
        } else if (entry.name == "softmax") {
            for (const double beta : {1e-3, 1.0, 1e3}) add(entry.name, {.tokens = 3, .beta = beta});
        }
        add(entry.name, {.tokens = 2});
        add(entry.name, {.tokens = 3});
    }
    return result;
}

class ChannelContract : public ::testing::TestWithParam<Case> {};

TEST_P(ChannelContract, Holds) {
    const auto channel = make_channel(GetParam().channel, GetParam().options);
    EXPECT_THAT(GetParam().check.run(*channel, {.label_noise = GetParam().options.label_noise > 0}),
                IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Table, ChannelContract, ::testing::ValuesIn(cases()));

TEST(ChannelContractChecks, RejectThePrintedHardmaxScore) {
    EXPECT_THAT(check_channel(HardmaxAsPrinted(2)), Contains(StartsWith("score_is_gradient: score of")));
}

/// Linear, with one thing made wrong.
class WrongLinear final : public Channel {
  public:
    enum class Wrong {
        nothing,
        score_factor,
        slope,
        slope_symmetry,
        first_token,
        score_power,
        information,
        bayes_optimal,
        plug_in,
        no_growth,
        prediction
    };
    explicit WrongLinear(Wrong wrong) : wrong_(wrong) {}
    std::string name() const override { return "wrong"; }
    std::vector<std::pair<std::string, double>> parameters() const override { return {}; }
    int tokens() const override { return exact_.tokens(); }
    void draw(const ConstRowsRef& index, std::uint64_t seed, std::uint64_t first_sample,
              RowsRef outputs) const override {
        exact_.draw(index, seed, first_sample, outputs);
        if (wrong_ == Wrong::first_token) outputs.col(0) *= 2;
    }
    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override {
        Rows y = outputs;
        if (wrong_ == Wrong::first_token) y.col(0) /= 2;
        exact_.score(y, omega, variance, g, log_z);
        if (wrong_ == Wrong::score_factor) g *= 2;
    }
    Eigen::MatrixXd score_slope(const ConstRowsRef& output, const ConstRowsRef& omega,
                                const Overlap& variance) const override {
        Eigen::MatrixXd slope = Channel::score_slope(output, omega, variance);
        if (wrong_ == Wrong::slope) slope *= 1.01;
        if (wrong_ == Wrong::slope_symmetry) slope(0, 1) += 1e-6;
        return slope;
    }
    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override {
        exact_.predict(omega, variance, prediction);
        if (wrong_ == Wrong::prediction && variance(0, 0) > 0) prediction *= 0.9;
    }
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override {
        ScorePower power = exact_.score_power(parameters, integration);
        if (wrong_ == Wrong::score_power) power.value *= 2;
        return power;
    }
    std::optional<double> information(const OrderParameters& parameters,
                                      const Integration& integration) const override {
        return (wrong_ == Wrong::information ? 0.5 : 1) * *exact_.information(parameters, integration);
    }
    GeneralizationError generalization(const OrderParameters& parameters,
                                       const Integration& integration) const override {
        GeneralizationError error = exact_.generalization(parameters, integration);
        if (wrong_ == Wrong::bayes_optimal) error.bayes_optimal *= 0.9;
        if (wrong_ == Wrong::plug_in) error.plug_in *= 0.9;
        if (wrong_ == Wrong::no_growth) error.bayes_optimal = error.plug_in = 1e-3;
        return error;
    }

  private:
    Wrong wrong_;
    Linear exact_{2};
};

TEST(ChannelContractChecks, SeeEachMistake) {
    using Wrong = WrongLinear::Wrong;
    EXPECT_THAT(check_channel(WrongLinear(Wrong::nothing)), IsEmpty());
    for (const auto& [wrong, line] :
         {std::pair{Wrong::score_factor, "score_is_gradient"},
          {Wrong::score_factor, "score_is_centred"},
          {Wrong::slope, "slope_is_gradient: distance of"},
          {Wrong::slope_symmetry, "slope_is_gradient: slope of sample 0 is not symmetric"},
          {Wrong::first_token, "permutations: change of the score"},
          {Wrong::first_token, "permutations: change of log Z"},
          {Wrong::score_power, "score_power"},
          {Wrong::information, "information"},
          {Wrong::bayes_optimal, "generalization: Bayes-optimal error is"},
          {Wrong::plug_in, "generalization: plug-in error"},
          {Wrong::no_growth, "generalization: error at Q - q"},
          {Wrong::prediction, "predictions"}}) {
        EXPECT_THAT(check_channel(WrongLinear(wrong)), Contains(StartsWith(line)));
    }
}

TEST(ChannelTable, UnknownNameListsTheKnownOnes) {
    try {
        make_channel("sparsemax", {});
        FAIL();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "channel must be one of linear, softmax, hardmax, hardmax-as-printed, got 'sparsemax'");
    }
}

}  // namespace
}  // namespace bayesaim::channels
