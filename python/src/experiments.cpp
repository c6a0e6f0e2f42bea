// SPDX-License-Identifier: MIT
// Studies: what `bayesaim sweep` does.
#include <chrono>
#include <future>

#include <fmt/format.h>

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

/// The sweep works on threads of its own; this one, which alone hears of Ctrl-C, waits and listens.
py::dict run_sweep(const Experiment& experiment, const std::string& directory,
                   experiments::SweepOptions options, const py::object& progress) {
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
    py::dict out;
    out["points"] = point_list(result.points);
    out["computed"] = result.computed;
    out["stopped"] = result.stopped;
    out["csv"] = experiments::results_csv(result.points);
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
    module.def("estimator_names", &experiments::estimator_names);
    module.def(
        "parse_experiment",
        [](const std::string& text, const std::string& source, const std::string& directory) {
            return experiments::parse_experiment(text, source, directory);
        },
        py::arg("text"), py::arg("source"), py::arg("directory"));
    module.def(
        "read_experiment", [](const std::string& file) { return experiments::read_experiment(file); },
        py::arg("file"));
    module.def("run_sweep", &run_sweep, py::arg("experiment"), py::arg("directory"), py::arg("options"),
               py::arg("progress"));
}

}  // namespace bayesaim::python
