// SPDX-License-Identifier: MIT
// Studies as a user runs them: killed, resumed, cut into shards, on full disks.
#include <chrono>
#include <csignal>
#include <random>
#include <regex>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "program.hpp"

using cli::bayesaim;
using cli::read;
using cli::Workplace;

namespace {

/// About a second of work in 38 points, so that it can be killed at many moments.
constexpr const char* study = R"(
width = 0.5
[[run]]
estimator = "theory"
alpha = "0.1x:1.1x:8"
[[run]]
estimator = "amp"
alpha = [0.1, 0.13]
dim = 40
seeds = 15
max_iterations = 1000
)";

/// Starts the program and leaves it running.
pid_t start(const std::vector<std::string>& arguments) {
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        dup2(nowhere, STDOUT_FILENO);
        dup2(nowhere, STDERR_FILENO);
        std::vector<char*> words{const_cast<char*>(BAYESAIM_PROGRAM)};
        for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
        words.push_back(nullptr);
        execv(BAYESAIM_PROGRAM, words.data());
        _exit(127);
    }
    return child;
}

int exit_code_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Lines of a file; 0 if it does not exist yet.
std::size_t lines(const std::string& file) {
    const std::string text = read(file);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Waits until the store has this many records (it has one line more).
void wait_for_records(const std::string& directory, std::size_t records) {
    for (int i = 0; i < 20'000 && lines(directory + "/runs.store") < records + 1; ++i) usleep(10'000);
    ASSERT_GE(lines(directory + "/runs.store"), records + 1);
}

std::string sweep(const std::string& file, const std::string& directory) {
    return "sweep " + file + " --quiet --output " + directory + ' ';
}

/// An AMP run that goes on for hours after its first points.
std::string long_study(const Workplace& place) {
    return place.write("long.toml", "estimator = 'amp'\nwidth = 0.5\nalpha = 0.1\ndim = 100\nseeds = 2000\n");
}

TEST(SweepCommand, KilledAtRandomMomentsItEndsWithTheSameBytes) {
    const Workplace place;
    const std::string file = place.write("study.toml", study), whole = place.file("whole"),
                      torn = place.file("torn");
    const auto reference = bayesaim(sweep(file, whole));
    ASSERT_EQ(reference.exit_code, 0) << reference.err;
    std::mt19937 random(1);
    int killed = 0;
    for (int i = 0; i < 12; ++i) {
        const std::size_t before = lines(torn + "/runs.store");
        const pid_t child = start({"sweep", file, "--quiet", "--output", torn});
        // The first processes may die before they finish a point; later ones finish some on any machine.
        if (i >= 4 && before < 38) wait_for_records(torn, before);
        usleep(std::uniform_int_distribution<unsigned>(0, 60'000)(random));
        kill(child, SIGKILL);
        if (exit_code_of(child) < 0) ++killed;
    }
    EXPECT_GT(killed, 0);
    // A half-written record, which no timing is sure to produce.
    const std::string store = torn + "/runs.store";
    ASSERT_GE(lines(store), 2U);
    const std::string text = read(store);
    std::filesystem::resize_file(store, text.size() - 7);
    const auto last = bayesaim("sweep " + file + " --format json --output " + torn);
    ASSERT_EQ(last.exit_code, 0) << last.err;
    EXPECT_NE(last.err.find("damaged record"), std::string::npos);
    EXPECT_GE(last.json()["computed_now"].get<int>(), 1);  // the half-written record at least
    for (const char* name : {"/results.csv", "/summary.csv"}) {
        EXPECT_EQ(read(torn + name), read(whole + name)) << name;
    }
    EXPECT_EQ(lines(whole + "/results.csv"), 39U);
    EXPECT_EQ(lines(store), 39U);
    std::size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(torn)) ++files;
    EXPECT_EQ(files, 4U);  // no partial file is left
}

TEST(SweepCommand, ASecondRunOnlyDoesWhatIsNew) {
    const Workplace place;
    const std::string directory = place.file("out");
    const std::string theory = "name = 'study'\nestimator = 'theory'\n";
    const std::string some = place.write("a.toml", theory + "alpha = [0.1, 0.2]\n"),
                      more = place.write("b.toml", theory + "alpha = [0.1, 0.15, 0.2]\n");
    EXPECT_EQ(bayesaim(sweep(some, directory) + "--format json").json()["computed_now"], 2);
    EXPECT_EQ(bayesaim(sweep(some, directory) + "--format json").json()["computed_now"], 0);
    const auto version = bayesaim("sweep " + more + " --format json --output " + directory);
    EXPECT_EQ(version.json()["computed_now"], 1);
    EXPECT_NE(version.err.find("was made by another version of the study; its finished points are kept"),
              std::string::npos)
        << version.err;
    EXPECT_EQ(lines(directory + "/results.csv"), 4U);
}

TEST(SweepCommand, AnotherStudyInTheSameDirectoryIsRefused) {
    const Workplace place;
    const std::string directory = place.file("out");
    const std::string one = place.write("one.toml", "estimator = 'theory'\nalpha = 0.1\n"),
                      two = place.write("two.toml", "estimator = 'theory'\nalpha = 0.2\n");
    ASSERT_EQ(bayesaim(sweep(one, directory)).exit_code, 0);
    const std::string results = read(directory + "/results.csv");
    const std::string message = "run directory must be new or that of the study 'two', got '" + directory +
                                "', which holds the study 'one'";
    cli::expect_bad_usage({("sweep " + two + " --output " + directory).c_str(), message.c_str()});
    const std::string same_name =
        place.write("same.toml", "name = 'one'\nestimator = 'theory'\nalpha = 0.2\n");
    cli::expect_bad_usage({("sweep " + same_name + " --output " + directory).c_str(),
                           "which holds another study of this name"});
    EXPECT_EQ(read(directory + "/results.csv"), results);
    EXPECT_EQ(bayesaim(sweep(one, directory)).exit_code, 0);
}

TEST(SweepCommand, PointsThatDidNotConvergeAreCountedAndNoFailure) {
    const Workplace place;
    const std::string directory = place.file("out");
    const std::string file =
        place.write("study.toml",
                    "estimator = 'amp'\nwidth = 0.5\nalpha = [0.1, 0.12]\ndim = 20\nseeds = 2\n"
                    "max_iterations = 2\n");
    const std::string loud = "sweep " + file + " --output " + directory;
    const auto run = bayesaim(loud + " --format json");
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_EQ(run.json()["not_converged"], 4);
    EXPECT_NE(run.err.find("bayesaim: 4 of 4 points did not converge; the first: amp, alpha 0.1, width 0.5, "
                           "seed 0 (iteration limit); with --strict this is exit code 2\n"),
              std::string::npos)
        << run.err;
    EXPECT_EQ(bayesaim(loud + " --strict").exit_code, 2);
    const auto quiet = bayesaim(loud + " --quiet");
    EXPECT_EQ(quiet.exit_code, 0);
    EXPECT_EQ(quiet.err, "");
    const auto rerun = bayesaim("rerun " + directory + "/provenance.json");
    EXPECT_EQ(rerun.exit_code, 0) << rerun.err;
    EXPECT_NE(rerun.err.find("4 of 4 points did not converge"), std::string::npos) << rerun.err;
    const auto merge = bayesaim("merge " + directory + " --output " + place.file("merged"));
    EXPECT_EQ(merge.exit_code, 0) << merge.err;
    EXPECT_NE(merge.err.find("4 of 4 points did not converge"), std::string::npos) << merge.err;
}

TEST(SweepCommand, ALogBeginsWithVersionHostThreadsAndTime) {
    const Workplace place;
    const std::string file = place.write("study.toml", "estimator = 'theory'\nalpha = 0.1\n");
    const auto run = bayesaim("sweep " + file + " --threads 1 --output " + place.file("out"));
    ASSERT_EQ(run.exit_code, 0);
    EXPECT_TRUE(std::regex_match(
        run.err, std::regex("bayesaim: version [0-9.]+, commit [0-9a-z+]+, host [^ ]+, 1 thread, "
                            "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z\n")))
        << run.err;
}

TEST(SweepCommand, ResultsAreThoseOfTheOtherCommandsAndNotOfTheThreads) {
    const Workplace place;
    const std::string file = place.write("study.toml", study), one = place.file("one"),
                      two = place.file("two");
    ASSERT_EQ(bayesaim(sweep(file, one) + "--threads 1").exit_code, 0);
    ASSERT_EQ(bayesaim(sweep(file, two) + "--threads 3").exit_code, 0);
    EXPECT_EQ(read(one + "/results.csv"), read(two + "/results.csv"));
    const auto amp =
        bayesaim("amp --width 0.5 --alpha 0.1 --dim 40 --seeds 15 --iterations 1000 --format csv");
    const std::string table = amp.out.substr(amp.out.find('\n') + 1);  // alpha,dim,seeds,mean,...
    const std::string means = table.substr(table.find(",15,") + 4, 30);
    EXPECT_NE(read(one + "/summary.csv").find(means), std::string::npos) << means;
}

TEST(SweepCommand, GradientDescentIsThatOfTheCommand) {
    for (const auto& [setting, option] :
         {std::pair{"", ""},
          {"attention = 'cross'\nkey_tokens = 3\n", "--attention cross --key-tokens 3 "},
          {"attention = 'masked'\ntokens = 3\nprior = 'bilinear'\n", "--attention masked --tokens 3 "}}) {
        const Workplace place;
        const std::string file = place.write(
            "gd.toml", std::string("estimator = 'gd'\nalpha = 0.2\nwidth = 0.5\ndim = 20\nsteps = "
                                   "50\nstarts = 3\nprecision = 'float'\n") +
                           setting);
        const auto run = bayesaim(sweep(file, place.file("out")));
        ASSERT_EQ(run.exit_code, 0) << run.err;
        const auto point =
            bayesaim(
                std::string("gd --alpha 0.2 --width 0.5 --dim 20 --steps 50 --starts 3 --precision float "
                            "--no-amp --format json ") +
                option)
                .json()["points"][0];
        const auto stored =
            nlohmann::json::parse(read(place.file("out") + "/provenance.json"))["points"][0]["values"];
        EXPECT_EQ(stored["error"], point["mean_error"]) << option;
        EXPECT_EQ(stored["averaged_error"], point["averaged_error"]) << option;
    }
}

TEST(SweepCommand, ShardsMergeToTheUnshardedRun) {
    const Workplace place;
    const std::string file = place.write("study.toml", study), whole = place.file("whole"),
                      merged = place.file("merged");
    ASSERT_EQ(bayesaim(sweep(file, whole)).exit_code, 0);
    std::string parts;
    for (const char* shard : {"1/3", "2/3", "3/3"}) {
        const std::string directory = place.file(std::string("part") + shard[0]);
        ASSERT_EQ(bayesaim(sweep(file, directory) + "--shard " + shard).exit_code, 0);
        EXPECT_LT(lines(directory + "/results.csv"), 15U);  // a third of 38
        if (shard[0] == '3') {
            const auto partial =
                bayesaim("merge " + parts + " --format json --output " + place.file("partial"));
            EXPECT_EQ(partial.exit_code, 2);
            EXPECT_EQ(partial.json()["missing"], 12);
            EXPECT_NE(partial.err.find("12 of 38 points are missing"), std::string::npos) << partial.err;
        }
        parts += directory + ' ';
    }
    const auto run = bayesaim("merge " + parts + " --output " + merged);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    for (const char* name : {"/results.csv", "/summary.csv"}) {
        EXPECT_EQ(read(merged + name), read(whole + name)) << name;
    }
    const auto nothing_left = bayesaim(sweep(file, merged) + "--format json");
    EXPECT_EQ(nothing_left.json()["computed_now"], 0);
}

TEST(SweepCommand, OtherStudiesAndOtherResultsAreNotMerged) {
    const Workplace place;
    const std::string a = place.file("a"), b = place.file("b"), c = place.file("c");
    const std::string one = place.write("one.toml", "estimator = 'theory'\nalpha = 0.1\n");
    bayesaim(sweep(one, a));
    bayesaim(sweep(place.write("two.toml", "estimator = 'theory'\nalpha = 0.2\n"), b));
    cli::expect_bad_usage({("merge " + a + ' ' + b + " --output " + c).c_str(), "must be of one study"});
    cli::expect_bad_usage(
        {("merge " + a + ' ' + place.file("none") + " --output " + c).c_str(), "No such file or directory"});
    EXPECT_FALSE(std::filesystem::exists(c));
}

TEST(SweepCommand, TwoProcessesDoNotShareAStore) {
    const Workplace place;
    const std::string file = long_study(place), directory = place.file("out");
    const pid_t child = start({"sweep", file, "--quiet", "--output", directory});
    wait_for_records(directory, 1);
    cli::expect_bad_usage({sweep(file, directory).c_str(), "is in use by another process"});
    kill(child, SIGINT);
    EXPECT_EQ(exit_code_of(child), 130);
    const std::string again = "sweep " + file + " --dry-run --format json --output " + directory;
    const auto plan = bayesaim(again).json();
    EXPECT_EQ(plan["done"].get<std::size_t>() + 1, lines(directory + "/runs.store"));
}

TEST(SweepCommand, InterruptKeepsWhatIsDone) {
    const Workplace place;
    const std::string file = long_study(place), directory = place.file("out");
    const pid_t child = start({"sweep", file, "--quiet", "--output", directory});
    wait_for_records(directory, 3);
    kill(child, SIGINT);
    EXPECT_EQ(exit_code_of(child), 130);
    EXPECT_GE(lines(directory + "/results.csv"), 4U);
    EXPECT_EQ(lines(directory + "/results.csv"), lines(directory + "/runs.store"));
    const auto provenance = nlohmann::json::parse(read(directory + "/provenance.json"));
    EXPECT_EQ(provenance["done"].get<std::size_t>() + 1, lines(directory + "/results.csv"));
    EXPECT_GT(provenance["points"][0]["seconds"].get<double>(), 0);
}

/// A point of minutes that does not report: Ctrl-C stops inside it.
TEST(SweepCommand, InterruptStopsInsideASampledPoint) {
    const Workplace place;
    const std::string file = place.write("deep.toml",
                                         "estimator = 'theory'\nchannel = 'deep-seq2seq'\nwidth = 0.5\n"
                                         "alpha = [0.1, 0.2]\nintegration_points = 4096\n");
    const auto start = std::chrono::steady_clock::now();
    const auto run = cli::bayesaim_interrupted("sweep " + file + " --output " + place.file("out"), "2");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    EXPECT_EQ(run.exit_code, 130);
    EXPECT_NE(run.err.find("bayesaim: stopping; press Ctrl-C again to quit at once\n"), std::string::npos)
        << run.err;
    EXPECT_NE(run.err.find("0 of 2 points are kept"), std::string::npos) << run.err;
    EXPECT_EQ(lines(place.file("out") + "/runs.store"), 1U);
}

/// A limit on file sizes acts like a full disk: one line reports it, and finished points are kept.
TEST(SweepCommand, AFullDiskLosesNothing) {
    const Workplace place;
    const std::string file = place.write("study.toml", study), directory = place.file("out"),
                      err = place.file("err");
    const std::string command = std::string(BAYESAIM_PROGRAM) + ' ' + sweep(file, directory);
    // 12 blocks of 1024 bytes: the first provenance and results fit, the records of all points do not. Counts of lines, of
    // which the sanitized build writes more, have no limit on a device.
    const int status = std::system(
        ("bash -c 'ulimit -f 12; LLVM_PROFILE_FILE=/dev/null " + command + "' >/dev/null 2>" + err).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1);
    const std::string complaint = read(err);
    EXPECT_NE(complaint.find("runs.store': File too large"), std::string::npos) << complaint;
    EXPECT_EQ(std::count(complaint.begin(), complaint.end(), '\n'), 1) << complaint;
    const std::size_t kept = lines(directory + "/runs.store") - 1;
    EXPECT_GT(kept, 0U);
    EXPECT_EQ(read(directory + "/runs.store").back(), '\n');
    const auto resumed = bayesaim(sweep(file, directory) + "--format json");
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(resumed.json()["computed_now"], 38 - kept);
}

TEST(SweepCommand, AFailedPointSaysWhyAndTheOthersGoOn) {
    const Workplace place;
    const std::string directory = place.file("out");
    // Its matrices have more bytes than a number of 64 bits can count: nobody asks malloc, where sanitizers would warn.
    const std::string file = place.write("study.toml",
                                         "estimator = 'amp'\nwidth = 1\nalpha = 0.1\ndim = [20, 2147483647]\n"
                                         "max_iterations = 1000\n");
    const auto run = bayesaim(sweep(file, directory) + "--format json");
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.json()["failed"], 1);
    EXPECT_EQ(run.json()["done"], 1);
    EXPECT_NE(read(directory + "/results.csv").find("failed,not enough memory"), std::string::npos);
    EXPECT_EQ(run.err, "");  // --quiet
    const auto loud = bayesaim("sweep " + file + " --output " + directory);
    EXPECT_NE(loud.err.find("bayesaim: failed: amp, alpha 0.1, width 1, dim 2147483647, seed 0: not enough "
                            "memory for a problem of this size\n"),
              std::string::npos)
        << loud.err;
    EXPECT_EQ(bayesaim(sweep(file, directory) + "--format json").json()["computed_now"], 0);
    EXPECT_EQ(bayesaim(sweep(file, directory) + "--format json --retry-failed").json()["computed_now"], 1);
}

TEST(SweepCommand, ManyFailedPointsAreNamedUpToFiveAndCounted) {
    const Workplace place;
    const std::string file = place.write(
        "study.toml", "estimator = 'amp'\nwidth = 0.5\nalpha = 0.1\ndim = 2147483647\nseeds = 7\n");
    const auto run = bayesaim("sweep " + file + " --output " + place.file("out"));
    EXPECT_EQ(run.exit_code, 2);
    std::size_t named = 0;
    for (std::size_t at = 0; (at = run.err.find("bayesaim: failed: ", at)) != std::string::npos; ++at)
        ++named;
    EXPECT_EQ(named, 5U) << run.err;
    EXPECT_NE(run.err.find("bayesaim: 7 of 7 points failed\n"), std::string::npos) << run.err;
}

TEST(SweepCommand, DryRunDoesNothing) {
    const Workplace place;
    const std::string file = place.write("study.toml", study), directory = place.file("out");
    const auto before = bayesaim(sweep(file, directory) + "--dry-run --format json --shard 1/2").json();
    EXPECT_EQ(before["total"], 19);
    EXPECT_EQ(before["missing"], 19);
    EXPECT_GT(before["estimated_seconds"].get<double>(), 0);
    EXPECT_GT(before["estimated_bytes"].get<double>(), 1e7);
    EXPECT_LT(before["estimated_bytes"].get<double>(), 1e9);
    EXPECT_FALSE(std::filesystem::exists(directory));
    bayesaim(sweep(file, directory) + "--shard 1/2");
    const auto after = bayesaim(sweep(file, directory) + "--dry-run --format json").json();
    EXPECT_EQ(after["missing"], 19);
    EXPECT_EQ(after["estimate_from"], "finished points");
}

TEST(RerunCommand, SaysWhetherTheBitsAreTheSame) {
    const Workplace place;
    const std::string file = place.write("study.toml", study), directory = place.file("out"),
                      result = directory + "/provenance.json";
    bayesaim(sweep(file, directory));
    const auto same = bayesaim("rerun " + result + " --format json");
    EXPECT_EQ(same.exit_code, 0) << same.err;
    EXPECT_EQ(same.json()["same_bits"], 38);
    EXPECT_EQ(read(directory + "-rerun/results.csv"), read(directory + "/results.csv"));
    // A second rerun would compute no point and compare no bits.
    cli::expect_bad_usage({("rerun " + result).c_str(),
                           "-rerun' holds a finished rerun of this study; remove it or choose another "
                           "directory with --output"});
    auto changed = nlohmann::json::parse(read(result));
    auto& error = changed["points"][9]["values"]["error"];
    error = std::nextafter(error.get<double>(), 1.0);
    place.write("changed.json", changed.dump());
    const auto different = bayesaim("rerun " + place.file("changed.json") + " --format json");
    EXPECT_EQ(different.exit_code, 3);
    EXPECT_EQ(different.json()["directory"], place.file("changed-rerun"));  // named after the file
    EXPECT_EQ(different.json()["different"], 1);
    cli::expect_bad_usage({("rerun " + result + " --output " + directory + "/").c_str(),
                           "--output must be a directory other than that of the result"});
}

TEST(SweepCommand, TheExampleRuns) {
    const Workplace place;
    const auto run =
        bayesaim(sweep(std::string(BAYESAIM_SOURCE_DIR) + "/examples/study.toml", place.file("out")));
    EXPECT_EQ(run.exit_code, 0) << run.err << run.out;
}

TEST(SweepCommand, BadInputIsOneLine) {
    const Workplace place;
    const std::string good = place.write("good.toml", "estimator = 'theory'\nalpha = 0.1\n"),
                      unknown = place.write("unknown.toml", "estimator = 'theory'\nalhpa = 0.1\n"),
                      type = place.write("type.toml", "estimator = 'theory'\nalpha = true\n"),
                      store = place.write("other/runs.store", "");
    const auto expect = [](const std::string& arguments, const std::string& complaint) {
        cli::expect_bad_usage({arguments.c_str(), complaint.c_str()});
    };
    expect("sweep " + unknown, unknown + ":2:1: unknown key 'alhpa'");
    expect("sweep " + type, type + ":2:9: alpha must be a number, got true");
    expect("sweep " + place.file("none.toml"), "cannot read study '");
    expect("sweep " + good + " --output " + good + "/below", "could not make the directory");
    expect("sweep " + good + " --output /proc/nowhere", "could not make the directory");
    expect("sweep " + good + " --output /dev/full", "could not make the directory");
    std::filesystem::create_directory(place.file("mine"));
    place.write("mine/notes.txt", "mine");
    expect("sweep " + good + " --output " + place.file("mine"), "', which holds other files");
    expect("sweep " + good + " --shard 0/3", "--shard must be i/N with i from 1 to N, got '0/3'");
    expect("sweep " + good + " --shard 4/3", "got '4/3'");
    expect("sweep " + good + " --shard 1", "got '1'");
    expect("sweep " + good + " --format yaml", "--format must be one of");
    expect("rerun " + good, "provenance file must be the provenance.json of a sweep");
    expect("rerun " + place.file("none.json"), "cannot read provenance file");
}

}  // namespace
