// SPDX-License-Identifier: MIT
#include "bayesaim/core/files.hpp"

#include <stdexcept>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/expect_invalid.hpp"
#include "support/temporary_file.hpp"

namespace bayesaim {
namespace {

using test::expect_invalid;
using test::TemporaryFile;

/// What write_whole complains of, or nothing.
std::string complaint(const std::filesystem::path& file) {
    try {
        write_whole(file, "text");
    } catch (const std::runtime_error& error) {
        return error.what();
    }
    return "";
}

TEST(Files, WhatWasWrittenIsRead) {
    const TemporaryFile file("old");
    const std::string text("new\0\r\n", 6);
    write_whole(file.path(), text);
    EXPECT_EQ(read_whole("text", file.path()), text);
}

/// Writing replaces a file by renaming; a link, a pipe or a device must stay what it is.
TEST(Files, LinksAndPipesAreWrittenThrough) {
    const TemporaryFile file("old");
    const std::filesystem::path link = file.path() + ".link", pipe = file.path() + ".pipe";
    std::filesystem::create_symlink(file.path(), link);
    write_whole(link, "new");
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(read_whole("text", file.path()), "new");
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
    write_whole(pipe, "text");
    char text[8]{};
    EXPECT_EQ(read(reader, text, sizeof text), 4);
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));
    close(reader);
    std::filesystem::remove(link);
    std::filesystem::remove(pipe);
}

TEST(Files, ThatCannotBeReadAreNamedWithTheReason) {
    const std::string folder = ::testing::TempDir();
    expect_invalid([] { read_whole("study", "/nowhere/study.toml"); },
                   "cannot read study '/nowhere/study.toml': No such file or directory");
    expect_invalid([&] { read_whole("study", folder); },
                   "cannot read study '" + folder + "': Is a directory");
    expect_invalid([&] { check_readable("dataset", folder); }, "Is a directory");
    const TemporaryFile file("text");
    expect_invalid([&] { check_readable("dataset", file.path() + "/below"); }, "Not a directory");
    EXPECT_NO_THROW(check_readable("dataset", file.path()));
}

TEST(Files, ThatCannotBeWrittenAreNamedWithTheReason) {
    EXPECT_EQ(complaint("/nowhere/a.csv"), "could not write '/nowhere/a.csv': No such file or directory");
    const TemporaryFile file("text");
    const std::string below = file.path() + "/a.csv";
    EXPECT_EQ(complaint(below), "could not write '" + below + "': Not a directory");
}

}  // namespace
}  // namespace bayesaim
