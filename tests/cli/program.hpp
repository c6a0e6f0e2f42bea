// SPDX-License-Identifier: MIT
#pragma once
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

/// The program as a user runs it, through a shell.
namespace cli {

struct Run {
    int exit_code = -1;
    std::string out, err;
    nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// A directory of its own for one test, removed at the end.
class Workplace {
  public:
    Workplace() {
        std::string pattern = (std::filesystem::temp_directory_path() / "bayesaim_test_XXXXXX").string();
        path_ = mkdtemp(pattern.data());
    }
    ~Workplace() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Workplace(const Workplace&) = delete;
    Workplace& operator=(const Workplace&) = delete;

    std::string file(const std::string& name) const { return (path_ / name).string(); }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(path_ / name) << text;
        return file(name);
    }
    std::size_t file_count() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
    }

  private:
    std::filesystem::path path_;
};

inline std::string read(const std::string& file) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

inline Run bayesaim(const std::string& arguments, const std::string& before = "") {
    const Workplace place;
    const std::string out = place.file("out"), err = place.file("err");
    const int status = std::system(
        (before + " " + std::string(BAYESAIM_PROGRAM) + " " + arguments + " >" + out + " 2>" + err).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(out), read(err)};
}

/// Ctrl-C after some seconds.
inline Run bayesaim_interrupted(const std::string& arguments, const std::string& seconds) {
    return bayesaim(arguments, "timeout --preserve-status -s INT " + seconds);
}

/// A call that must fail, and a part of the one line that it must print.
struct BadCall {
    const char* arguments;
    const char* complaint;
    friend std::ostream& operator<<(std::ostream& out, const BadCall& call) { return out << call.arguments; }
};

/// Bad usage gives one line on standard error, nothing on standard output and exit code 1.
inline void expect_bad_usage(const BadCall& call) {
    const Run run = bayesaim(call.arguments);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find(call.complaint), std::string::npos) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
}

}  // namespace cli
