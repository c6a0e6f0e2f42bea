// SPDX-License-Identifier: MIT
#include "bayesaim/core/hdf5_file.hpp"

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/temporary_file.hpp"

namespace bayesaim {
namespace {

/// HDF5 itself crashes at the end of the program after a write that failed. A limit of the size of files, which begins
/// after the space was reserved, stands for a disk that fails.
TEST(Hdf5Writer, AfterAFailedWriteTheProgramGoesOnAndEnds) {
    const test::TemporaryFile file("old");
    const auto write = [&] {
        const std::vector<double> values(1 << 16, 1.0);
        Hdf5Writer out(file.path(), static_cast<std::ptrdiff_t>(values.size() * sizeof(double)));
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{100'000, 100'000};
        setrlimit(RLIMIT_FSIZE, &limit);
        std::string message = "none";
        try {
            out.write("values", {1, 256, 256}, values.data());
            out.finish({});
        } catch (const std::runtime_error& error) {
            message = error.what();
        }
        const std::string expected = "could not write '" + file.path() + "': File too large";
        if (message != expected) std::fprintf(stderr, "%s\n", message.c_str());
        return message == expected;
    };
    EXPECT_EXIT({ std::exit(write() ? 0 : 1); }, testing::ExitedWithCode(0), "");
    EXPECT_EQ(read_whole("text", file.path()), "old");
}

/// The space that was reserved is given back: the file is as long as its content.
TEST(Hdf5Writer, TheSameContentHasTheSameBytes) {
    const test::TemporaryFile one("old"), two("");
    const std::vector<double> values(64, 0.5);
    for (const auto& [file, reserved] : {std::pair(&one, 1 << 20), std::pair(&two, 512)}) {
        Hdf5Writer out(file->path(), reserved);
        out.write("values", {1, 8, 8}, values.data());
        out.finish({{"name", "x"}});
    }
    EXPECT_EQ(read_whole("file", one.path()), read_whole("file", two.path()));
    EXPECT_LT(std::filesystem::file_size(one.path()), 20'000U);
    const Hdf5Reader reader(one.path());
    EXPECT_TRUE(reader.has("values"));
}

}  // namespace
}  // namespace bayesaim
