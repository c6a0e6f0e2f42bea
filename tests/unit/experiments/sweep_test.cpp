// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "bayesaim/core/files.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/experiments/task_json.hpp"

#include "support/expect_invalid.hpp"
#include "support/temporary_file.hpp"

namespace bayesaim::experiments {
namespace {

namespace fs = std::filesystem;

/// Directories of one test, next to each other.
class Directories {
  public:
    Directories() { fs::remove_all(root_ = file_.path() + ".d"); }
    ~Directories() {
        std::error_code ignored;
        fs::remove_all(root_, ignored);
    }
    fs::path operator()(const std::string& name) const { return root_ / name; }

  private:
    test::TemporaryFile file_{""};
    fs::path root_;
};

Experiment small_study() {
    return parse_experiment(R"(
width = 0.5
[[run]]
estimator = "theory"
alpha = [0.05625, 0.15, 0.2]
[[run]]
estimator = "amp"
alpha = 0.1
dim = 30
seeds = 3
)",
                            "study");
}

TEST(Sweep, PointsComeBackInTheOrderOfTheTasks) {
    const Directories place;
    const SweepResult result = run_sweep(small_study(), place("run"));
    ASSERT_EQ(result.points.size(), 6U);
    EXPECT_EQ(result.computed, 6U);
    EXPECT_NEAR(*result.points[0].outcome->value("error"), 0.6818852558, 1e-9);
    EXPECT_NEAR(*result.points[1].outcome->value("error"), 0.1281308963, 1e-9);
    EXPECT_EQ(result.points[2].outcome->status, "exact recovery");
    EXPECT_FALSE(result.points[2].outcome->value("conjugate_overlap"));  // infinite
    for (std::size_t i = 3; i < 6; ++i) {
        EXPECT_EQ(result.points[i].task.seed, i - 3);
        EXPECT_GT(result.points[i].outcome->seconds, 0);
    }
}

TEST(Sweep, StopsWhenAskedAndGoesOnLater) {
    const Directories place;
    SweepOptions options;
    options.threads = 1;
    options.progress = [](const SweepProgress& now) { return now.finished < 4; };
    const SweepResult first = run_sweep(small_study(), place("run"), options);
    EXPECT_TRUE(first.stopped);
    EXPECT_EQ(first.computed, 4U);
    const SweepResult second = run_sweep(small_study(), place("run"));
    EXPECT_FALSE(second.stopped);
    EXPECT_EQ(second.computed, 2U);
    run_sweep(small_study(), place("whole"));
    EXPECT_EQ(read_whole("results", place("run") / results_name),
              read_whole("results", place("whole") / results_name));
}

/// Number of lines of the results.
long rows(const fs::path& directory) {
    const std::string text = read_whole("results", directory / results_name);
    return std::count(text.begin(), text.end(), '\n');
}

TEST(Sweep, ResultsGrowWhileItRuns) {
    const Directories place;
    SweepOptions options;
    options.threads = 1;
    options.write_seconds = 0;
    std::vector<long> seen;
    options.progress = [&](const SweepProgress&) {
        seen.push_back(rows(place("run")));
        return true;
    };
    run_sweep(small_study(), place("run"), options);
    ASSERT_GE(seen.size(), 2U);
    EXPECT_EQ(seen[0], 1);  // the header
    EXPECT_EQ(seen[1], 2);  // the first point is there before the second is computed
    EXPECT_EQ(rows(place("run")), 7);
    // Written in between or not, the bytes are the same.
    options.write_seconds = 1e9;
    options.progress = {};
    run_sweep(small_study(), place("whole"), options);
    for (const char* name : {results_name, summary_name})
        EXPECT_EQ(read_whole("table", place("run") / name), read_whole("table", place("whole") / name));
}

TEST(Sweep, AnotherStudyInTheSameDirectoryIsRefused) {
    const Directories place;
    Experiment study = small_study(), other = study;
    study.name = "mine";
    other.name = "yours";
    other.tasks.resize(1);
    run_sweep(study, place("run"));
    const std::string results = read_whole("results", place("run") / results_name);
    const std::string message = "run directory must be new or that of the study 'yours', got '" +
                                place("run").string() + "', which holds the study 'mine'";
    test::expect_invalid([&] { run_sweep(other, place("run")); }, message);
    test::expect_invalid([&] { plan_sweep(other, place("run")); }, message);
    run_sweep(other, place("other"));
    test::expect_invalid([&] { merge_sweeps({place("other")}, place("run")); }, message);
    EXPECT_EQ(read_whole("results", place("run") / results_name), results);
    // The same study with other points goes on.
    study.tasks.push_back(study.tasks.front());
    study.tasks.back().alpha = 0.3;
    EXPECT_EQ(run_sweep(study, place("run")).computed, 1U);
}

TEST(Sweep, AStudyOfTheSameNameMustShareAPoint) {
    const Directories place;
    Experiment study = small_study();
    study.tasks.resize(2);
    EXPECT_FALSE(run_sweep(study, place("run")).other_version);
    EXPECT_FALSE(run_sweep(study, place("run")).other_version);
    Experiment other = study;
    for (Task& task : other.tasks) task.tokens = 3;
    const std::string results = read_whole("results", place("run") / results_name);
    test::expect_invalid([&] { run_sweep(other, place("run")); }, "which holds another study of this name");
    test::expect_invalid([&] { plan_sweep(other, place("run")); }, "which holds another study of this name");
    EXPECT_EQ(read_whole("results", place("run") / results_name), results);
    // Another version of it: the finished points stay, also those that it has no longer.
    other.tasks.push_back(study.tasks[0]);
    const SweepResult version = run_sweep(other, place("run"));
    EXPECT_TRUE(version.other_version);
    EXPECT_EQ(version.computed, 2U);
    EXPECT_EQ(run_sweep(study, place("run")).computed, 0U);
    EXPECT_EQ(read_whole("results", place("run") / results_name), results);
}

TEST(Sweep, ADirectoryWithOtherFilesIsRefusedAndLeftAsItIs) {
    const Directories place;
    fs::create_directories(place("notes"));
    write_whole(place("notes") / "results.csv", "mine");
    const std::string message = "run directory must be new, empty or one of an earlier sweep, got '" +
                                place("notes").string() + "', which holds other files";
    test::expect_invalid([&] { run_sweep(small_study(), place("notes")); }, message);
    test::expect_invalid([&] { plan_sweep(small_study(), place("notes")); }, message);
    run_sweep(small_study(), place("run"));
    test::expect_invalid([&] { merge_sweeps({place("run")}, place("notes")); }, message);
    EXPECT_EQ(read_whole("results", place("notes") / results_name), "mine");
    EXPECT_FALSE(fs::exists(place("notes") / store_name));
}

/// A long point, which reports nothing itself.
TEST(Sweep, StopsInsideASampledPointAndDoesNotRecordIt) {
    const Directories place;
    // The first runs on one thread, as small tasks do, the second on all.
    for (const char* points : {"256", "8192"}) {
        const Experiment study = parse_experiment(
            std::string("estimator = 'theory'\nchannel = 'deep-seq2seq'\nwidth = 0.5\nalpha = 0.1\n"
                        "integration_points = ") +
                points,
            "study");
        SweepOptions options;
        options.threads = 2;
        int calls = 0;
        options.progress = [&](const SweepProgress& now) {
            EXPECT_EQ(now.text, "theory, alpha 0.1");
            return ++calls < 3;
        };
        const auto start = std::chrono::steady_clock::now();
        const SweepResult result = run_sweep(study, place("run"), options);
        EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
        EXPECT_TRUE(result.stopped);
        EXPECT_EQ(result.computed, 0U);
        EXPECT_TRUE(read_records(place("run") / store_name).payloads.empty());
    }
}

/// A process that was killed before it wrote a provenance leaves no points, one whose provenance was lost does.
TEST(Sweep, WithoutAProvenanceThePointsTellTheStudy) {
    const Directories place;
    Experiment study = small_study(), other = study;
    study.tasks.resize(1);
    other.tasks.erase(other.tasks.begin(), other.tasks.begin() + 2);
    fs::create_directories(place("run"));
    { const RunStore empty(place("run") / store_name); }
    EXPECT_EQ(run_sweep(study, place("run")).computed, 1U);
    fs::remove(place("run") / provenance_name);
    test::expect_invalid([&] { run_sweep(other, place("run")); }, "which holds points of another study");
    EXPECT_EQ(run_sweep(study, place("run")).computed, 0U);
}

TEST(Points, AreNamedByAlphaWidthSeedAndWhatVaries) {
    const Experiment study = parse_experiment(
        "estimator = 'amp'\nwidth = 0.5\nalpha = 0.18\ndim = [20, 30]\nseeds = 2\n"
        "[[run]]\nestimator = 'amp'\n[[run]]\nestimator = 'theory'\n",
        "study");
    const auto varying = varying_settings(points_of(study, {}));
    EXPECT_EQ(describe(study.tasks.front(), varying), "amp, alpha 0.18, width 0.5, dim 20, seed 0");
    EXPECT_EQ(describe(study.tasks.back(), varying), "theory, alpha 0.18, width 0.5");
}

TEST(Sweep, SummaryIsMeanAndStandardErrorOverSeeds) {
    std::vector<Point> points(6);
    for (std::size_t i = 0; i < 6; ++i) points[i].task.seed = i;
    const double errors[] = {1, 5, 5, 5};
    for (std::size_t i = 0; i < 4; ++i) {
        points[i].outcome = {
            "converged",
            "",
            {{"error", errors[i]}, {"theory_error", 5}, {"iterations", i % 2 == 0 ? 10.0 : 30.0}}};
    }
    points[4].outcome = {"failed", "no memory, \"none\"", {}};
    // mean 4, sample variance 4, standard error 1, z = -1; the failed one is counted, not averaged
    const std::string text = summary_csv(points);
    EXPECT_TRUE(text.ends_with(",4,1,4,1,5,-1,20,failed\n")) << text;
    // Two seeds have a standard error, but no z score: the standard error is too uncertain.
    const std::string two = summary_csv({points[0], points[1]});
    EXPECT_TRUE(two.ends_with(",2,0,3,2,5,,20,converged\n")) << two;
    EXPECT_NE(results_csv(points).find(",failed,\"no memory, \"\"none\"\"\"\n"), std::string::npos);
}

TEST(Provenance, GivesTheStudyAndItsBitsBack) {
    const Directories place;
    const Experiment study = small_study();
    SweepOptions half;
    half.shard = {2, 2};
    const SweepResult result = run_sweep(study, place("run"), half);
    const Provenance read = read_provenance(place("run") / provenance_name);
    EXPECT_EQ(read.shard.text(), "2/2");
    ASSERT_EQ(read.experiment.tasks.size(), study.tasks.size());
    for (std::size_t i = 0; i < study.tasks.size(); ++i) {
        EXPECT_EQ(canonical(read.experiment.tasks[i]), canonical(study.tasks[i]));
        ASSERT_EQ(read.points[i].outcome.has_value(), i % 2 == 1);
        if (i % 2 == 1) {
            EXPECT_TRUE(read.points[i].outcome->same_results(*result.points[i].outcome));
        }
    }
}

TEST(Comparison, CountsPointsThatAreThereBothTimesToTheLastBit) {
    std::vector<Point> before(4), after(4);
    for (std::size_t i = 0; i < 3; ++i) before[i].outcome = {"converged", "", {{"error", 0.5}}};
    after = before;
    after[1].outcome->values[0].second = std::nextafter(0.5, 1.0);
    after[2].outcome.reset();
    after[3].outcome = before[0].outcome;
    const Comparison result = compare(before, after);
    EXPECT_EQ(result.compared, 2U);
    EXPECT_EQ(result.same, 1U);
    after.pop_back();
    test::expect_invalid([&] { compare(before, after); }, "points to compare");
}

TEST(Merge, RefusesResultsThatDisagreeByOneBit) {
    const Directories place;
    const Experiment study = small_study();
    run_sweep(study, place("a"));
    const SweepResult b = run_sweep(study, place("b"));
    EXPECT_EQ(merge_sweeps({place("a"), place("b")}, place("same")).size(), 6U);
    Outcome other = *b.points[0].outcome;
    other.values[0].second = std::nextafter(other.values[0].second, 1.0);
    RunStore(place("b") / store_name).append(key(study.tasks[0]), payload(study.tasks[0], other));
    test::expect_invalid([&] { merge_sweeps({place("a"), place("b")}, place("out")); }, "in agreement");
    EXPECT_FALSE(fs::exists(place("out")));
    // A failed point does not disagree: the result of the other directory counts.
    RunStore(place("b") / store_name)
        .append(key(study.tasks[0]), payload(study.tasks[0], {"failed", "bad luck"}));
    EXPECT_TRUE(merge_sweeps({place("b"), place("a")}, place("out"))[0].outcome->good());
}

TEST(Merge, WhatTheOutputHasCountsToo) {
    const Directories place;
    const Experiment study = small_study();
    const SweepResult a = run_sweep(study, place("a"));
    run_sweep(study, place("out"));
    RunStore(place("a") / store_name)
        .append(key(study.tasks[0]), payload(study.tasks[0], {"failed", "bad luck"}));
    EXPECT_TRUE(merge_sweeps({place("a")}, place("out"))[0].outcome->good());
    EXPECT_TRUE(points_of(study, read_records(place("out") / store_name))[0].outcome->good());
    Outcome other = *a.points[1].outcome;
    other.values[0].second = std::nextafter(other.values[0].second, 1.0);
    RunStore(place("a") / store_name).append(key(study.tasks[1]), payload(study.tasks[1], other));
    test::expect_invalid([&] { merge_sweeps({place("a")}, place("out")); }, "in agreement");
}

/// Numbers that an int would change or wrap around.
TEST(Provenance, RefusesNumbersThatDoNotFit) {
    const Directories place;
    run_sweep(small_study(), place("run"));
    const std::string text = read_whole("provenance", place("run") / provenance_name);
    const auto with = [&](const std::string& setting, const std::string& value) {
        std::string changed = text;
        const std::size_t at = changed.find("\"" + setting + "\":") + setting.size() + 3;
        changed.replace(at, changed.find_first_of(",}", at) - at, value);
        write_whole(place("changed.json"), changed);
        return [file = place("changed.json")] { read_provenance(file); };
    };
    test::expect_invalid(with("tokens", "4294967298"), "tokens must be at most 2147483647, got 4294967298");
    test::expect_invalid(with("tokens", "-2"), "tokens must be a whole number, got -2");
    test::expect_invalid(with("tokens", "2.5"), "tokens must be a whole number, got 2.5");
}

TEST(Tasks, DefaultsAreThoseOfTheAlgorithms) {
    const estimators::AmpOptions amp;
    const Task task;
    EXPECT_EQ(task.damping, amp.damping);
    EXPECT_EQ(task.adaptive_damping, amp.adaptive_damping);
    EXPECT_EQ(task.max_iterations, amp.max_iterations);
    EXPECT_EQ(task.tolerance, amp.tolerance);
    EXPECT_EQ(task.integration_points, channels::Integration{}.points);
}

/// Concurrent seeds of one point compute its theory once; other points have their own.
TEST(TheoryErrors, ArePerPointAndComputedOnce) {
    TheoryErrors errors;
    ThreadPool pool(4);
    std::atomic<int> solved = 0;
    Task point;
    point.estimator = "theory";
    point.channel = "deep-softmax";
    std::vector<double> found(16);
    pool.for_each(found.size(), [&](std::size_t i) {
        Task task = point;
        task.seed = i;
        found[i] = errors.at(task, [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));  // other threads ask in the meantime
            return 1.0 + solved++;
        });
    });
    EXPECT_EQ(found, std::vector<double>(16, 1.0));
    for (const double residual : {0.5, 2.0}) {
        Task other = point;
        other.residual = residual;
        EXPECT_EQ(errors.at(other, [&] { return residual; }), residual);
    }
    EXPECT_THROW(errors.at(Task{}, []() -> double { throw std::runtime_error("no solution"); }),
                 std::runtime_error);
}

