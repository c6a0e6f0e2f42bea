// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/experiment_file.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_invalid.hpp"
#include "support/temporary_file.hpp"

namespace bayesaim::experiments {
namespace {

Experiment parse(const std::string& text) { return parse_experiment(text, "study.toml"); }

TEST(ExperimentFile, ListsGiveEveryCombinationInAFixedOrder) {
    const Experiment study = parse(R"(
name = "two by two"
estimator = "amp"
width = [0.5, 1]
alpha = "0.1:0.2:2"
dim = 30
seeds = 2
seed = 7
)");
    EXPECT_EQ(study.name, "two by two");
    ASSERT_EQ(study.tasks.size(), 8U);
    const std::vector<double> widths{0.5, 0.5, 0.5, 0.5, 1, 1, 1, 1}, alphas{.1, .1, .2, .2, .1, .1, .2, .2};
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(study.tasks[i].width, widths[i]);
        EXPECT_EQ(study.tasks[i].alpha, alphas[i]);
        EXPECT_EQ(study.tasks[i].seed, 7 + i % 2);
        EXPECT_EQ(study.tasks[i].dim, 30);
    }
}

TEST(ExperimentFile, RelativeAlphaCountsInTheThresholdOfEachWidth) {
    const Experiment study = parse("estimator = 'theory'\nwidth = [0.5, 1]\nalpha = '0.5x'\n");
    ASSERT_EQ(study.tasks.size(), 2U);
    EXPECT_NEAR(study.tasks[0].alpha, 0.5 * 0.1875, 1e-15);  // rho - rho^2/2 over 2
    EXPECT_NEAR(study.tasks[1].alpha, 0.5 * 0.25, 1e-15);
    const Experiment layers = parse(
        "estimator = 'theory'\nwidth = 0.5\nchannel = 'deep-softmax'\nlayers = [1, 2, 3]\nalpha = '0.5x'\n");
    ASSERT_EQ(layers.tasks.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(layers.tasks[i].alpha, 0.5 * 0.1875 * static_cast<double>(i + 1), 1e-15);
}

/// The limit of small width has no width: its threshold is in alpha/width, and a list of widths is one point.
TEST(ExperimentFile, SmallWidthHasNoWidth) {
    const Experiment study = parse(
        "width = [0.5, 1]\nalpha = '0.5x'\n[[run]]\nestimator = 'small-width'\n"
        "[[run]]\nestimator = 'theory'\n");
    ASSERT_EQ(study.tasks.size(), 3U);
    EXPECT_NEAR(study.tasks[0].alpha, 0.5 * 0.5, 1e-12);
    EXPECT_NEAR(study.tasks[1].alpha, 0.5 * 0.1875, 1e-12);
}

TEST(ExperimentFile, WhatIsAboveTheRunsHoldsForThoseThatHaveIt) {
    const Experiment study = parse(R"(
dim = 40
alpha = 0.1
channel = ["softmax", "linear"]
[[run]]
estimator = "theory"
[[run]]
estimator = "amp"
channel = "hardmax"
seeds = [5, 3]
)");
    ASSERT_EQ(study.tasks.size(), 4U);
    EXPECT_EQ(study.tasks[1].channel, "linear");
    EXPECT_EQ(study.tasks[2].channel, "hardmax");
    EXPECT_EQ(study.tasks[2].dim, 40);
    EXPECT_EQ(study.tasks[2].seed, 5U);
    EXPECT_EQ(study.tasks[3].seed, 3U);
}

TEST(ExperimentFile, ATaskThatComesTwiceIsDoneOnce) {
    const Experiment study = parse(R"(
[[run]]
estimator = "theory"
alpha = [0.1, 0.2]
[[run]]
estimator = "theory"
alpha = [0.2, 0.3]
)");
    ASSERT_EQ(study.tasks.size(), 3U);
    EXPECT_EQ(study.tasks[2].alpha, 0.3);
}

TEST(ExperimentFile, TheSpectrumCountsByItsContent) {
    const test::TemporaryFile one("1\n2\n"), copy("1\n2\n"), other("1\n3\n");
    const auto study = [](const test::TemporaryFile& file) {
        return parse("estimator = 'theory'\nprior = 'spectrum'\nspectrum = '" + file.path() +
                     "'\nalpha = 0.1\n");
    };
    EXPECT_EQ(key(study(one).tasks[0]), key(study(copy).tasks[0]));
    EXPECT_NE(key(study(one).tasks[0]), key(study(other).tasks[0]));
    Task task = study(one).tasks[0];
    task.spectrum = other.path();
    test::expect_invalid([&] { make_model(task); }, "with other content");
}

/// A text, and the one line that it must produce: file, line, column and message.
struct Mistake {
    const char* text;
    const char* complaint;
    friend std::ostream& operator<<(std::ostream& out, const Mistake& mistake) { return out << mistake.text; }
};

class ExperimentMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(ExperimentMistake, IsAnsweredWithLineAndColumn) {
    test::expect_invalid([] { parse(GetParam().text); }, GetParam().complaint);
}

INSTANTIATE_TEST_SUITE_P(
    All, ExperimentMistake,
    ::testing::Values(
        Mistake{"estimator = 'theory'\nalpah = 0.1\n",
                "study.toml:2:1: unknown key 'alpah'; known are name, run,"},
        Mistake{"[[run]]\nestimator = 'theory'\nalpha = 0.1\n  betta = 1\n",
                "study.toml:4:3: unknown key 'betta'; known are estimator,"},
        Mistake{"estimator = 'theory'\nalpha = 0.1\nwidth = true\n",
                "study.toml:3:9: width must be a number, got true"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\ndim = 10.5\n",
                "study.toml:3:7: dim must be a whole number, got the number 10.5"},
        Mistake{"estimator = 'amp'\nalpha = [0.1, 'x']\n",
                "study.toml:2:15: alpha must be a number, got the text 'x'"},
        Mistake{"estimator = 'amp'\nalpha = '0.2:0.1:5'\n",
                "study.toml:2:9: alpha must be increasing, got '0.2:0.1:5'"},
        Mistake{"estimator = 'amp'\nalpha = []\n",
                "study.toml:2:9: alpha must be a value or a list of values"},
        Mistake{"estimator = 'amp'\nalpha = -1\n",
                "study.toml:2:9: alpha must be non-negative and finite, got -1"},
        Mistake{"estimator = 'amp'\nalpha = nan\n", "study.toml:2:9: alpha must be non-negative and finite"},
        Mistake{"estimator = 'amp'\nalpha = [0.1, 0]\n",
                "study.toml:2:9: alpha of estimator amp must be positive, got 0"},
        Mistake{"estimator = 'gd'\nalpha = '0:1:3'\n",
                "study.toml:2:9: alpha of estimator gd must be positive, got 0"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\ndim = 1\n", "study.toml:3:7: dim must be at least 2, got 1"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\ndim = -7\n", "study.toml:3:7: dim must be a non-negative"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\ndim = 3000000000\n", "study.toml:3:7: dim must be at most"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\ndim = '10:11:3'\n",
                "study.toml:3:7: dim must be made of whole"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\ndamping = 1\n",
                "study.toml:3:11: damping must be below 1, got 1"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\nadaptive_damping = 1\n",
                "study.toml:3:20: adaptive_damping must be true or false, got the whole number 1"},
        Mistake{"estimator = 'gdd'\nalpha = 0.1\n",
                "study.toml:1:13: estimator must be one of theory, small-width, amp, gd, erm-theory, erm, "
                "got 'gdd'"},
        Mistake{"estimator = 'deep-amp'\nalpha = 0.1\n",
                "study.toml:1:13: estimator \"deep-amp\" is now written estimator = \"amp\" with channel = "
                "\"deep-softmax\""},
        Mistake{"estimator = 'amp'\nalpha = 0.1\nlayers = 2\n",
                "study.toml:3:10: layers is not a setting of estimator amp"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\nchannel = 'relu'\n",
                "study.toml:3:11: channel must be one of"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\nchannel = 'hardmax'\ntokens = 7\n",
                "study.toml:4:10: hardmax channel: tokens must be"},
        Mistake{"estimator = 'gd'\nalpha = 0.1\nchannel = 'hardmax'\n",
                "study.toml:3:11: channel of gradient descent must be one of linear, softmax"},
        Mistake{"estimator = 'gd'\nalpha = 0.1\nprior = 'wigner'\n",
                "study.toml:3:9: prior of gradient descent must be one of wishart"},
        Mistake{"estimator = 'small-width'\nalpha = 0.1\nprior = 'wigner'\n",
                "study.toml:3:9: prior is not a setting of estimator small-width"},
        Mistake{"estimator = 'theory'\nalpha = '0.5x'\nchannel = 'hardmax'\n",
                "study.toml:2:9: alpha must be absolute"},
        Mistake{"estimator = 'theory'\nalpha = 0.1\nwidth = '0.5x'\n",
                "study.toml:3:9: width must be made of numbers without x"},
        Mistake{"estimator = 'theory'\nalpha = 0.1\ndim = 50\n",
                "study.toml:3:7: dim is not a setting of estimator theory"},
        Mistake{"estimator = 'theory'\nalpha = 0.1\nseeds = 2\n",
                "study.toml:3:9: seeds is not a setting of estimator theory"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\nseeds = 0\n", "study.toml:3:9: seeds must be how many"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\nprior = 'wigner'\nwidth = 2\n",
                "study.toml:4:9: width is not a setting of estimator amp with prior wigner"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\nprior = 'spectrum'\n",
                "study.toml:3:9: prior spectrum needs a spectrum file"},
        Mistake{"estimator = 'amp'\nalpha = 0.1\nprior = 'spectrum'\nspectrum = 'nowhere.txt'\n",
                "study.toml:4:12: cannot read spectrum 'nowhere.txt': No such file"},
        Mistake{"estimator = 'amp'\n", "alpha is missing; a run needs estimator and alpha"},
        Mistake{"alpha = 0.1\n[[run]]\ndim = 30\n", "study.toml:2:1: estimator is missing"},
        Mistake{"run = 3\n", "study.toml:1:7: run must be written as [[run]], got the whole number 3"},
        Mistake{"name = 1\n", "study.toml:1:8: name must be text, got the whole number 1"},
        Mistake{"name = 'a/b'\n",
                "study.toml:1:8: name must be the name of a directory, in printable letters and "
                "without '/', got 'a/b'"},
        Mistake{"name = ''\n", "without '/', got ''"}, Mistake{"name = '..'\n", "without '/', got '..'"},
        Mistake{"name = \"a\\nb\"\n", "without '/', got 'a"}, Mistake{"estimator = \n", "study.toml:1:13: "},
        Mistake{"alpha = 1\nalpha = 2\n", "study.toml:2:"}, Mistake{"", "estimator is missing"}));

TEST(ExperimentFile, StudiesOfTooManyPointsAreRefused) {
    test::expect_invalid(
        [] { parse_experiment("estimator = \"amp\"\nalpha = 0.1\nseeds = 1000001\n", "s.toml"); },
        "s.toml:3:9: seeds must be how many");
    const std::string square = "estimator = \"theory\"\nalpha = \"0.1:1:4\"\nwidth = \"0.1:1:4\"\n";
    EXPECT_EQ(parse_experiment(square, "s.toml", {}, 16).tasks.size(), 16U);
    test::expect_invalid([&] { parse_experiment(square, "s.toml", {}, 15); },
                         "a study must have at most 15 points");
}

// A header without a name was an assertion of toml++ in debug builds; a text of several lines made a message of several.
TEST(ExperimentFile, MessagesHaveOneLine) {
    test::expect_invalid([] { parse_experiment("[= 1\n", "s.toml"); }, "s.toml:1:2: ");
    test::expect_invalid([] { parse_experiment("estimator = \"a\\nb\"\nalpha = 1\n", "s.toml"); },
                         "got 'a?b'");
    test::expect_invalid([] { parse_experiment("\"a\\nb\" = 1\n", "s.toml"); }, "unknown key 'a?b'");
}

TEST(ExperimentFile, TheoryMayHaveNoData) {
    EXPECT_EQ(parse("estimator = 'theory'\nalpha = 0\n").tasks[0].alpha, 0);
    EXPECT_EQ(parse("estimator = 'theory'\nwidth = 0.5\nalpha = '0x:1x:3'\n").tasks[0].alpha, 0);
    EXPECT_EQ(parse("estimator = 'small-width'\nalpha = '0:1:3'\n").tasks.size(), 3U);
}

TEST(Tasks, KeysTellApartWhatDecidesResultsAndNothingElse) {
    Task task;
    const std::string reference = key(task);
    std::set<std::string> keys{reference};
    for (const Setting& setting : setting_table()) {
        if (setting.member.index() != 2 || !applies(task, setting)) continue;  // every real number
        Task other = task;
        set(other, setting, std::get<double>(get(task, setting)) + 1e-15);
        EXPECT_TRUE(keys.insert(key(other)).second) << setting.name;
    }
    Task storage = task, seed = task;
    storage.token_storage = "regenerate";
    seed.seed = 1;
    EXPECT_EQ(key(storage), reference);  // the same bits
    EXPECT_NE(key(seed), reference);
    Task power = task;  // settings of a prior that the task does not have
    power.exponent = 2;
    power.cutoff = 0.1;
    EXPECT_EQ(key(power), reference);
    power.prior = "power-law";
    EXPECT_NE(canonical(power).find("\"exponent\":2.0"), std::string::npos) << canonical(power);
    EXPECT_NE(canonical(power).find("\"cutoff\":0.1"), std::string::npos) << canonical(power);
    Task descent =
        task;  // weight decay is stated unless it is 0: stores from before there was any stay valid
    descent.estimator = "gd";
    EXPECT_EQ(canonical(descent).find("weight_decay"), std::string::npos);
    const std::string without_decay = key(descent);
    descent.weight_decay = 0.1;
    EXPECT_NE(key(descent), without_decay);
    Task theory = task;
    theory.estimator = "theory";
    const std::string without_seed = key(theory);
    theory.seed = 1;
    EXPECT_EQ(key(theory), without_seed);
}

}  // namespace
}  // namespace bayesaim::experiments
