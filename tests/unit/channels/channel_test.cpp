// SPDX-License-Identifier: MIT
#include "bayesaim/channels/channel.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "bayesaim/channels/linear.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/channels/table.hpp"

#include "support/expect_invalid.hpp"
#include "support/layers.hpp"
#include "support/two_layer_channel.hpp"

namespace bayesaim::channels {
namespace {

using test::overlap;
using test::WeightedSum;

/// Hides the closed forms of a channel, so that the defaults run.
template <class Exact>
class OnlyDrawsAndScores final : public Channel {
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

/// Two layers, correlated and different.
const OrderParameters of_two_layers{overlap(0.9, 0.3, 0.6), overlap(0.35, -0.1, 0.2)};

TEST(ChannelDefaults, ScorePowerAndInformationAreThoseOfTheClosedForm) {
    const Linear exact(2, 0.3);
    const OnlyDrawsAndScores sampled(exact);
    const ScorePower expected = exact.score_power(parameters, {}), got = sampled.score_power(parameters, {});
    EXPECT_GT(got.relative_error, 0);
    EXPECT_LT(got.relative_error, 0.02);
    EXPECT_NEAR(got.value(0, 0) / expected.value(0, 0), 1, 4 * got.relative_error);
    EXPECT_NEAR(*sampled.information(parameters, {}), *exact.information(parameters, {}), 0.05);
}

TEST(ChannelDefaults, PredictionsAndTheirErrorAreThoseOfTheClosedForm) {
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

/// Each entry of F, and the information. Lost entries between layers, or exchanged layers, would be off
/// by a factor.
TEST(ChannelDefaults, ScorePowerOfTwoLayersIsTheClosedForm) {
    const WeightedSum channel(0.3);
    const ScorePower got = channel.score_power(of_two_layers, {});
    const Overlap expected = channel.exact_score_power(of_two_layers);
    EXPECT_LT(got.relative_error, 0.02);
    EXPECT_GT(got.relative_error, 0);
    for (int l = 0; l < 2; ++l) {
        for (int k = 0; k < 2; ++k)
            EXPECT_NEAR(got.value(l, k) / expected(l, k), 1, 4 * got.relative_error) << l << k;
    }
    double information = -1.5;
    for (int p = 0; p < 3; ++p) {
        const double spread = channel.observation_variance(2 * of_two_layers.error, p);
        information -= 0.5 * std::log(2 * std::numbers::pi * spread);
    }
    EXPECT_NEAR(*channel.information(of_two_layers, {}), information, 0.05);
}

/// y = h^1 + 2 h^2 is linear: E y is the output of omega, and each pair misses u' V u.
TEST(ChannelDefaults, PredictionsOfTwoLayersAreTheClosedForm) {
    const WeightedSum channel;
    Rows omega(2, 6), expected(2, 4), got(2, 4);
    omega << 0.3, -1, 0.2, 1.5, 0.1, -0.4, 0.7, 0.2, -0.9, 0.4, -1.2, 0.8;
    channel.draw(omega, 0, 0, expected);
    for (const Overlap& variance : {linalg::zero_overlap(2), Overlap(2 * of_two_layers.error)}) {
        channel.predict(omega, variance, got);
        EXPECT_LT((got - expected).cwiseAbs().maxCoeff(), variance.isZero() ? 1e-15 : 5e-3);  // 512 points
    }
    const double missed = 3 * channel.observation_variance(2 * of_two_layers.error, 0);
    const auto error = channel.generalization(of_two_layers, {});
    EXPECT_LT(error.relative_error, 0.02);
    EXPECT_NEAR(error.bayes_optimal / missed, 1, 4 * error.relative_error);
    EXPECT_NEAR(error.plug_in / missed, 1, 4 * error.relative_error);
}

/// -dg^l/domega^k = u_l u_k / S, on the same pair only.
TEST(ChannelDefaults, SlopesOfTwoLayersAreTheClosedForm) {
    const WeightedSum channel(0.3);
    const Overlap variance = 2 * of_two_layers.error;
    const test::Samples s = test::sample(channel, of_two_layers.overlap, variance, 3, 1);
    Rows g(3, 6), plain(3, 6);
    Eigen::VectorXd no_log_z(0);
    const Overlap sum = channel.score_with_slope(s.outputs, s.omega, variance, g);
    channel.score(s.outputs, s.omega, variance, plain, no_log_z);
    EXPECT_EQ(g, plain);
    EXPECT_LT((sum - 3 * channel.exact_score_power(of_two_layers)).norm(), 1e-8 * sum.norm());
    const Eigen::MatrixXd slope = channel.score_slope(s.outputs.row(0), s.omega.row(0), variance);
    for (int i = 0; i < 6; ++i) {
        for (int j = 0; j < 6; ++j) {
            const double expected = i % 3 != j % 3
                                        ? 0
                                        : -WeightedSum::weight[i / 3] * WeightedSum::weight[j / 3] /
                                              channel.observation_variance(variance, i % 3);
            EXPECT_NEAR(slope(i, j), expected, 1e-8) << i << j;
        }
    }
}

TEST(ChannelDefaults, BitsDoNotDependOnThreads) {
    const OnlyDrawsAndScores sampled(Linear(2, 0.3));
    ThreadPool pool(3);
    EXPECT_EQ(sampled.score_power(parameters, {}).value,
              sampled.score_power(parameters, {.pool = &pool}).value);
    const WeightedSum channel(0.3);
    EXPECT_EQ(channel.score_power(of_two_layers, {}).value,
              channel.score_power(of_two_layers, {.pool = &pool}).value);
}

TEST(ChannelDefaults, RejectOrderParametersOfOtherLayers) {
    test::expect_invalid([] { WeightedSum().score_power(parameters, {}); },
                         "layers of the error must be of size 2");
    test::expect_invalid([] { OnlyDrawsAndScores(Linear(2)).score_power(of_two_layers, {}); },
                         "layers of the error must be of size 1");
}

/// The default for users' channels: outputs are finite; if they are logarithms, the probabilities of each row
/// sum to 1.
TEST(ChannelDefaults, CheckOutputsTakesFiniteNumbersAndLogProbabilities) {
    const OnlyDrawsAndScores numbers(Linear(2));
    Rows outputs = Rows::Constant(3, 4, -7);
    EXPECT_NO_THROW(numbers.check_outputs(outputs));
    outputs(2, 3) = std::numeric_limits<double>::infinity();
    test::expect_invalid([&] { numbers.check_outputs(outputs); },
                         "output of sample 2, row 1 must be a finite number, got inf");
    test::expect_invalid([&] { numbers.check_outputs(outputs.leftCols(3)); },
                         "columns of the outputs must be of size 4, got 3");
    const OnlyDrawsAndScores logarithms(Softmax(2));
    outputs = Rows::Constant(3, 4, std::log(0.5));
    EXPECT_NO_THROW(logarithms.check_outputs(outputs));
    outputs(1, 0) += 5e-5;  // single precision
    EXPECT_NO_THROW(logarithms.check_outputs(outputs));
    outputs(1, 0) += 1e-3;
    test::expect_invalid([&] { logarithms.check_outputs(outputs); },
                         "sum of the probabilities of sample 1, row 0 must be 1, got 1.0005");
    outputs.setConstant(0.5);
    test::expect_invalid(
        [&] { logarithms.check_outputs(outputs); },
        "outputs must be logarithms of probabilities, got probabilities: give numpy.log(outputs)");
}

TEST(LinearChannel, OutputsOfTiedAttentionAreSymmetric) {
    Rows outputs(2, 4);
    outputs << 1, 2, 2, 3, 1, 2, 2.5, 3;
    EXPECT_NO_THROW(Linear(2).check_outputs(outputs.topRows(1)));
    test::expect_invalid([&] { Linear(2).check_outputs(outputs); },
                         "output of sample 1, row 0 must be symmetric, 2.5 like its mirror, got 2");
}

TEST(ChannelTable, RefusesAttentionAndKeysThatTheChannelDoesNotHave) {
    test::expect_invalid([] { make_channel("deep-softmax", {.attention = Attention::self}); },
                         "attention of channel deep-softmax must be tied, got self");
    test::expect_invalid([] { make_channel("softmax", {.attention = Attention::self, .key_tokens = 3}); },
                         "key_tokens applies only to cross-attention (attention is self)");
}

/// A channel accepts its own draws and rejects outputs that it cannot draw.
TEST(ChannelTable, EveryRowKnowsItsOutputs) {
    for (const ChannelEntry& entry : channel_table()) {
        SCOPED_TRACE(entry.name);
        const auto channel = entry.make({});
        const Overlap one = Overlap::Identity(channel->layers(), channel->layers());
        const Rows drawn = test::sample(*channel, one, one, 20, 3).outputs;
        EXPECT_NO_THROW(channel->check_outputs(drawn));
        Rows changed = drawn;
        changed(4, 1) += 0.5;  // breaks the symmetry, the label or the row sum
        test::expect_invalid([&] { channel->check_outputs(changed); }, "of sample 4");
        changed(4, 1) = std::nan("");
        test::expect_invalid([&] { channel->check_outputs(changed); }, "of sample 4");
        test::expect_invalid([&] { channel->check_outputs(drawn.leftCols(2)); }, "columns of the outputs");
    }
}

/// One layer of deep-softmax is softmax: the same model, in closed form.
TEST(ChannelTable, DeepSoftmaxOfOneLayerIsSoftmax) {
    const auto channel = make_channel("deep-softmax", {.tokens = 3, .beta = 2, .layers = 1});
    ASSERT_NE(dynamic_cast<const Softmax*>(channel.get()), nullptr);
    EXPECT_EQ(channel->parameters(), Softmax(3, 2).parameters());
    test::expect_invalid([] { make_channel("deep-seq2seq", {.layers = 1}); }, "deep-seq2seq channel: layers");
    test::expect_invalid([] { make_channel("deep-seq2seq", {.tokens = 3}); },
                         "deep-seq2seq channel: tokens must be 2, got 3");
}

/// A row takes exactly the options that its channel reports; other options do not change the channel.
TEST(ChannelTable, RowsTakeTheOptionsThatTheirChannelsReport) {
    const ChannelOptions usual,
        other{.tokens = 3, .beta = 2, .label_noise = 0.5, .layers = 3, .residual = 0.25};
    for (const ChannelEntry& entry : channel_table()) {
        SCOPED_TRACE(entry.name);
        const auto channel = entry.make(usual);
        for (const auto& [name, value] : channel->parameters())
            EXPECT_EQ(std::count(entry.options.begin(), entry.options.end(), name), 1) << name;
        ChannelOptions options = usual;
        for (const std::string& name : entry.options) {
            if (name == "beta") options.beta = other.beta;
            if (name == "label_noise") options.label_noise = other.label_noise;
            if (name == "layers") options.layers = other.layers;
            if (name == "residual") options.residual = other.residual;
        }
        ChannelOptions all = other;
        all.tokens = usual.tokens;
        EXPECT_EQ(entry.make(options)->parameters(), entry.make(all)->parameters());
        EXPECT_EQ(entry.make(all)->layers(), entry.make(usual)->layers() == 1 ? 1 : 3);
    }
}

TEST(ChannelTable, GradientDescentLearnsLinearAndSoftmax) {
    EXPECT_EQ(smooth_channels(), (std::vector<std::string>{"linear", "softmax"}));
}

}  // namespace
}  // namespace bayesaim::channels
