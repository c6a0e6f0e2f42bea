// SPDX-License-Identifier: MIT
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

#include "hdf5_arrays.hpp"
#include "program.hpp"

/// The program under mpirun. Parts of Open MPI leak, and are gone from memory before their leaks could be told from ours.
namespace {

using cli::bayesaim;

/// More ranks than processors, and root may start them.
std::string mpirun(int ranks) {
    return "ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -s "
           "KILL 120 mpirun -q "
           "--oversubscribe -n " +
           std::to_string(ranks);
}

bool has_mpirun() { return std::system("command -v mpirun >/dev/null 2>&1") == 0; }

#define NEEDS_MPIRUN() \
    if (!has_mpirun()) GTEST_SKIP() << "mpirun is not installed"

/// A CSV table without its columns of seconds.
std::string without_seconds(const std::string& table) {
    std::istringstream lines(table);
    std::string line, result;
    std::vector<bool> keep;
    while (std::getline(lines, line)) {
        std::istringstream cells(line);
        std::string cell;
        for (std::size_t i = 0; std::getline(cells, cell, ','); ++i) {
            if (keep.size() <= i) keep.push_back(cell.find("seconds") == std::string::npos);
            if (keep[i]) result += cell + ',';
        }
        result += '\n';
    }
    return result;
}

/// Lines of our program, without those of mpirun.
std::size_t lines_of_ours(const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find("bayesaim: "); at != std::string::npos;
         at = text.find("bayesaim: ", at + 1))
        ++count;
    return count;
}

class SameBits : public testing::TestWithParam<const char*> {};

TEST_P(SameBits, OnAnyNumberOfRanks) {
    NEEDS_MPIRUN();
    const cli::Workplace place;
    const std::string record = place.file("record.csv"),
                      arguments =
                          std::string(GetParam()) + " --threads 1 --quiet --format csv --record " + record;
    const auto alone = bayesaim(arguments);
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    const std::string expected = without_seconds(alone.out), history = without_seconds(cli::read(record));
    ASSERT_GT(history.size(), 100U);
    for (const int ranks : {1, 2, 3, 4, 7}) {
        const auto run = bayesaim(arguments, mpirun(ranks));
        ASSERT_EQ(run.exit_code, 0) << run.err;
        EXPECT_EQ(without_seconds(run.out), expected) << ranks << " ranks";
        EXPECT_EQ(without_seconds(cli::read(record)), history) << ranks << " ranks";
    }
}

INSTANTIATE_TEST_SUITE_P(
    Ranks, SameBits,
    testing::Values(
        "amp --alpha 0.12 --width 0.5 --dim 60 --iterations 12 --test-samples 300",
        "amp --channel hardmax --tokens 3 --alpha 0.4 --width 0.5 --dim 40 --iterations 8",
        "amp --channel deep-softmax --layers 2 --width 0.5 --alpha 0.3 --dim 24 --iterations 4",
        "amp --attention cross --alpha 0.3 --width 0.5 --dim 50 --iterations 10",
        "amp --attention self --alpha 0.3 --width 0.5 --dim 40 --iterations 8 --precision float",
        "amp --alpha 0.2 --width 0.5 --dim 40 --learn width --iterations 10",
        "erm --alpha 0.2 --width 0.5 --dim 40 --regularization 0.05 --iterations 25",
        "gd --alpha 0.3 --width 0.5 --dim 40 --steps 30 --no-amp",
        "gd --alpha 0.3 --width 0.5 --dim 30 --steps 30 --starts 4 --divide samples --precision double",
        "gd --alpha 0.3 --width 0.5 --dim 30 --steps 30 --starts 9"));

