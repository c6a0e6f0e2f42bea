// SPDX-License-Identifier: MIT
// Studies, as in `bayesaim sweep`, `merge` and `rerun`.
#include <chrono>
#include <future>

#include <fmt/format.h>

#include "bayesaim/core/table.hpp"
#include "bayesaim/experiments/estimator_table.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/experiments/sweep.hpp"

#include "binding.hpp"

namespace bayesaim::python {
namespace {

using experiments::Experiment;
using experiments::Point;

py::dict task_dict(const experiments::Task& task) {
    py::dict result;
    for (const experiments::Setting& setting : experiments::setting_table()) {
        if (!experiments::applies(task, setting)) continue;
        std::visit([&](const auto& value) { result[py::str(setting.name)] = py::cast(value); },
                   experiments::get(task, setting));
    }
    return result;
}

py::dict point_dict(const Point& point) {
    py::dict result = task_dict(point.task);
    if (!point.outcome) return result;
    for (const auto& [name, value] : point.outcome->values) result[py::str(name)] = value;
    result["status"] = point.outcome->status;
    if (!point.outcome->reason.empty()) result["reason"] = point.outcome->reason;
    result["seconds"] = point.outcome->seconds;
    return result;
}

py::dict points_dict(const std::vector<Point>& points) {
    py::list list;
    for (const Point& point : points) list.append(point_dict(point));
    return py::dict("points"_a = list, "csv"_a = experiments::results_csv(points),
                    "summary"_a = experiments::summary_csv(points));
}

/// The sweep runs on other threads, because only this thread receives Ctrl-C. `before` has outcomes to
/// compare with, if any.
py::dict run_sweep(const Experiment& experiment, const std::string& directory,
                   experiments::SweepOptions options, const py::object& progress,
                   const std::vector<Point>& before) {
    Watch watch(progress);
    options.progress = [&](const experiments::SweepProgress& now) {
        return watch.report(static_cast<double>(now.finished) + now.fraction, static_cast<double>(now.total),
                            now.text);
    };
    const auto result = without_lock([&] {
        auto running = std::async(std::launch::async,
                                  [&] { return experiments::run_sweep(experiment, directory, options); });
        while (running.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) watch.look();
        return running.get();
    });
    watch.finish();
    py::dict out = points_dict(result.points);
    out["computed"] = result.computed;
    out["stopped"] = result.stopped;
    if (!before.empty()) {
        const experiments::Comparison comparison = experiments::compare(before, result.points);
        out["compared"] = comparison.compared;
        out["same_bits"] = comparison.same;
    }
    return out;
}

py::dict rerun(const std::string& provenance, const std::string& directory, experiments::SweepOptions options,
               const py::object& progress) {
    const experiments::Provenance before = experiments::read_provenance(provenance);
    options.shard = before.shard;
    if (experiments::plan_sweep(before.experiment, directory, options).missing == 0) {
        throw_invalid("directory", "one in which something is left to do",
                      fmt::format("'{}', where all of it is done", directory));
    }
    return run_sweep(before.experiment, directory, options, progress, before.points);
}

py::dict merge(const std::vector<std::string>& directories, const std::string& output) {
    return points_dict(without_lock([&] {
        return experiments::merge_sweeps({directories.begin(), directories.end()}, output);
    }));
}

py::dict plan(const Experiment& experiment, const std::string& directory,
              const experiments::SweepOptions& options) {
    const auto found = without_lock([&] { return experiments::plan_sweep(experiment, directory, options); });
    return py::dict("tasks"_a = found.tasks, "done"_a = found.done, "failed"_a = found.failed,
                    "missing"_a = found.missing, "seconds"_a = found.seconds, "measured"_a = found.measured);
}

}  // namespace

void bind_experiments(py::module_& module) {
    py::class_<Experiment>(module, "Experiment", "A study: its tasks in a fixed order, each once.")
        .def_readonly("name", &Experiment::name, "Of the study; the file's unless it has one.")
        .def("__len__", [](const Experiment& experiment) { return experiment.tasks.size(); })
        .def_property_readonly(
            "tasks",
            [](const Experiment& experiment) {
                py::list result;
                for (const auto& task : experiment.tasks) result.append(task_dict(task));
                return result;
            },
            "Settings of each point, as dictionaries.")
        .def("__repr__", [](const Experiment& experiment) {
            return fmt::format("<Experiment '{}' of {} tasks>", experiment.name, experiment.tasks.size());
        });
    py::class_<experiments::SweepOptions>(module, "SweepOptions")
        .def(py::init([](const std::string& shard, bool retry_failed, std::size_t threads) {
                 return experiments::SweepOptions{experiments::parse_shard("shard", shard), retry_failed,
                                                  threads};
             }),
             "shard"_a, "retry_failed"_a, "threads"_a);
    module.def(
        "grid",
        [](const std::string& name, const std::string& text, std::optional<double> unit, bool zero) {
            using experiments::Grid;
            return to_array(Grid(name, text, zero ? Grid::Zero::allowed : Grid::Zero::refused).values(unit));
        },
        "name"_a, "text"_a, "unit"_a, "zero"_a);
    module.def("estimator_names", [] { return names_of(experiments::estimator_table()); });
    module.def(
        "parse_experiment",
        [](const std::string& text, const std::string& source, const std::string& directory) {
            return experiments::parse_experiment(text, source, directory);
        },
        "text"_a, "source"_a, "directory"_a);
    module.def(
        "read_experiment", [](const std::string& file) { return experiments::read_experiment(file); },
        "file"_a);
    module.def(
        "run_sweep",
        [](const Experiment& experiment, const std::string& directory,
           const experiments::SweepOptions& options,
           const py::object& progress) { return run_sweep(experiment, directory, options, progress, {}); },
        "experiment"_a, "directory"_a, "options"_a, "progress"_a);
    module.def("rerun", &rerun, "provenance"_a, "directory"_a, "options"_a, "progress"_a);
    module.def("merge", &merge, "directories"_a, "output"_a);
    module.def("plan_sweep", &plan, "experiment"_a, "directory"_a, "options"_a);
}

}  // namespace bayesaim::python
