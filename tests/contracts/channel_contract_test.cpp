// SPDX-License-Identifier: MIT
// The contract of every channel of the table (testing/channel_contract), for several layers and tokens.
#include "bayesaim/testing/channel_contract.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/deep_sequence.hpp"
#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/table.hpp"
#include "bayesaim/core/table.hpp"

#include "support/two_layer_channel.hpp"

namespace bayesaim::channels {
namespace {

using bayesaim::testing::channel_checks;
using bayesaim::testing::ChannelCheck;
using bayesaim::testing::check_channel;
using ContractOptions = bayesaim::testing::ChannelContractOptions;
using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::StartsWith;

struct Setting {
    ChannelOptions channel;
    ContractOptions contract{};
};

/// The settings at which each row is checked. The accuracies of scores are measured: at most 4e-5 and 2e-7
/// for the quadratures of two layers, a few percent for importance sampling with 1024 points.
const std::map<std::string, std::vector<Setting>>& settings() {
    // Predictions are averages over 512 draws for each sample.
    const ContractOptions attention{.prediction_samples = 4000, .score_accuracy = 1e-4},
        sequence{.prediction_samples = 4000, .score_accuracy = 1e-6},
        attention_sampled{.samples = 1500, .prediction_samples = 1500, .score_accuracy = 0.1},
        sequence_sampled{.samples = 900, .prediction_samples = 1500, .score_accuracy = 0.15};
    static const std::map<std::string, std::vector<Setting>> table = {
        {"linear",
         {{{.tokens = 1}},
          {{.tokens = 2}},
          {{.tokens = 3}},
          {{.tokens = 3, .label_noise = 0.3}, {.label_noise = true}},
          {{.tokens = 1, .attention = Attention::cross}},
          // With the usual seed, 11, one covariance is at 4.05 standard errors: 1 of 60 seeds, and none with 600,000
          // samples of that seed.
          {{.tokens = 2, .label_noise = 0.3, .attention = Attention::cross, .key_tokens = 3},
           {.seed = 12, .label_noise = true}},
          {{.tokens = 3, .attention = Attention::masked}},
          {{.tokens = 2, .attention = Attention::self}},
          {{.tokens = 3, .label_noise = 0.3, .attention = Attention::self}, {.label_noise = true}},
          {{.tokens = 3, .label_noise = 0.3, .attention = Attention::causal}, {.label_noise = true}}}},
        {"softmax",
         {{{.tokens = 2}},
          {{.tokens = 3}},
          {{.tokens = 3, .beta = 1e-3}},
          {{.tokens = 3, .beta = 1e3}},
          {{.tokens = 2, .attention = Attention::cross}},
          {{.tokens = 3, .attention = Attention::cross, .key_tokens = 2}},
          {{.tokens = 2, .beta = 3, .attention = Attention::cross, .key_tokens = 4}},
          {{.tokens = 4, .attention = Attention::masked}},
          {{.tokens = 2, .attention = Attention::self}},
          {{.tokens = 3, .beta = 2, .attention = Attention::self}},
          {{.tokens = 2, .attention = Attention::causal}},
          {{.tokens = 4, .attention = Attention::causal}}}},
        {"hardmax",
         {{{.tokens = 2}},
          {{.tokens = 3}},
          {{.tokens = 4}},
          {{.tokens = 2, .attention = Attention::cross}},
          {{.tokens = 2, .attention = Attention::cross, .key_tokens = 3}},
          {{.tokens = 4, .attention = Attention::masked}},
          {{.tokens = 1, .attention = Attention::cross, .key_tokens = 5}},
          {{.tokens = 1, .attention = Attention::cross, .key_tokens = 9}},
          {{.tokens = 2, .attention = Attention::self}},
          {{.tokens = 2, .attention = Attention::causal}},
          {{.tokens = 4, .attention = Attention::causal}}}},
        {"hardmax-sampled", {{{.tokens = 2}}, {{.tokens = 3}}}},
        {"multi-head", {{{.tokens = 2}}, {{.tokens = 3}}}},
        {"deep-softmax",
         {{{.tokens = 3, .layers = 1}},
          {{.tokens = 2, .layers = 2}, attention},
          {{.tokens = 2, .layers = 2, .residual = 0.3}, attention},
          {{.tokens = 2, .layers = 3}, attention_sampled},
          {{.tokens = 3, .layers = 2}, attention_sampled}}},
        {"deep-seq2seq", {{{.layers = 2}, sequence}, {{.layers = 3}, sequence_sampled}}},
    };
    return table;
}

/// Wrong on purpose: it reproduces a published curve.
constexpr const char* breaks_the_contract = "hardmax-as-printed";

TEST(ChannelContractCases, CoverEveryRowOfTheTable) {
    for (const std::string& name : names_of(channel_table())) {
        if (name == breaks_the_contract) continue;
        EXPECT_THAT(settings(), Contains(Key(name)));
    }
    EXPECT_EQ(settings().size(), channel_table().size() - 1);
}

struct Case {
    std::string channel;
    Setting setting;
    ChannelCheck check;
    friend std::ostream& operator<<(std::ostream& out, const Case& c) {
        const ChannelOptions& o = c.setting.channel;
        return out << c.channel << " L=" << o.layers << " T=" << o.tokens << " beta=" << o.beta
                   << " c=" << o.residual << " noise=" << o.label_noise << " " << to_string(o.attention)
                   << o.key_tokens << " " << c.check.name;
    }
};

std::vector<Case> cases() {
    std::vector<Case> result;
    for (const auto& [channel, row] : settings()) {
        for (const Setting& setting : row) {
            for (const ChannelCheck& check : channel_checks()) result.push_back({channel, setting, check});
        }
    }
    return result;
}

class ChannelContract : public ::testing::TestWithParam<Case> {};

TEST_P(ChannelContract, Holds) {
    const auto& [name, setting, check] = GetParam();
    EXPECT_THAT(check.run(*make_channel(name, setting.channel), setting.contract), IsEmpty());
}

/// Like softmax_T_3_tied_score_is_gradient, with the settings that are not usual.
std::string case_name(const ::testing::TestParamInfo<Case>& one) {
    const ChannelOptions &o = one.param.setting.channel, usual;
    std::string name = fmt::format("{} T {} {}", one.param.channel, o.tokens, to_string(o.attention));
    const auto add = [&](const char* setting, double value, double usual_value) {
        if (value != usual_value) name += fmt::format(" {} {}", setting, value);
    };
    add("keys", o.key_tokens, usual.key_tokens);
    add("layers", o.layers, usual.layers);
    add("beta", o.beta, usual.beta);
    add("residual", o.residual, usual.residual);
    add("noise", o.label_noise, usual.label_noise);
    name += fmt::format(" {}", one.param.check.name);
    std::ranges::replace_if(
        name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Table, ChannelContract, ::testing::ValuesIn(cases()), case_name);

TEST(ChannelContractChecks, RejectThePrintedHardmaxScore) {
    EXPECT_THAT(check_channel(*make_channel(breaks_the_contract, {})),
                Contains(StartsWith("score_is_gradient: score of")));
}

/// Linear with one error.
class WrongLinear final : public Channel {
  public:
    enum class Wrong {
        nothing,
        score_factor,
        slope,
        slope_symmetry,
        slope_sum,
        score_beside_slope,
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
    bool sampled() const override { return false; }
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
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override {
        const Overlap sum = Channel::score_with_slope(outputs, omega, variance, g);
        if (wrong_ == Wrong::score_beside_slope) g(1, 0) += 1e-6;
        return wrong_ == Wrong::slope_sum ? Overlap(1.001 * sum) : sum;
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
          {Wrong::slope_sum, "slope_sum: sum of slopes between layers 0 and 0"},
          {Wrong::score_beside_slope, "slope_sum: distance of the scores with and without slope"},
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

/// A channel of two layers in closed form, with one error between the layers.
class WrongLayers final : public test::WeightedSum {
  public:
    enum class Wrong {
        nothing,
        exchanged,
        exchanged_in_score_power,
        uncorrelated_score_power,
        exchanged_slopes,
        first_only
    };
    explicit WrongLayers(Wrong wrong) : wrong_(wrong) {}

    void score(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance, RowsRef g,
               Eigen::Ref<Eigen::VectorXd> log_z) const override {
        WeightedSum::score(outputs, omega, variance, g, log_z);
        if (wrong_ != Wrong::exchanged) return;
        const Rows first = g.leftCols(3);
        g.leftCols(3) = g.rightCols(3).eval();
        g.rightCols(3) = first;
    }
    Overlap score_with_slope(const ConstRowsRef& outputs, const ConstRowsRef& omega, const Overlap& variance,
                             RowsRef g) const override {
        Overlap sum = WeightedSum::score_with_slope(outputs, omega, variance, g);
        if (wrong_ == Wrong::exchanged_slopes) std::swap(sum(0, 0), sum(1, 1));
        return sum;
    }
    ScorePower score_power(const OrderParameters& parameters, const Integration& integration) const override {
        ScorePower power = WeightedSum::score_power(parameters, integration);
        if (wrong_ == Wrong::exchanged_in_score_power) std::swap(power.value(0, 0), power.value(1, 1));
        if (wrong_ == Wrong::uncorrelated_score_power) power.value(0, 1) = power.value(1, 0) = 0;
        return power;
    }
    void predict(const ConstRowsRef& omega, const Overlap& variance, RowsRef prediction) const override {
        Rows seen = omega;
        if (wrong_ == Wrong::first_only && !variance.isZero(0)) seen.rightCols(3).setZero();
        WeightedSum::predict(seen, variance, prediction);
    }

  private:
    Wrong wrong_;
};

TEST(ChannelContractChecks, SeeMistakesBetweenLayers) {
    using Wrong = WrongLayers::Wrong;
    const ContractOptions options{.prediction_samples = 2000};  // of 512 draws each
    EXPECT_THAT(check_channel(WrongLayers(Wrong::nothing), options), IsEmpty());
    for (const auto& [wrong, line] :
         {std::pair{Wrong::exchanged, "score_is_gradient"},
          {Wrong::exchanged, "score_is_centred"},
          {Wrong::exchanged_slopes, "slope_sum: sum of slopes between layers 0 and 0"},
          {Wrong::exchanged_in_score_power, "score_power"},
          {Wrong::uncorrelated_score_power, "score_power"},
          {Wrong::first_only, "predictions"}}) {
        EXPECT_THAT(check_channel(WrongLayers(wrong), options), Contains(StartsWith(line)));
    }
}

TEST(ChannelTable, UnknownNameListsTheKnownOnes) {
    try {
        make_channel("sparsemax", {});
        FAIL();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "channel must be one of linear, softmax, hardmax, hardmax-sampled, hardmax-as-printed, "
                     "deep-softmax, "
                     "deep-seq2seq, "
                     "multi-head, got 'sparsemax'");
    }
}

}  // namespace
}  // namespace bayesaim::channels
