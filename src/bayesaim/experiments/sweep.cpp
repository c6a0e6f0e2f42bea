// SPDX-License-Identifier: MIT
#include "bayesaim/experiments/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/table.hpp"
#include "bayesaim/experiments/task_crew.hpp"
#include "bayesaim/linalg/blas.hpp"

namespace bayesaim::experiments {
namespace {

namespace fs = std::filesystem;

/// Tasks below this many operations (about a minute) run one per thread, the others with all threads.
constexpr double small_task = 1e12;

bool is_small(const Task& task) {
    return find_row(estimator_table(), "estimator", task.estimator).operations(task) < small_task;
}

void make_directory(const fs::path& directory) {
    std::error_code error;
    fs::create_directories(directory, error);
    if (error) {
        throw std::runtime_error(
            fmt::format("could not make the directory '{}': {}", directory.string(), error.message()));
    }
}

/// Removes partial files of a process that was killed while it wrote results. Needs the lock of the store.
void remove_partial_files(const fs::path& directory) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(directory)) {
        const std::string name = entry.path().filename().string();
        for (const char* result : {results_name, summary_name, provenance_name}) {
            if (name.starts_with(std::string(result) + '.') && name.ends_with(".part")) {
                fs::remove(entry.path(), ignored);
            }
        }
    }
}

/// Refuses a directory with files but without a store: it is none of ours.
void check_not_foreign(const fs::path& directory) {
    std::error_code error;  // then other calls tell what is wrong with the directory
    if (fs::is_directory(directory, error) && !fs::is_empty(directory, error) && !error &&
        !fs::exists(directory / store_name, error) && !error)
        throw_invalid("run directory", "new, empty or one of an earlier sweep",
                      fmt::format("'{}', which holds other files", directory.string()));
}

/// Refuses a directory of another study, because its results would be replaced: one of another name, or one
/// that shares no point. A sweep writes the provenance before its first point, so that the study is known even
/// if it was killed; where the provenance was lost, the points of the store tell.
/// Returns whether the directory holds another version of this study, which shares some points with it.
bool check_study(const Experiment& experiment, const fs::path& directory, const std::vector<Point>& points,
                 const StoredRecords& records) {
    const auto reject = [&](const std::string& content) {
        throw_invalid("run directory", fmt::format("new or that of the study '{}'", experiment.name),
                      fmt::format("'{}', which holds {}", directory.string(), content));
    };
    const auto before = read_study(directory / provenance_name);
    if (before && before->name != experiment.name) reject(fmt::format("the study '{}'", before->name));
    if (records.payloads.empty()) return false;
    if (!before) {
        const auto finished = [](const Point& point) { return point.outcome.has_value(); };
        if (std::ranges::none_of(points, finished)) reject("points of another study");
        return false;
    }
    std::set<std::string> known;
    for (const Task& task : before->tasks) known.insert(canonical(task));
    const auto shared = static_cast<std::size_t>(std::ranges::count_if(
        experiment.tasks, [&](const Task& task) { return known.contains(canonical(task)); }));
    if (shared == 0) reject("another study of this name");
    return shared < known.size() || shared < experiment.tasks.size();
}

bool is_missing(const Point& point, const SweepOptions& options) {
    return !point.outcome || (options.retry_failed && point.outcome->failed());
}

/// Runs tasks and stores their outcomes. Workers share it.
class Runner {
  public:
    Runner(SweepResult& result, RunStore& store, const fs::path& directory, const SweepOptions& options,
           std::size_t total, std::size_t finished)
        : result_(result),
          store_(store),
          directory_(directory),
          options_(options),
          total_(total),
          finished_(finished) {}

    void run(std::size_t task, ThreadPool& pool) {
        if (stop_) return;
        Point& point = result_.points[task];
        report(0, fmt::format("{}, alpha {:g}", point.task.estimator, point.task.alpha));
        pool.stop_when([this] { return stop_requested(); });
        const auto progress = [this](double fraction, const std::string& text) {
            return report(fraction, text);
        };
        const std::optional<Outcome> outcome = run_task(point.task, {pool, theory_, progress});
        if (outcome) keep(task, *outcome);
    }

    /// Stores an outcome.
    void keep(std::size_t task, const Outcome& outcome) {
        Point& point = result_.points[task];
        try {
            store_.append(key(point.task), payload(point.task, outcome));
        } catch (...) {
            stop_ = true;
            throw;
        }
        const std::lock_guard lock(mutex_);
        point.outcome = outcome;
        ++result_.computed;
        ++finished_;
        unwritten_ = true;
    }

    bool stopped() const { return stop_; }

    /// For the loops inside a task, which may be long, and for who waits for other ranks: repeats the latest report ten
    /// times a second.
    bool stop_requested() {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (!stop_ && lock && Clock::now() - reported_ > std::chrono::milliseconds(100))
            report({finished_, total_, latest_.fraction, latest_.text});
        return stop_;
    }

  private:
    bool report(double fraction, const std::string& text) {
        const std::lock_guard lock(mutex_);
        return report({finished_, total_, fraction, text});
    }

