// SPDX-License-Identifier: MIT
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bayesaim/experiments/estimator_table.hpp"
#include "bayesaim/experiments/experiment_file.hpp"
#include "bayesaim/experiments/run_store.hpp"

namespace bayesaim::experiments {

/// The share of one of several processes: every count-th task of a study, from the index-th on.
struct Shard {
    std::size_t index = 1, count = 1;
    bool has(std::size_t task) const { return task % count == index - 1; }
    std::string text() const;  ///< "1/3"
};

/// Parses "1/3"; errors name the argument.
Shard parse_shard(std::string_view name, std::string_view text);

/// A task with its outcome, if it is finished.
struct Point {
    Task task;
    std::optional<Outcome> outcome{};
};

/// CSV with one line per finished point and seed, in the order of the tasks, with all digits and no timings:
/// interruptions do not change a byte.
std::string results_csv(const std::vector<Point>& points);

/// CSV with one line per point: mean and standard error over the seeds that did not fail, and the theory.
std::string summary_csv(const std::vector<Point>& points);

/// Looks up the outcomes of these tasks in a store.
std::vector<Point> points_of(const Experiment& experiment, const StoredRecords& records);
/// A record of the store.
std::string payload(const Task& task, const Outcome& outcome);
Outcome outcome_of(const std::string& payload);

/// The settings with several values among the tasks that have them, in the order of the table; without
/// `spectrum_checksum` and `token_storage`.
std::vector<const Setting*> varying_settings(const std::vector<Point>& points);
/// A value as tables show it: text as it is, numbers with all digits.
std::string to_text(const Value& value);
/// A point for a message: "amp, alpha 0.18, width 0.5, seed 2". Names alpha, width, the seed and the settings
/// that vary, as far as the task has them.
std::string describe(const Task& task, const std::vector<const Setting*>& varying);

/// The contents of a provenance file.
struct Provenance {
    std::string version, commit;
    Experiment experiment;
    Shard shard{};
    std::vector<Point> points{};
};

/// Version, commit, every setting, and status, values and seconds of every point, as JSON. Settings that all
/// points share are written once.
std::string provenance_json(const Provenance& provenance);
/// Throws InvalidArgument if the file is not a provenance file.
Provenance read_provenance(const std::filesystem::path& file);

/// The study whose provenance file this is; std::nullopt if there is no such file or it is no provenance file.
std::optional<Experiment> read_study(const std::filesystem::path& file);

/// Counts the points with an outcome in both, and those among them with equal bits.
struct Comparison {
    std::size_t compared = 0, same = 0;
};
Comparison compare(const std::vector<Point>& before, const std::vector<Point>& after);

/// The files of a run directory.
inline constexpr const char* store_name = "runs.store";
inline constexpr const char* provenance_name = "provenance.json";
inline constexpr const char* results_name = "results.csv";
inline constexpr const char* summary_name = "summary.csv";

/// Writes results and summary, each atomically.
void write_tables(const std::filesystem::path& directory, const std::vector<Point>& points);
/// Writes results, summary and provenance, each atomically.
void write_results(const std::filesystem::path& directory, const Experiment& experiment, const Shard& shard,
                   const std::vector<Point>& points);

}  // namespace bayesaim::experiments
