// SPDX-License-Identifier: MIT
#pragma once
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace bayesaim::test {

/// A file with the given content, removed at the end of the scope.
class TemporaryFile {
  public:
    explicit TemporaryFile(const std::string& content) {
        static std::atomic<int> count = 0;
        path_ = std::filesystem::path(::testing::TempDir()) /
                ("bayesaim_" + std::to_string(::getpid()) + "_" + std::to_string(count++) + ".txt");
        std::ofstream(path_, std::ios::binary) << content;
    }
    ~TemporaryFile() {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    std::string path() const { return path_.string(); }

  private:
    std::filesystem::path path_;
};

}  // namespace bayesaim::test
