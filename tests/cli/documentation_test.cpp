// SPDX-License-Identifier: MIT
// Manual pages and completions, compared with --help, which CLI11 prints without us.
#include <map>
#include <regex>
#include <set>

#include "cli/program.hpp"

namespace {

using Words = std::set<std::string>;

Words matches(const std::string& text, const std::string& pattern) {
    Words found;
    const std::regex expression(pattern, std::regex::multiline);
    for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match)
        found.insert((*match)[1]);
    return found;
}

Words commands_of_help() {
    const std::string help = cli::bayesaim("--help").out;
    return matches(help.substr(help.find("Subcommands:")), "^  ([a-z]+)  ");
}

Words options_of_help(const std::string& command) {
    Words options;
    for (const std::string& names : matches(cli::bayesaim(command + " --help").out, "^  (-[-a-z0-9,]+)")) {
        for (const std::string& name : matches(names, "(--[-a-z0-9]+)")) options.insert(name);
    }
    return options;
}

/// The files, written once for all tests.
class Documentation : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        place_ = std::make_unique<cli::Workplace>();
        const cli::Run run = cli::bayesaim("documentation " + place_->file("docs"));
        ASSERT_EQ(run.exit_code, 0) << run.err;
    }
    static void TearDownTestSuite() { place_.reset(); }

    static std::string file(const std::string& name) { return place_->file("docs/" + name); }
    static std::string page(const std::string& name) { return cli::read(file("man/" + name + ".1")); }

    static std::string shell(const std::string& script) {
        const std::string out = place_->file("out");
        const std::string run = "bash " + place_->write("script", script) + " >" + out + " 2>&1";
        EXPECT_EQ(std::system(run.c_str()), 0) << cli::read(out);
        return cli::read(out);
    }
    /// What a Tab offers after these words; "<default>" and "<dirnames>" stand for files and folders.
    static Words offers(const std::string& words) {
        const std::string said = shell(
            "source " + file("bash/bayesaim") + "\ncompopt() { echo \"<$2>\"; }\nCOMP_WORDS=(bayesaim " +
            words +
            ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_bayesaim\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
        return matches(said, "^(.+)$");
    }

  private:
    static inline std::unique_ptr<cli::Workplace> place_;
};

TEST_F(Documentation, PagesHaveEveryCommandAndEveryOption) {
    const Words commands = commands_of_help();
    ASSERT_GE(commands.size(), 18U);
    const std::string general = page("bayesaim");
    for (const std::string& command : commands) {
        EXPECT_NE(general.find("\\fB" + command + "\\fR\n"), std::string::npos) << command;
        const std::string text = page("bayesaim-" + command);
        const Words options = options_of_help(command);
        ASSERT_GE(options.size(), 5U) << command;
        Words on_page;
        for (std::string name : matches(text, "^(\\\\fB(?:\\\\-.*))$")) {
            name = std::regex_replace(name.substr(0, name.find("\\fI")), std::regex("\\\\-"), "-");
            for (const std::string& option : matches(name, "(--[-a-z0-9]+)")) on_page.insert(option);
        }
        EXPECT_EQ(on_page, options) << command;
    }
}

TEST_F(Documentation, PagesHaveArgumentsDefaultsAndExamples) {
    const std::string predict = page("bayesaim-predict");
    EXPECT_NE(predict.find("[\\fIOPTIONS\\fR] \\fIestimate\\fR \\fIfile\\fR\n"), std::string::npos);
    const std::string theory = page("bayesaim-theory");
    EXPECT_NE(theory.find("Default: softmax.\n"), std::string::npos);
    EXPECT_NE(theory.find(".TP\n\\fBdeep\\-softmax\\fR\n"),
              std::string::npos);  // a value, with what it means
    EXPECT_NE(theory.find(".EX\n  bayesaim theory \\-\\-width 0.5"), std::string::npos);
    EXPECT_NE(page("bayesaim-merge").find("\\fIDIRECTORY\\fR..."), std::string::npos);
}

TEST_F(Documentation, BashOffersEveryCommandAndEveryOption) {
    const Words commands = commands_of_help();
    EXPECT_EQ(offers("''"), commands);
    EXPECT_EQ(offers("-"), (Words{"--help", "--version"}));
    for (const std::string& command : commands)
        EXPECT_EQ(offers(command + " --"), options_of_help(command)) << command;
}

