// SPDX-License-Identifier: MIT
// Studies, as in `bayesaim sweep`, `merge` and `rerun`.
#include <chrono>
#include <future>

#include <fmt/format.h>

#include "bayesaim/core/table.hpp"
#include "bayesaim/experiments/estimator_table.hpp"
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

py::list point_list(const std::vector<Point>& points) {
    py::list result;
    for (const Point& point : points) result.append(point_dict(point));
    return result;
}

py::dict points_dict(const std::vector<Point>& points) {
    py::dict out;
    out["points"] = point_list(points);
    out["csv"] = experiments::results_csv(points);
    out["summary"] = experiments::summary_csv(points);
    return out;
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
    experiments::SweepResult result;
    {
        const py::gil_scoped_release unlock;
        auto running = std::async(std::launch::async,
                                  [&] { return experiments::run_sweep(experiment, directory, options); });
        while (running.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) watch.look();
        result = running.get();
    }
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
    std::vector<Point> points;
    {
        const py::gil_scoped_release unlock;
        points = experiments::merge_sweeps({directories.begin(), directories.end()}, output);
    }
    return points_dict(points);
}

py::dict plan(const Experiment& experiment, const std::string& directory,
              const experiments::SweepOptions& options) {
    experiments::SweepPlan found;
    {
        const py::gil_scoped_release unlock;
        found = experiments::plan_sweep(experiment, directory, options);
    }
    py::dict out;
    out["tasks"] = found.tasks;
    out["done"] = found.done;
    out["failed"] = found.failed;
    out["missing"] = found.missing;
    out["seconds"] = found.seconds;
    out["measured"] = found.measured;
    return out;
}

}  // namespace

void bind_experiments(py::module_& module) {
    py::class_<Experiment>(module, "Experiment", "A study: its tasks in a fixed order, each once.")
        .def_readonly("name", &Experiment::name)
        .def("__len__", [](const Experiment& experiment) { return experiment.tasks.size(); })
        .def_property_readonly("tasks",
                               [](const Experiment& experiment) {
                                   py::list result;
                                   for (const auto& task : experiment.tasks) result.append(task_dict(task));
                                   return result;
                               })
        .def("__repr__", [](const Experiment& experiment) {
            return fmt::format("<Experiment '{}' of {} tasks>", experiment.name, experiment.tasks.size());
        });
    py::class_<experiments::SweepOptions>(module, "SweepOptions")
        .def(py::init<>())
        .def_readwrite("retry_failed", &experiments::SweepOptions::retry_failed)
        .def_readwrite("threads", &experiments::SweepOptions::threads)
        .def(
            "set_shard",
            [](experiments::SweepOptions& options, const std::string& text) {
                options.shard = experiments::parse_shard("shard", text);
            },
            py::arg("text"));
    module.def("estimator_names", [] { return names_of(experiments::estimator_table()); });
    module.def(
        "parse_experiment",
        [](const std::string& text, const std::string& source, const std::string& directory) {
            return experiments::parse_experiment(text, source, directory);
        },
        py::arg("text"), py::arg("source"), py::arg("directory"));
    module.def(
        "read_experiment", [](const std::string& file) { return experiments::read_experiment(file); },
        py::arg("file"));
    module.def(
        "run_sweep",
        [](const Experiment& experiment, const std::string& directory,
           const experiments::SweepOptions& options,
           const py::object& progress) { return run_sweep(experiment, directory, options, progress, {}); },
        py::arg("experiment"), py::arg("directory"), py::arg("options"), py::arg("progress"));
    module.def("rerun", &rerun, py::arg("provenance"), py::arg("directory"), py::arg("options"),
               py::arg("progress"));
    module.def("merge", &merge, py::arg("directories"), py::arg("output"));
    module.def("plan_sweep", &plan, py::arg("experiment"), py::arg("directory"), py::arg("options"));
}

}  // namespace bayesaim::python
