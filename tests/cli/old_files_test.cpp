// SPDX-License-Identifier: MIT
#include <filesystem>

#include <gtest/gtest.h>

#include "program.hpp"

namespace {

using cli::bayesaim;

/// Files of every release, which tests/cli/files/make wrote. What is promised of them stands in docs/stability.md.
class OldFiles : public testing::TestWithParam<std::string> {
  protected:
    OldFiles() {
        std::filesystem::copy(std::filesystem::path(BAYESAIM_SOURCE_DIR) / "tests/cli/files" / GetParam(),
                              place_.file("files"), std::filesystem::copy_options::recursive);
    }
    std::string file(const std::string& name) const { return place_.file("files/" + name); }

    const cli::Workplace place_;
};

std::vector<std::string> releases() {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(BAYESAIM_SOURCE_DIR) / "tests/cli/files"))
        if (entry.is_directory()) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

TEST_P(OldFiles, EstimatePredictsTheDataset) {
    const cli::Run run = bayesaim("predict " + file("estimate.h5") + " " + file("dataset.h5") +
                                  " --quiet --format json --output " + file("predictions.h5"));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const nlohmann::json point = run.json().at("points").at(0);
    EXPECT_EQ(point.at("samples"), 20);
    // What 0.1.0 printed.
    EXPECT_NEAR(point.at("generalization_error").get<double>(), 0.0726875132106235, 1e-12);
    EXPECT_NEAR(point.at("plugin_generalization_error").get<double>(), 0.07798240802291069, 1e-12);
}

TEST_P(OldFiles, FinishedStudyHasNothingToDo) {
    const cli::Run run =
        bayesaim("sweep " + file("study.toml") + " --quiet --format json --output " + file("study"));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const nlohmann::json report = run.json();
    EXPECT_EQ(report.at("done"), 2) << run.out;
    EXPECT_EQ(report.at("computed_now"), 0) << run.out;
}

TEST_P(OldFiles, ProvenanceIsRunAgain) {
    const cli::Run run = bayesaim("rerun " + file("study/provenance.json") +
                                  " --quiet --format json --output " + file("again"));
    // Bits may differ on another processor: exit code 3.
    EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 3) << run.err;
    EXPECT_EQ(run.json().at("compared"), 2) << run.out;
}

TEST_P(OldFiles, CheckpointsOfAnotherVersionAreRefusedInOneLine) {
    const std::string model =
        " --width 0.5 --alpha 0.2 --dim 10 --seed 1 --quiet --seeds 1 --checkpoint-every 1";
    const bool same_version = bayesaim("--version").out == GetParam() + "\n";
    for (const auto& [command, more] :
         std::map<std::string, std::string>{{"amp", "--iterations 3"},
                                            {"erm", "--iterations 3 --regularization 0.1"},
                                            {"gd", "--steps 3 --starts 1"}}) {
        std::string call = command;
        call += model;
        const cli::Run run = bayesaim(call + " " + more + " --resume --checkpoint " + file(command + ".h5"));
        if (same_version) {
            EXPECT_EQ(run.exit_code, 0) << run.err;
        } else {
            EXPECT_EQ(run.exit_code, 1);
            EXPECT_NE(run.err.find("bayesaim \"" + GetParam() + "\""), std::string::npos) << run.err;
            EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
        }
    }
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
    std::string name = "Version" + info.param;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Releases, OldFiles, testing::ValuesIn(releases()), test_name);

}  // namespace
