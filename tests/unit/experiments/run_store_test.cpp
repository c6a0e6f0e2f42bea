// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/run_store.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "bayesaim/core/files.hpp"
#include "bayesaim/experiments/results.hpp"

#include "support/expect_invalid.hpp"
#include "support/temporary_file.hpp"

namespace bayesaim::experiments {
namespace {

using test::TemporaryFile;
using ::testing::HasSubstr;

const std::string first = "0000000000000001", second = "0000000000000002";

std::string content(const TemporaryFile& file) { return read_whole("file", file.path()); }

void rewrite(const TemporaryFile& file, const std::string& text) {
    std::ofstream(file.path(), std::ios::binary) << text;
}

TEST(RunStore, RecordsAreThereWhenItIsOpenedAgain) {
    const TemporaryFile file("");
    {
        RunStore store(file.path());
        store.append(first, R"({"error": 0.5})");
        store.append(second, "two words");
        store.append(first, "newer");
    }
    const RunStore again(file.path());
    EXPECT_EQ(again.records().damaged, 0U);
    EXPECT_EQ(again.records().payloads,
              (std::map<std::string, std::string>{{first, "newer"}, {second, "two words"}}));
    EXPECT_EQ(read_records(file.path()).payloads, again.records().payloads);
}

/// At whatever byte a process is killed, earlier records are kept; the torn record can be written again.
TEST(RunStore, ATornRecordIsNoticedAtEveryByte) {
    const TemporaryFile file("");
    std::size_t whole = 0;
    {
        RunStore store(file.path());
        store.append(first, "kept");
        whole = content(file).size();
        store.append(second, "torn");
    }
    const std::string complete = content(file);
    for (std::size_t size = 0; size < complete.size(); ++size) {
        rewrite(file, complete.substr(0, size));
        EXPECT_EQ(read_records(file.path()).payloads.size(), size < whole ? 0U : 1U) << size;
        {
            RunStore store(file.path());
            EXPECT_FALSE(store.records().payloads.contains(second)) << size;
            store.append(first, "kept");
            store.append(second, "torn");
        }
        const StoredRecords records = read_records(file.path());
        EXPECT_EQ(records.payloads.size(), 2U) << size;
        EXPECT_EQ(records.damaged, 0U) << size;
    }
}

TEST(RunStore, AChangedByteMakesTheRecordVoidAndOnlyThat) {
    const TemporaryFile file("");
    {
        RunStore store(file.path());
        store.append(first, "0.125");
        store.append(second, "0.25");
    }
    std::string text = content(file);
    text[text.find("0.125") + 2] = '9';  // 0.925: a valid number
    rewrite(file, text);
    const RunStore store(file.path());
    EXPECT_EQ(store.records().damaged, 1U);
    EXPECT_FALSE(store.records().payloads.contains(first));
    EXPECT_EQ(store.records().payloads.at(second), "0.25");
}

TEST(RunStore, OneProcessAtATime) {
    const TemporaryFile file("");
    {
        const RunStore store(file.path());
        try {
            const RunStore other(file.path());
            ADD_FAILURE() << "opened twice";
        } catch (const std::runtime_error& error) {
            EXPECT_THAT(error.what(), HasSubstr("is in use by another process"));
            EXPECT_THAT(error.what(), HasSubstr(file.path()));
        }
        EXPECT_EQ(read_records(file.path()).payloads.size(), 0U);  // reading needs no lock
    }
    EXPECT_NO_THROW(RunStore(file.path()));
}

TEST(RunStore, ThreadsAppendWholeLines) {
    const TemporaryFile file("");
    {
        RunStore store(file.path());
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&store, t] {
                for (int i = 0; i < 50; ++i) {
                    store.append(fingerprint(std::to_string(1000 * t + i)), std::string(i, 'x'));
                }
            });
        }
    }
    const StoredRecords records = read_records(file.path());
    EXPECT_EQ(records.payloads.size(), 200U);
    EXPECT_EQ(records.damaged, 0U);
}

TEST(RunStore, LeavesOtherFilesAlone) {
    for (const char* text : {"precious data", "precious data\n", "bayesaim store 99\n"}) {
        const TemporaryFile file(text);
        test::expect_invalid([&] { RunStore(file.path()); }, "run store must be a file that begins with");
        EXPECT_EQ(content(file), text);
    }
    EXPECT_THROW(RunStore("/nowhere/runs.store"), std::runtime_error);
    test::expect_invalid([] { RunStore("/dev/full"); }, "run store must be a regular file");
}

/// A limit on file sizes cuts a write short, as a full disk does: half a record must not stay.
TEST(RunStore, AWriteCutShortLeavesTheRecordsBefore) {
    const TemporaryFile file("");
    RunStore store(file.path());
    store.append(first, "kept");
    const std::string before = content(file);
    rlimit old{};
    getrlimit(RLIMIT_FSIZE, &old);
    const rlimit small{before.size() + 20, old.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    std::string complaint;
    try {
        store.append(second, "too long for what is left");
    } catch (const std::runtime_error& error) {
        complaint = error.what();
    }
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(complaint, "could not write '" + file.path() + "': File too large");
    EXPECT_EQ(content(file), before);
    store.append(second, "now it fits");
    EXPECT_EQ(read_records(file.path()).payloads.at(second), "now it fits");
}

TEST(Fingerprint, IsFnv1aOf64Bits) {
    EXPECT_EQ(fingerprint(""), "cbf29ce484222325");
    EXPECT_EQ(fingerprint("foobar"), "85944171f73967e8");  // published test vector
}

// Their checksum is right, so that nothing tells them from records of ours but their content.
TEST(RunStore, RecordsOfAnotherProgramAreRefused) {
    const Experiment study = parse_experiment("estimator = \"theory\"\nalpha = 0.1\n", "s.toml");
    for (const char* payload : {"no JSON", "{}", R"({"outcome": 1})", "[]"}) {
        StoredRecords records;
        records.payloads[key(study.tasks[0])] = payload;
        test::expect_invalid([&] { points_of(study, records); },
                             fmt::format("must be a task with its outcome, got '{}'", payload));
        test::expect_invalid([&] { outcome_of(payload); }, "record of the run store must be");
    }
}

}  // namespace
}  // namespace bayesaim::experiments
