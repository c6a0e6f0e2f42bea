// SPDX-License-Identifier: MIT
#include "bayesaim/core/files.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/// A killed process leaves its temporary file; the next writer of the same file removes it, and no other.
TEST(Files, WhatAKilledWriterLeftIsRemoved) {
    const TemporaryFile file("old");
    const pid_t child = fork();
    if (child == 0) {
        const PartialFile partial(file.path());
        kill(getpid(), SIGKILL);
    }
    const int sleeper = fork();  // a process that lives
    if (sleeper == 0) {
        const PartialFile partial(file.path());
        while (true) pause();
    }
    const std::filesystem::path folder = std::filesystem::path(file.path()).parent_path();
    const auto partials = [&] {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder)) {
            const std::string name = entry.path().string();
            if (name.starts_with(file.path()) && name.ends_with(".part")) names.push_back(name);
        }
        return names;
    };
    waitpid(child, nullptr, 0);  // until then the process is known
    const std::string of_sleeper = '.' + std::to_string(sleeper) + ".part";
    const auto sleeps = [&] {
        return std::ranges::any_of(partials(), [&](const auto& name) { return name.ends_with(of_sleeper); });
    };
    for (int i = 0; i < 3000 && !sleeps(); ++i) usleep(10'000);
    write_whole(file.path(), "new");
    ASSERT_EQ(partials().size(), 1U);
    EXPECT_TRUE(sleeps());
    kill(sleeper, SIGKILL);
    waitpid(sleeper, nullptr, 0);
    write_whole(file.path(), "newer");
    EXPECT_EQ(partials().size(), 0U);
    EXPECT_EQ(read_whole("text", file.path()), "newer");
}

/// The temporary file of another machine may still be written; after a day it is not.
TEST(Files, OldTemporaryFilesOfOtherMachinesAreRemoved) {
    const TemporaryFile file("old");
    const std::filesystem::path recent = file.path() + ".another.7.part",
                                old = file.path() + ".another.8.part", other = file.path() + ".part";
    for (const auto& path : {recent, old, other}) write_whole(path, "part");
    for (const auto& path : {old, other})
        last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
    write_whole(file.path(), "new");
    EXPECT_TRUE(exists(recent));
    EXPECT_FALSE(exists(old));
    EXPECT_TRUE(exists(other));  // not named by us
    std::filesystem::remove(recent);
    std::filesystem::remove(other);
}

TEST(Files, ADeviceIsNeverReplaced) {
    try {
        const PartialFile partial("/dev/null");
        FAIL() << "a partial file of a device";
    } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), "could not write '/dev/null': it must be a regular file");
    }
    EXPECT_TRUE(is_special("/dev/null"));
    EXPECT_FALSE(is_special(::testing::TempDir()));
    EXPECT_EQ(complaint("/dev/full"), "could not write '/dev/full': No space left on device");
    EXPECT_EQ(complaint(::testing::TempDir()),
              "could not write '" + ::testing::TempDir() + "': Is a directory");
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