    /// The caller holds the lock.
    bool report(const SweepProgress& now) {
        write_if_due();
        if (!stop_ && options_.progress && !options_.progress(now)) stop_ = true;
        latest_ = now;
        reported_ = Clock::now();
        return !stop_;
    }

    /// Writes the tables now and then. The caller holds the lock.
    void write_if_due() {
        constexpr double least_ratio = 50;  // writing takes at most 2% of the time
        const Seconds since = Clock::now() - written_;
        if (!unwritten_ || since.count() < std::max(options_.write_seconds, least_ratio * writing_.count()))
            return;
        const Clock::time_point start = Clock::now();
        try {
            write_tables(directory_, result_.points);
        } catch (const std::exception&) {
            // No reason to fail the task that reports: run_sweep writes them at the end, or says why not.
        }
        written_ = Clock::now();
        writing_ = written_ - start;
        unwritten_ = false;
    }

    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    SweepResult& result_;
    RunStore& store_;
    const fs::path& directory_;
    const SweepOptions& options_;
    std::size_t total_, finished_;
    bool unwritten_ = false;  // whether a point was finished after the tables were written
    Clock::time_point written_ = Clock::now(), reported_ = written_;
    SweepProgress latest_;
    Seconds writing_{0};
    TheoryErrors theory_;
    std::mutex mutex_;
    std::atomic<bool> stop_ = false;
};

/// Operations of a task with its theoretical error, which TheoryErrors computes once for all seeds: for the
/// first task of each point, which then is `known`.
double operations_of(const Task& task, std::set<std::string>& known) {
    const EstimatorEntry& entry = find_row(estimator_table(), "estimator", task.estimator);
    Task theory = task;
    theory.estimator = "theory";
    const bool needs_it = std::ranges::count(entry.values, "theory_error") > 0;
    return entry.operations(task) +
           (needs_it && known.insert(canonical(theory)).second
                ? find_row(estimator_table(), "estimator", "theory").operations(theory)
                : 0);
}

/// Speed of a matrix product on this machine: the fastest of several runs, as other programs run too.
double seconds_per_operation() {
    const Eigen::Index n = 256;
    const linalg::Matrix a = linalg::Matrix::Ones(n, n);
    double fastest = std::numeric_limits<double>::infinity(), sum = 0;
    for (int i = 0; i < 10; ++i) {
        const auto start = std::chrono::steady_clock::now();
        sum = linalg::product(a, a)(0, 0);  // n
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        fastest = std::min(fastest, elapsed.count());
    }
    return fastest / (2 * static_cast<double>(n * n) * sum);
}

/// Adds the outcomes of a run directory, and keeps good ones that are known already. Throws if two disagree.
void reconcile(std::vector<Point>& points, const std::vector<Point>& found, const fs::path& directory) {
    for (std::size_t i = 0; i < points.size(); ++i) {
        auto& known = points[i].outcome;
        const auto& outcome = found[i].outcome;
        if (!outcome) continue;
        if (known && !known->failed() && !outcome->failed() && !known->same_results(*outcome)) {
            throw_invalid("run directories", "in agreement",
                          fmt::format("'{}' with another result than those before for {}", directory.string(),
                                      canonical(points[i].task)));
        }
        if (!known || known->failed()) known = outcome;
    }
}

}  // namespace

/// What ranks but the first do.
static SweepResult help_with_sweep(const Experiment& experiment, const SweepOptions& options) {
    TheoryErrors theory;
    compute_tasks(options.threads, *options.ranks,
                  [&](std::size_t i, ThreadPool& pool, const std::function<bool()>& stopped) {
                      const Task& task = experiment.tasks.at(i);
                      pool.stop_when(stopped);
                      const auto progress = [&](double, const std::string&) { return !stopped(); };
                      const auto outcome = run_task(task, {pool, theory, progress});
                      return outcome ? std::optional(payload(task, *outcome)) : std::nullopt;
                  });
    return {points_of(experiment, {})};
}