TEST(Ranks, FitFromAFile) {
    NEEDS_MPIRUN();
    const cli::Workplace place;
    const std::string data = place.file("data.h5");
    ASSERT_EQ(bayesaim("generate --alpha 0.5 --width 0.5 --dim 40 --output " + data).exit_code, 0);
    const auto fit = [&](const std::string& launcher, const std::string& estimate) {
        return bayesaim(
            "fit " + data + " --width learn --threads 1 --quiet --format json --output " + estimate,
            launcher);
    };
    const std::string expected = place.file("alone.h5");
    const auto alone = fit("", expected);
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    for (const int ranks : {1, 2, 3, 4, 7}) {
        const std::string estimate = place.file("ranks.h5");
        const auto run = fit(mpirun(ranks), estimate);
        ASSERT_EQ(run.exit_code, 0) << run.err;
        EXPECT_EQ(run.json()["points"], alone.json()["points"]) << ranks << " ranks";
        EXPECT_EQ(cli::read_array(estimate, "weights"), cli::read_array(expected, "weights"))
            << ranks << " ranks";
    }
}

TEST(Ranks, AStudyHasTheSameBytes) {
    NEEDS_MPIRUN();
    const cli::Workplace place;
    const std::string study = place.write("study.toml",
                                          "width = [0.5, 1]\nalpha = [0.05, 0.1, 0.15]\n"
                                          "[[run]]\nestimator = \"theory\"\n"
                                          "[[run]]\nestimator = \"amp\"\ndim = 30\nseeds = 2\n");
    ASSERT_EQ(bayesaim("sweep " + study + " --quiet --output " + place.file("alone")).exit_code, 0);
    for (const int ranks : {1, 2, 3, 4, 7}) {
        const std::string directory = place.file("ranks" + std::to_string(ranks));
        const auto run =
            bayesaim("sweep " + study + " --quiet --threads 2 --output " + directory, mpirun(ranks));
        ASSERT_EQ(run.exit_code, 0) << run.err;
        for (const char* table : {"/results.csv", "/summary.csv"})
            EXPECT_EQ(cli::read(directory + table), cli::read(place.file("alone") + table));
    }
}

TEST(Ranks, CommandsThatDoNotDivideRunOnce) {
    NEEDS_MPIRUN();
    const auto run = bayesaim("theory --alpha 0.1 --format json", mpirun(3));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.json()["points"].size(), 1U);
}

TEST(Ranks, AMistakeIsToldOnce) {
    NEEDS_MPIRUN();
    const auto run = bayesaim("amp --alpha -1", mpirun(3));
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(lines_of_ours(run.err), 1U) << run.err;
}

TEST(Ranks, ProcessorsThatRoundDifferentlyAreRefused) {
    NEEDS_MPIRUN();
    const std::string program = BAYESAIM_PROGRAM, arguments = " amp --alpha 0.1 --dim 20 ";
    const auto run = bayesaim(arguments, "OPENBLAS_CORETYPE=Haswell " + mpirun(1) + " " + program +
                                             arguments + ": -n 1 -x OPENBLAS_CORETYPE=Sandybridge");
    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_NE(run.err.find("processors must be the same on all ranks"), std::string::npos) << run.err;
    EXPECT_EQ(lines_of_ours(run.err), 1U) << run.err;
}

TEST(Ranks, ARankThatMeetsABadValueTellsIt) {
    NEEDS_MPIRUN();
    const cli::Workplace place;
    const std::string data = place.file("data.h5");
    ASSERT_EQ(
        bayesaim("generate --channel linear --alpha 0.5 --width 0.5 --dim 40 --output " + data).exit_code, 0);
    cli::change_last_number(data, "outputs", std::nan(""));
    const auto run = bayesaim("fit " + data + " --quiet --output " + place.file("e.h5"), mpirun(3));
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_NE(run.err.find("rank 2 of 3: "), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("sample 799"), std::string::npos) << run.err;
    EXPECT_EQ(lines_of_ours(run.err), 1U) << run.err;
    EXPECT_FALSE(std::filesystem::exists(place.file("e.h5")));
}