TEST_F(Documentation, BashOffersValuesFilesAndFolders) {
    EXPECT_EQ(offers("th"), (Words{"theory", "threshold"}));
    EXPECT_EQ(offers("theory --format ''"), (Words{"table", "csv", "json"}));
    EXPECT_EQ(offers("theory --format = c"), Words{"csv"});  // --format=c
    EXPECT_EQ(offers("theory --format ="), (Words{"table", "csv", "json"}));
    EXPECT_EQ(offers("gd --channel ''"), (Words{"linear", "softmax"}));
    EXPECT_EQ(offers("theory --channel har"), (Words{"hardmax", "hardmax-sampled", "hardmax-as-printed"}));
    EXPECT_TRUE(offers("fit data.h5 --prior ''").contains("learn"));
    EXPECT_FALSE(offers("theory --prior ''").contains("learn"));
    EXPECT_TRUE(offers("figure ''").contains("softmax-widths"));
    EXPECT_EQ(offers("theory --alpha ''"), Words{});  // a number: nothing to offer, least of all files
    EXPECT_EQ(offers("theory --plot ''"), Words{"<default>"});
    EXPECT_EQ(offers("sweep ''"), Words{"<default>"});
    EXPECT_EQ(offers("predict estimate.h5 ''"), Words{"<default>"});
    EXPECT_EQ(offers("merge one two ''"), Words{"<dirnames>"});
    EXPECT_EQ(offers("sweep study.toml --output ''"), Words{"<dirnames>"});
}

TEST_F(Documentation, BashOffersAnOptionOnce) {
    const Words rest = offers("predict estimate.h5 new.h5 --quiet --format csv ''");
    EXPECT_TRUE(rest.contains("--output"));
    EXPECT_FALSE(rest.contains("--quiet"));
    EXPECT_FALSE(rest.contains("--format"));
}

/// The message about a wrong value lists the right ones: completion offers these, no more and no fewer.
TEST_F(Documentation, ValuesAreThoseThatTheProgramTakes) {
    const std::map<std::string, std::string> least = {
        {"theory", "--alpha 0.1"},
        {"threshold", ""},
        {"phase", "--alpha 0.1 --width 0.5"},
        {"samples", "--target-error 0.1"},
        {"amp", "--alpha 0.1 --dim 4"},
        {"gd", "--alpha 0.1 --dim 4"},
        {"erm", "--alpha 0.1 --dim 4 --regularization 0.1"},
        {"spectrum", "--noise-variance 1"},
        {"denoise", "--noise-variance 1 --dim 4"},
        {"generate", "--alpha 0.1 --dim 4 --output " + file("new.h5")},
        {"fit", "/dev/null --output " + file("new.h5")},
        {"plot", "/dev/null"}};
    const std::map<std::string, std::string> also = {{"--loss", " --estimator erm --regularization 0.1"},
                                                     {"--penalty", " --estimator erm --regularization 0.1"}};
    const Words free = {// a number, or this word; or a list of words; or a name that the run directory has
                        "--width", "--beta", "--label-noise", "--regularization", "--learn", "--x", "--by",
                        // the message is about the file, or about all channels
                        "fit --channel", "fit --prior", "gd --channel", "erm --channel", "phase --channel",
                        "spectrum --channel"};
    std::size_t checked = 0;
    for (const auto& [command, arguments] : least) {
        for (const std::string& option : options_of_help(command)) {
            const std::string known =
                shell("source " + file("bash/bayesaim") + "\n_bayesaim_value " + command + " " + option);
            if (!known.starts_with("values ") || free.contains(option) ||
                free.contains(command + " " + option))
                continue;
            std::string values = known.substr(7, known.find('\n') - 7);
            values = std::regex_replace(values, std::regex(" "), ", ");
            const bool trained = also.contains(option) && command != "erm";
            std::string more = trained ? also.at(option) : "";
            if (trained && command == "threshold") more = " --estimator erm";  // for all strengths
            const cli::Run run = cli::bayesaim(command + " " + arguments + more + " " + option + " nonsense");
            EXPECT_EQ(run.exit_code, 1) << command << " " << option;
            EXPECT_NE(run.err.find(option + " must be one of " + values + ", got 'nonsense'"),
                      std::string::npos)
                << command << " " << option << ": " << values << "\n"
                << run.err;
            ++checked;
        }
    }
    EXPECT_GE(checked, 50U);
}

TEST_F(Documentation, ZshHasEveryCommandAndEveryOption) {
    const std::string text = cli::read(file("zsh/_bayesaim"));
    EXPECT_TRUE(text.starts_with("#compdef bayesaim\n"));
    EXPECT_EQ(matches(text, "^ {16}([a-z]+)\\)$"), commands_of_help());
    EXPECT_EQ(matches(text, "^ {16}'([a-z]+):"), commands_of_help());
    for (const std::string& command : commands_of_help()) {
        const std::size_t begin = text.find("\n                " + command + ")\n"),
                          end = text.find(" ;;", begin);
        Words options = matches(text.substr(begin, end - begin), "'(--[-a-z0-9]+)");
        options.insert("--help");  // stands in braces with -h
        EXPECT_EQ(options, options_of_help(command)) << command;
    }
    if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "the syntax was not checked: no zsh";
    EXPECT_EQ(std::system(("zsh -n " + file("zsh/_bayesaim")).c_str()), 0);
}

TEST_F(Documentation, IsACommandThatNobodySees) {
    EXPECT_FALSE(commands_of_help().contains("documentation"));
    cli::expect_bad_usage({"dokumentation", "command must be one of theory, threshold"});
    EXPECT_EQ(cli::bayesaim("dokumentation").err.find("documentation"), std::string::npos);
    cli::expect_bad_usage({"documentation /dev/null/none", "/dev/null/none"});
}

}  // namespace