SweepResult run_sweep(const Experiment& experiment, const fs::path& directory, const SweepOptions& options) {
    const bool several = options.ranks != nullptr && options.ranks->size() > 1;
    if (several && !options.ranks->first()) return help_with_sweep(experiment, options);
    check_not_foreign(directory);
    make_directory(directory);
    RunStore store(directory / store_name);
    remove_partial_files(directory);

    SweepResult result{points_of(experiment, store.records())};
    result.other_version = check_study(experiment, directory, result.points, store.records());
    result.damaged = store.records().damaged;
    std::vector<std::size_t> small, large;
    std::size_t total = 0;
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        if (!options.shard.has(i)) continue;
        ++total;
        if (is_missing(result.points[i], options))
            (is_small(result.points[i].task) ? small : large).push_back(i);
    }
    // merge_sweeps needs the provenance even if this process is killed.
    if (!small.empty() || !large.empty()) {
        write_results(directory, experiment, options.shard, result.points);
    }

    Runner runner(result, store, directory, options, total, total - small.size() - large.size());
    if (several) {
        HandOut work;
        work.threads = options.threads;
        std::vector<double> costs;
        std::set<std::string> with_theory;
        for (const Point& point : result.points) costs.push_back(operations_of(point.task, with_theory));
        for (std::vector<std::size_t>* tasks : {&large, &small}) {
            std::ranges::stable_sort(*tasks, std::greater(), [&](std::size_t i) { return costs[i]; });
            for (const std::size_t task : *tasks) work.tasks.push_back({task, tasks == &small});
        }
        work.run = [&](std::size_t task, ThreadPool& own) { runner.run(task, own); };
        work.accept = [&](std::size_t task, const std::string& text) { runner.keep(task, outcome_of(text)); };
        work.stops = [&] { return runner.stop_requested(); };
        hand_out(work, *options.ranks);
    } else {
        ThreadPool pool(options.threads);
        pool.for_each(small.size(), [&](std::size_t i) {
            ThreadPool own(1);
            runner.run(small[i], own);
        });
        for (const std::size_t task : large) runner.run(task, pool);
    }
    result.stopped = runner.stopped();
    write_results(directory, experiment, options.shard, result.points);
    return result;
}

SweepPlan plan_sweep(const Experiment& experiment, const fs::path& directory, const SweepOptions& options) {
    check_not_foreign(directory);
    const StoredRecords records = read_records(directory / store_name);
    const std::vector<Point> points = points_of(experiment, records);
    check_study(experiment, directory, points, records);
    SweepPlan plan;
    std::vector<double> small;  // bytes of small tasks
    double large = 0;           // bytes of the largest task that runs alone
    // Seconds and operations of finished tasks, by estimator and size.
    using Kind = std::pair<std::string, bool>;
    struct Rate {
        double seconds = 0, operations = 0;
    };
    std::map<Kind, Rate> measured;
    std::map<Kind, double> left;
    std::set<std::string> with_theory;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const auto& [task, outcome] = points[i];
        if (!outcome && !options.shard.has(i)) continue;
        const Kind kind{task.estimator, is_small(task)};
        const double operations = operations_of(task, with_theory);
        if (outcome && !outcome->failed()) {
            measured[kind].seconds += outcome->seconds;
            measured[kind].operations += operations;
        }
        if (!options.shard.has(i)) continue;
        ++plan.tasks;
        if (is_missing(points[i], options)) {
            ++plan.missing;
            left[kind] += operations;
            const double bytes = find_row(estimator_table(), "estimator", task.estimator).bytes(task);
            if (kind.second) {
                small.push_back(bytes);
            } else {
                large = std::max(large, bytes);
            }
        } else {
            ++(outcome->failed() ? plan.failed : plan.done);
        }
    }
    const std::size_t thread_count = options.threads > 0 ? options.threads : default_threads();
    const double threads = static_cast<double>(thread_count);
    // Small tasks run one per thread: the largest ones may meet.
    std::ranges::sort(small, std::greater());
    small.resize(std::min(small.size(), thread_count));
    constexpr double program = 15e6;  // of the program itself
    if (plan.missing > 0)
        plan.bytes = program + std::max(large, std::accumulate(small.begin(), small.end(), 0.0));
    plan.measured = !left.empty();
    for (const auto& [kind, operations] : left) {
        const auto found = measured.find(kind);
        const bool known = found != measured.end() && found->second.seconds > 0;
        // Large tasks were measured with all threads.
        const double share = known && !kind.second ? 1 : threads;
        plan.seconds += operations / share *
                        (known ? found->second.seconds / found->second.operations : seconds_per_operation());
        plan.measured &= known;
    }
    return plan;
}

std::vector<Point> merge_sweeps(const std::vector<fs::path>& directories, const fs::path& output) {
    if (directories.empty()) throw_invalid("run directories", "at least one", "none");
    const Experiment experiment = read_provenance(directories.front() / provenance_name).experiment;
    std::vector<Point> points = points_of(experiment, {});
    for (const fs::path& directory : directories) {
        const Experiment other = read_provenance(directory / provenance_name).experiment;
        if (!std::ranges::equal(other.tasks, experiment.tasks, {}, canonical, canonical)) {
            throw_invalid(
                "run directories", "of one study",
                fmt::format("'{}' and '{}', which differ", directories.front().string(), directory.string()));
        }
        reconcile(points, points_of(experiment, read_records(directory / store_name)), directory);
    }
    check_not_foreign(output);
    make_directory(output);
    RunStore store(output / store_name);
    remove_partial_files(output);
    const std::vector<Point> there = points_of(experiment, store.records());
    check_study(experiment, output, there, store.records());
    reconcile(points, there, output);
    for (std::size_t i = 0; i < points.size(); ++i) {
        const auto& [task, outcome] = points[i];
        if (outcome && !(there[i].outcome && there[i].outcome->same_results(*outcome))) {
            store.append(key(task), payload(task, *outcome));
        }
    }
    write_results(output, experiment, {}, points);
    return points;
}

}  // namespace bayesaim::experiments