/// Kills one of the ranks once the file exists. Returns when the job has ended.
void kill_a_rank(const std::string& arguments, int ranks, const std::string& file, int milliseconds) {
    const std::string mark = "marker=" + std::to_string(getpid());
    std::thread job([&] { bayesaim(arguments, mark + " " + mpirun(ranks)); });
    for (int i = 0; i < 3000 && !std::filesystem::exists(file); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    // The last rank of the job: its environment has the mark, and its name is that of the program.
    const std::string kill =
        "for p in $(pgrep -x bayesaim); do if tr '\\0' '\\n' < /proc/$p/environ 2>/dev/null | grep -q '^" +
        mark + "$'; then last=$p; fi; done; [ -z \"$last\" ] || kill -9 $last";
    if (std::system(kill.c_str()) != 0) ADD_FAILURE() << "could not kill";
    job.join();
}

TEST(Ranks, AKilledRankEndsTheJobAndTheCheckpointGoesOn) {
    NEEDS_MPIRUN();
    const cli::Workplace place;
    const std::string arguments =
        "amp --alpha 0.1,0.12 --width 0.5 --dim 80 --seeds 2 --threads 1 --quiet --format csv";
    const std::string expected = without_seconds(bayesaim(arguments).out);
    for (const int milliseconds : {0, 100}) {
        const std::string file = place.file("c" + std::to_string(milliseconds) + ".h5"),
                          with = arguments + " --checkpoint-every 3 --checkpoint " + file;
        kill_a_rank(with, 3, file, milliseconds);
        const auto resumed = bayesaim(with + " --resume", mpirun(2));
        ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
        EXPECT_EQ(without_seconds(resumed.out), expected);
    }
}

TEST(Ranks, AKilledRankLosesNoPointOfAStudy) {
    NEEDS_MPIRUN();
    const cli::Workplace place;
    const std::string study = place.write("study.toml",
                                          "[[run]]\nestimator = \"amp\"\nalpha = [0.1, 0.12, 0.14]\n"
                                          "width = 0.5\ndim = 60\nseeds = 6\n");
    ASSERT_EQ(bayesaim("sweep " + study + " --quiet --output " + place.file("alone")).exit_code, 0);
    const std::string directory = place.file("killed"),
                      sweep = "sweep " + study + " --quiet --threads 1 --output " + directory;
    kill_a_rank(sweep, 3, directory + "/runs.store", 200);
    const auto again = bayesaim(sweep, mpirun(2));
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(cli::read(directory + "/results.csv"), cli::read(place.file("alone") + "/results.csv"));
}

TEST(DryRun, EstimatesMemoryAndTimeWithoutComputing) {
    for (const char* arguments :
         {"amp --alpha 0.05,0.1 --width 0.5 --dim 300", "gd --alpha 0.05,0.1 --width 0.5 --dim 100"}) {
        const auto run = bayesaim(std::string(arguments) + " --dry-run --format json");
        ASSERT_EQ(run.exit_code, 0) << run.err;
        const auto points = run.json()["points"];
        ASSERT_EQ(points.size(), 2U);
        for (const auto& point : points) {
            EXPECT_GT(point["estimated_bytes"].get<double>(), 1e6);
            EXPECT_GT(point["estimated_seconds"].get<double>(), 0);
            EXPECT_EQ(point["ranks"], 1);
        }
        // Twice the samples: twice the products, and more memory.
        EXPECT_NEAR(points[1]["operations_per_iteration"].get<double>() /
                        points[0]["operations_per_iteration"].get<double>(),
                    2, 1e-9);
        EXPECT_GT(points[1]["estimated_bytes"], points[0]["estimated_bytes"]);
    }
}

TEST(DryRun, RanksShareTheMemory) {
    NEEDS_MPIRUN();
    const std::string arguments = "amp --alpha 1 --width 0.5 --dim 200 --threads 1 --dry-run --format json";
    const double alone = bayesaim(arguments).json()["points"][0]["estimated_bytes"],
                 shared = bayesaim(arguments, mpirun(2)).json()["points"][0]["estimated_bytes"];
    EXPECT_LT(shared, 0.7 * alone);
}

}  // namespace