/// An error that is not a number has no place in a result file: reading it back would fail.
TEST(Outcomes, HaveFiniteNumbersOnly) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Outcome outcome = make_outcome(Termination::diverged, {{"error", nan}, {"iterations", 3}});
    EXPECT_FALSE(outcome.value("error"));
    EXPECT_TRUE(outcome_from_json(Json::parse(to_json(outcome).dump())).same_results(outcome));
}

/// Every row of the table: its settings exist, and its outcomes have the values that it announces.
TEST(EstimatorTable, RowsKeepTheirWord) {
    for (const EstimatorEntry& entry : estimator_table()) {
        Task task;
        task.estimator = entry.name;
        task.width = 0.5;
        task.dim = 20;
        if (entry.name == "erm") task.regularization = 0.1;  // it needs one
        std::size_t own = 0;
        for (const Setting& setting : setting_table())
            own += setting.owner == Setting::Owner::estimator && applies(task, setting) ? 1 : 0;
        EXPECT_EQ(own, entry.options.size()) << entry.name;
        EXPECT_EQ(entry.values.front(), "error");
        EXPECT_GT(entry.operations(task), 0);
        EXPECT_GT(entry.bytes(task), 0);
        ThreadPool pool(1);
        TheoryErrors theory;
        const auto outcome = run_task(task, {pool, theory});
        ASSERT_TRUE(outcome.has_value());
        for (const auto& [name, value] : outcome->values) {
            EXPECT_EQ(std::count(entry.values.begin(), entry.values.end(), name), 1)
                << entry.name << ' ' << name;
        }
        for (const std::string& name : entry.values)
            EXPECT_TRUE(outcome->value(name)) << entry.name << ' ' << name;
        // Same bits for any number of threads.
        ThreadPool three(3);
        EXPECT_TRUE(run_task(task, {three, theory})->same_results(*outcome)) << entry.name;
    }
}

/// With several layers the error is the sum of error_1, error_2, ..
TEST(EstimatorTable, SeveralLayersHaveAnErrorEach) {
    ThreadPool pool(2);
    TheoryErrors theory;
    for (const char* estimator : {"theory", "amp"}) {
        Task task;
        task.estimator = estimator;
        task.channel = "deep-softmax";
        task.width = 0.5;
        task.alpha = 0.2;
        task.dim = 16;
        task.integration_points = 16;
        task.max_iterations = 5;
        const auto outcome = run_task(task, {pool, theory});
        ASSERT_TRUE(outcome && !outcome->failed()) << estimator << ' ' << outcome->reason;
        ASSERT_TRUE(outcome->value("error_1") && outcome->value("error_2")) << estimator;
        EXPECT_FALSE(outcome->value("error_3"));
        EXPECT_NEAR(*outcome->value("error_1") + *outcome->value("error_2"), *outcome->value("error"), 1e-12);
    }
}

}  // namespace
}  // namespace bayesaim::experiments
