// SPDX-License-Identifier: MIT
#pragma once
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bayesaim/core/outcome.hpp"
#include "bayesaim/core/parallel.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/experiments/task.hpp"
#include "bayesaim/theory/state_evolution.hpp"

namespace bayesaim::experiments {

/// The result of a task.
struct Outcome {
    std::string status;    ///< a Termination as text, or "failed"
    std::string reason{};  ///< why it failed
    /// Finite numbers by name, `error` first. Unknown and infinite values are left out.
    std::vector<std::pair<std::string, double>> values{};
    double seconds = 0;
    std::string commit{};  ///< of the program that computed it

    std::optional<double> value(std::string_view name) const;
    bool failed() const { return status == "failed"; }
    bool good() const;  ///< converged or exact recovery
    /// Whether two results are equal to the last bit; timings and commits do not count.
    bool same_results(const Outcome& other) const;
};

/// Keeps only finite numbers: result files have no others.
Outcome make_outcome(Termination status, const std::vector<std::pair<std::string, double>>& values);

/// The theoretical error of each point, computed once for all seeds. Thread-safe: the first thread that asks
/// for a point computes it, the others wait.
class TheoryErrors {
  public:
    /// Returns the stored error of this point (a task of theory), or calls `solve` to compute it.
    double at(const Task& point, const std::function<double()>& solve);

  private:
    std::mutex mutex_;
    std::map<std::string, std::shared_future<double>> known_;
};

/// The environment of a running task.
struct TaskContext {
    ThreadPool& pool;
    TheoryErrors& theory;
    /// Called with the finished fraction, 0 to 1, and a text; returns false to stop the task.
    std::function<bool(double fraction, const std::string& text)> progress{};
};

struct EstimatorEntry {
    std::string name;
    std::string summary;
    std::vector<std::string> options;  ///< names of its own settings
    /// Names of the values of its outcomes; with several layers there are also error_1, error_2, ..
    std::vector<std::string> values;
    std::function<Outcome(const Task&, const TaskContext&)> run;
    std::function<double(const Task&)>
        operations;                            ///< a rough count, without theory_error, for time estimates
    std::function<double(const Task&)> bytes;  ///< memory of a running task, within a factor of 2
    /// Throws InvalidArgument for settings that do not fit together. Called when the study is read.
    std::function<void(const Task&)> check{};
    bool has_prior = true;  ///< whether a task chooses its prior; small-width fixes it
};

/// Every estimator that a study can name; see core/table.hpp.
const std::vector<EstimatorEntry>& estimator_table();

/// Start of AMP: `mean` (kappa1 I), `prior` (another draw, as in the paper) or `informed` (the truth).
void set_initial(const std::string& initial, const model::Model& model, const data::Synthetic& problem,
                 std::uint64_t seed, estimators::AmpOptions& options, ThreadPool& pool);

/// Runs a task. Returns std::nullopt if it was stopped, by its progress or by the pool. An exception becomes an outcome of status "failed".
std::optional<Outcome> run_task(const Task& task, const TaskContext& context);

}  // namespace bayesaim::experiments
