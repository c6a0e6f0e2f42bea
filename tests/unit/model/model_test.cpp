// SPDX-License-Identifier: MIT
#include "bayesaim/model/model.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/channels/softmax.hpp"
#include "bayesaim/core/table.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"

#include "support/expect_invalid.hpp"
#include "support/temporary_file.hpp"

namespace bayesaim::model {
namespace {

using test::expect_invalid;

/// Options with a distinct value for each option that the channel takes.
ModelOptions options_of(const channels::ChannelEntry& channel) {
    ModelOptions options{.widths = {0.5}, .channel = channel.name};
    channels::ChannelOptions& settings = options.channel_options;
    if (takes(channel, "beta")) settings.beta = 0.75;
    if (takes(channel, "label_noise")) settings.label_noise = 0.25;
    if (takes(channel, "layers")) settings.layers = 3;
    if (takes(channel, "residual")) settings.residual = 0.125;
    if (takes(channel, "heads")) options.heads = 5;
    return options;
}

/// The description of a model makes the same model again.
void expect_same_again(const ModelOptions& options) {
    const Record description = describe(make_model(options));
    ModelOptions again;
    read_options(description, again);
    EXPECT_EQ(describe(make_model(again)), description) << options.channel << ' ' << options.prior;
}

TEST(MakeModel, OfEveryChannelHasItsOptions) {
    for (const channels::ChannelEntry& entry : channels::channel_table()) {
        SCOPED_TRACE(entry.name);
        const ModelOptions options = options_of(entry);
        const Model model = make_model(options);
        EXPECT_EQ(model.layers(), takes(entry, "layers") ? 3 : 1);
        ASSERT_EQ(model.priors().size(), static_cast<std::size_t>(model.layers()));
        ASSERT_EQ(model.laws().size(), model.priors().size());
        EXPECT_EQ(model.laws()[0], &model.prior(0).law());
        const Record record = describe(model);
        EXPECT_EQ(*record.find("tokens"), Value(2));
        const std::pair<const char*, Value> said[] = {
            {"beta", 0.75}, {"label_noise", 0.25}, {"layers", 3}, {"residual", 0.125}, {"heads", 5}};
        for (const auto& [name, value] : said) {
            ASSERT_EQ(record.contains(name), takes(entry, name)) << name;
            if (record.contains(name)) {
                EXPECT_EQ(*record.find(name), value) << name;
            }
        }
        EXPECT_EQ(*record.find("prior"), Value(entry.prior.empty() ? "wishart" : entry.prior));
        expect_same_again(options);
    }
}

TEST(MakeModel, OfEveryPriorIsDescribedAsItIsMade) {
    const test::TemporaryFile file("-1 0.25\n2 0.75\n");
    for (const priors::PriorEntry& entry : priors::prior_table()) {
        SCOPED_TRACE(entry.name);
        const bool general = entry.matrices == priors::PriorEntry::Matrices::general;
        const ModelOptions options{.prior = entry.name,
                                   .widths = {0.5},
                                   .spectrum = file.path(),
                                   .heads = 3,
                                   .channel_options = {.attention = general ? channels::Attention::cross
                                                                            : channels::Attention::tied}};
        const Model model = make_model(options);
        EXPECT_EQ(model.prior(0).name(), entry.name);
        EXPECT_EQ(model.spectrum(), takes(entry, "spectrum") ? file.path() : "");
        EXPECT_EQ(describe(model).contains("spectrum"), takes(entry, "spectrum"));
        EXPECT_EQ(describe(model).contains("width"), takes(entry, "width"));
        EXPECT_EQ(describe(model).contains("heads"), takes(entry, "heads"));
        expect_same_again(options);
    }
}

TEST(MakeModel, ScaleIsDescribedUnlessItIsOne) {
    ModelOptions options{.widths = {0.5}, .scale = 2};
    EXPECT_EQ(*describe(make_model(options)).find("scale"), Value(2.0));
    EXPECT_EQ(make_model(options).prior(0).law().mean(), 2 * std::sqrt(0.5));
    expect_same_again(options);
    options.channel = "deep-softmax";
    EXPECT_EQ(*describe(make_model(options)).find("scale"), Value(Value::List{2.0, 2.0}));
    expect_same_again(options);
    EXPECT_FALSE(describe(make_model({.widths = {0.5}})).contains("scale"));
}

TEST(MakeModel, PowerLawHasExponentAndCutoff) {
    ModelOptions options{.prior = "power-law", .widths = {0.5}, .scale = 2, .exponent = 1.5, .cutoff = 0.01};
    const Record record = describe(make_model(options));
    EXPECT_EQ(*record.find("exponent"), Value(1.5));
    EXPECT_EQ(*record.find("cutoff"), Value(0.01));
    expect_same_again(options);
    options.channel = "deep-softmax";
    expect_same_again(options);
}

TEST(MakeModel, LayersMayDifferInWidth) {
    const ModelOptions options{.widths = {0.4, 0.8, 0.4},
                               .channel = "deep-softmax",
                               .channel_options = {.layers = 3, .residual = 0.5}};
    const Model model = make_model(options);
    EXPECT_EQ(model.prior(1).parameters()[0].second, 0.8);
    EXPECT_EQ(*describe(model).find("width"), Value(std::vector<double>{0.4, 0.8, 0.4}));
    expect_same_again(options);
    // A file stores the list as text.
    ModelOptions read;
    read_options({{"channel", "deep-softmax"}, {"layers", 3}, {"width", "0.4,0.8,0.4"}, {"residual", 0.5}},
                 read);
    EXPECT_EQ(describe(make_model(read)), describe(model));
}

/// One width applies to all layers, which share one prior.
TEST(MakeModel, OneWidthIsThatOfAllLayers) {
    const Model model =
        make_model({.widths = {0.5}, .channel = "deep-seq2seq", .channel_options = {.layers = 4}});
    EXPECT_EQ(*describe(model).find("width"), Value(std::vector<double>(4, 0.5)));
    EXPECT_EQ(&model.prior(0), &model.prior(3));
}

/// deep-softmax of one layer is softmax, and its description says softmax.
TEST(MakeModel, DeepSoftmaxOfOneLayerIsSoftmax) {
    const Model model = make_model({.channel = "deep-softmax", .channel_options = {.layers = 1}});
    EXPECT_EQ(describe(model), describe(make_model({})));
    expect_same_again({.channel = "deep-softmax", .channel_options = {.layers = 1}});
}

TEST(MakeModel, MultiHeadIsSoftmaxWithThePriorOfItsHeads) {
    const ModelOptions options{.widths = {0.5}, .heads = 4, .channel = "multi-head"};
    const Record record = describe(make_model(options));
    EXPECT_EQ(*record.find("prior"), Value("multi-head"));
    EXPECT_EQ(*record.find("heads"), Value(4));
    EXPECT_EQ(*record.find("width"), Value(0.5));
    EXPECT_EQ(describe(make_model({.prior = "multi-head", .widths = {0.5}, .heads = 4})), record);
    expect_invalid([] { make_model({.prior = "wigner", .channel = "multi-head"}); },
                   "prior wigner cannot be combined with channel multi-head");
    EXPECT_NO_THROW(make_model({.prior = "multi-head", .channel = "multi-head"}));
}

TEST(MakeModel, RejectsWhatDoesNotFit) {
    expect_invalid([] { make_model({.channel = "sparsemax"}); },
                   "channel must be one of linear, softmax, hardmax, hardmax-sampled, hardmax-as-printed, "
                   "deep-softmax, deep-seq2seq, "
                   "multi-head, got 'sparsemax'");
    expect_invalid([] { make_model({.prior = "gauss"}); },
                   "prior must be one of wishart, wigner, spectrum, multi-head, bilinear, ginibre, "
                   "power-law, got 'gauss'");
    expect_invalid([] { make_model({.widths = {1, 2}}); }, "width must be one number, got 2 numbers");
    expect_invalid([] { make_model({.widths = {}}); }, "width must be one number, got 0 numbers");
    expect_invalid(
        [] {
            make_model({.widths = {1, 2, 3}, .channel = "deep-softmax"});
        },
        "width must be one number, or one for each of the 2 layers, got 3 numbers");
    expect_invalid([] { make_model({.widths = {-1}}); }, "width must be positive and finite, got -1");
    expect_invalid([] { make_model({.prior = "spectrum"}); }, "prior spectrum needs a spectrum file");
    expect_invalid([] { make_model({.channel_options = {.tokens = 1}}); }, "tokens");
}

TEST(Model, NeedsOnePriorForEachLayer) {
    const auto prior = std::make_shared<priors::Wigner>();
    expect_invalid(
        [&] {
            Model(std::make_shared<channels::Softmax>(2), {prior, prior});
        },
        "channel softmax has 1 layer, got 2 priors");
    expect_invalid([&] { Model(std::make_shared<channels::DeepAttention>(), {prior}); },
                   "channel deep-softmax has 2 layers, got 1 prior");
}

TEST(ReadOptions, KeepsWhatIsNotSaid) {
    ModelOptions options{.widths = {0.25}, .heads = 7, .channel_options = {.beta = 3}};
    read_options({{"channel", "linear"}, {"tokens", 4}, {"seed", 5}, {"alpha", "not ours"}}, options);
    EXPECT_EQ(options.channel, "linear");
    EXPECT_EQ(options.channel_options.tokens, 4);
    EXPECT_EQ(options.widths, std::vector<double>{0.25});
    EXPECT_EQ(options.heads, 7);
    EXPECT_EQ(options.channel_options.beta, 3);
}

TEST(ReadOptions, RejectsValuesOfTheWrongType) {
    const auto reading = [](const char* name, const Value& value) {
        return [=] {
            ModelOptions options;
            read_options({{name, value}}, options);
        };
    };
    expect_invalid(reading("channel", 3), "attribute channel must be a text");
    expect_invalid(reading("prior", 0.5), "attribute prior must be a text");
    expect_invalid(reading("beta", "hot"), "attribute beta must be a number");
    expect_invalid(reading("tokens", 2.5), "attribute tokens must be a whole number up to 1000000, got 2.5");
    expect_invalid(reading("layers", 1e300), "attribute layers must be a whole number");
    expect_invalid(reading("layers", std::nan("")), "attribute layers must be a whole number");
    expect_invalid(reading("width", "0.4;0.8"),
                   "attribute width must be a number, or one for each layer: 0.4,0.8");
    expect_invalid(reading("width", "0.4,"), "attribute width must be");
    expect_invalid(reading("scale", "1,2"), "attribute scale must be the same number for all layers, got 2");
    expect_invalid(reading("width", Value::List{0.4, "wide"}), "attribute width must be a number");
}

/// The program, studies and Python accept these options and no others.
TEST(TakesOption, IsThatOfTheChannelOrOfThePrior) {
    EXPECT_TRUE(takes_option({}, "width"));
    EXPECT_TRUE(takes_option({}, "beta"));
    EXPECT_FALSE(takes_option({}, "layers"));
    EXPECT_FALSE(takes_option({}, "heads"));
    EXPECT_FALSE(takes_option({.prior = "wigner"}, "width"));
    EXPECT_TRUE(takes_option({.channel = "deep-softmax"}, "residual"));
    EXPECT_TRUE(takes_option({.channel = "multi-head"}, "heads"));
    EXPECT_TRUE(takes_option({.channel = "multi-head"}, "width"));
    EXPECT_EQ(owners_of_option("layers"), "channel deep-softmax or deep-seq2seq");
    EXPECT_EQ(owners_of_option("beta"), "channel softmax, deep-softmax, deep-seq2seq or multi-head");
    EXPECT_EQ(owners_of_option("width"), "prior wishart, multi-head, bilinear or power-law");
    EXPECT_EQ(owners_of_option("scale"), "prior wishart, bilinear or power-law");
    EXPECT_EQ(owners_of_option("spectrum"), "prior spectrum");
}

}  // namespace
}  // namespace bayesaim::model
