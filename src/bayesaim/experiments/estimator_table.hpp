// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bayesaim/core/parallel.hpp"
#include "bayesaim/experiments/task.hpp"

namespace bayesaim::experiments {

/// What came of a task.
struct Outcome {
    std::string status;    ///< a Termination as text, or "failed"
    std::string reason{};  ///< why it failed
    /// Finite numbers by name, `error` first; what is not known or infinite is absent.
    std::vector<std::pair<std::string, double>> values{};
    double seconds = 0;
    std::string commit{};  ///< of the program that computed it

    std::optional<double> value(std::string_view name) const;
    bool failed() const { return status == "failed"; }
    bool good() const;  ///< converged or exact recovery
    /// The same results, to the last bit; timings and commits do not count.
    bool same_results(const Outcome& other) const;
};

/// The error that the theory predicts for each point, computed once for all seeds. For several threads.
class TheoryErrors {
  public:
    double at(const Task& task, ThreadPool& pool);

  private:
    std::mutex mutex_;
    std::map<std::string, double> known_;
};

/// What a task runs with.
struct TaskContext {
    ThreadPool& pool;
    TheoryErrors& theory;
    /// Told how far the task is, from 0 to 1, and how it stands; false stops it.
    std::function<bool(double fraction, const std::string& text)> progress{};
};

struct EstimatorEntry {
    std::string name;
    std::string summary;
    std::vector<std::string> settings;  ///< those of its own, beside the common ones
    std::vector<std::string> values;    ///< what its outcomes have
    std::function<Outcome(const Task&, const TaskContext&)> run;
    std::function<double(const Task&)> operations;  ///< a rough count, for time estimates
    /// Throws InvalidArgument for settings that do not fit together; before the work, where they are written.
    std::function<void(const Task&)> check{};
    bool has_prior = true;  ///< small width is a limit in which priors are alike
};

/// Every estimator that a study can name; a new one is a row here.
const std::vector<EstimatorEntry>& estimator_table();
std::vector<std::string> estimator_names();
const EstimatorEntry& find_estimator(const std::string& name);

/// Nothing if it was stopped: half a run is not a result. An exception becomes the outcome "failed".
std::optional<Outcome> run_task(const Task& task, const TaskContext& context);

}  // namespace bayesaim::experiments
