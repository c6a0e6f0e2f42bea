// SPDX-License-Identifier: MIT
// AMP, gradient descent, predictions.
#include <algorithm>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/estimators/descent_checkpoint.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/experiments/estimator_table.hpp"

#include "dataset.hpp"

namespace bayesaim::python {
namespace {

using channels::Channel;
using linalg::Overlap;

std::function<double(const linalg::Matrix&)> measure_of(const PythonDataset& dataset) {
    if (dataset.weights.empty()) return {};
    return [&](const linalg::Matrix& estimate) {
        return data::estimation_error(estimate, dataset.weights.front());
    };
}

/// `initial`: the name of a start, or matrices; `initial_error` may be None.
py::dict run_amp(const PythonDataset& dataset, const model::Model& model, estimators::AmpOptions options,
                 const py::object& initial, const py::object& initial_error, std::uint64_t seed,
                 std::size_t threads, const py::object& progress) {
    check_data(dataset, model.channel());
    const int layers = model.layers();
    const bool known = !dataset.weights.empty();
    std::optional<std::string> start;
    if (py::isinstance<py::str>(initial)) {
        start = initial.cast<std::string>();
        if (start == "informed" && !known)
            throw_invalid("initial", "mean, prior or a matrix where the weights are not known", *start);
    } else {
        options.initial_estimates = symmetric_matrices("initial estimate", initial);
    }
    std::optional<Overlap> error;
    if (!initial_error.is_none()) error = covariance("initial_error", initial_error, layers);
    if (known) {
        options.measure = [&](std::span<const linalg::Matrix> estimates) {
            return data::estimation_errors(estimates, dataset.weights);
        };
    }
    Watch watch(progress);
    options.progress = [&](const estimators::AmpIteration& now) {
        return watch.report(now.iteration, options.max_iterations,
                            fmt::format("{} {:.6f}", known ? "error" : "predicted error",
                                        now.true_error.value_or(now.predicted_error).trace()));
    };
    estimators::AmpResult result;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(threads);
        if (start) {
            data::Synthetic problem{dataset.weights, {}};
            const Eigen::Index dim = dataset.tokens().dim();
            if (!known) problem.weights.assign(model.priors().size(), linalg::Matrix::Zero(dim, dim));
            experiments::set_initial(*start, model, problem, seed, options, pool);
        }
        if (error) options.initial_error = error;
        result = estimators::run_amp(dataset.data, model.laws(), model.channel(), options, pool);
    }
    watch.finish();
    using Row = estimators::AmpIteration;
    const auto& record = result.record;
    py::dict out;
    out["estimates"] = stacked(result.estimates);
    out["predicted_error"] = result.predicted_error.trace();
    out["error"] = py::none();
    out["predicted_error_matrix"] = to_array(result.predicted_error);
    out["error_matrix"] = py::none();
    if (known) {
        const Overlap measured = data::estimation_errors(result.estimates, dataset.weights);
        out["error"] = measured.trace();
        out["error_matrix"] = to_array(measured);
    }
    out["status"] = std::string(to_string(result.status));
    const Overlap unknown = Overlap::Constant(layers, layers, not_known);
    const auto add = [&](const char* name, auto value) { out[name] = history(record, layers, value); };
    add("true_errors", [&](const Row& r) { return r.true_error.value_or(unknown); });
    add("predicted_errors", [](const Row& r) { return r.predicted_error; });
    add("self_overlaps", [](const Row& r) { return r.self_overlap; });
    add("conjugate_overlaps", [](const Row& r) { return r.conjugate; });
    add("responses", [](const Row& r) { return r.response; });
    add("noise_variances", [](const Row& r) { return r.noise_covariance; });
    out["changes"] = column(record, [](const Row& r) { return r.change; });
    out["seconds"] = column(record, [](const Row& r) { return r.seconds; });
    return out;
}

py::dict descent_dict(const estimators::Descent& descent) {
    using Row = estimators::DescentStep;
    const auto& record = descent.record;
    py::dict out;
    out["weights"] = to_array(descent.weights);
    out["status"] = std::string(to_string(descent.status.value_or(Termination::stopped)));
    out["steps"] = descent.step;
    out["recorded_steps"] = column(record, [](const Row& r) { return r.step; });
    out["losses"] = column(record, [](const Row& r) { return r.loss; });
    out["gradient_norms"] = column(record, [](const Row& r) { return r.gradient_norm; });
    out["true_errors"] = column(record, [](const Row& r) { return r.true_error.value_or(not_known); });
    out["seconds"] = descent.seconds;
    return out;
}

int furthest_step(const std::vector<estimators::Descent>& descents) {
    int furthest = 0;
    for (const auto& one : descents) furthest = std::max(furthest, one.step);
    return furthest;
}

/// The checkpoint file of descents. Without a name there is none.
struct Checkpoint {
    std::string file, settings;
    int every = 100;  ///< steps between checkpoints
    bool resume = false;
};

py::dict run_descent(const PythonDataset& dataset, const Channel& channel,
                     estimators::GradientDescentOptions descent, int starts, const Checkpoint& checkpoint,
                     std::size_t threads, const py::object& progress) {
    check_data(dataset, channel);
    Watch watch(progress);
    descent.measure = measure_of(dataset);
    estimators::AveragedGradientDescentOptions options;
    options.descent = descent;
    options.starts = starts;
    options.progress_stride = std::min(options.progress_stride, checkpoint.every);
    if (checkpoint.resume) options.resume = estimators::read_descent_checkpoint(checkpoint.file).descents;
    int saved = options.resume.empty() ? 0 : furthest_step(options.resume);
    options.progress = [&](const std::vector<estimators::Descent>& descents) {
        double steps = 0, loss = 0;
        bool running = false;
        for (const auto& one : descents) {
            steps += one.step;
            if (!one.record.empty()) loss += one.record.back().loss;
            running |= !one.status;
        }
        const double count = static_cast<double>(descents.size());
        const bool go =
            watch.report(steps / count, descent.max_steps, fmt::format("mean loss {:.6g}", loss / count));
        const int furthest = furthest_step(descents);
        if (!checkpoint.file.empty() && (!go || !running || furthest >= saved + checkpoint.every)) {
            estimators::write_descent_checkpoint(checkpoint.file, {checkpoint.settings, "", descents});
            saved = furthest;
        }
        return go;
    };
    estimators::AveragedGradientDescentResult result;
    estimators::StartErrors errors;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(threads);
        result = run_averaged_gradient_descent(dataset.data, channel, options, pool);
        if (descent.measure) errors = measure_starts(result.descents, descent.measure);
    }
    watch.finish();
    py::dict out;
    py::list descents;
    for (const auto& one : result.descents) descents.append(descent_dict(one));
    out["descents"] = descents;
    out["estimate"] =
        result.estimate.size() > 0 ? to_array(std::move(result.estimate)) : py::object(py::none());
    out["status"] = std::string(to_string(result.status));
    out["errors"] = to_array(errors.each);
    out["averaged_errors"] = to_array(errors.averaged);
    return out;
}

/// (Bayes-optimal, plug-in), each (n, T, T).
py::tuple predict(const PythonDataset& dataset, const py::object& estimates, const py::object& error,
                  const Channel& channel, std::size_t threads) {
    const std::vector<linalg::Matrix> matrices = symmetric_matrices("estimate", estimates);
    const Overlap c = covariance("error", error, channel.layers());
    estimators::Prediction result;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(threads);
        result = estimators::predict(dataset.tokens(), matrices, c, channel, pool);
    }
    const std::vector<py::ssize_t> shape{result.plug_in.rows(), channel.tokens(), channel.tokens()};
    return py::make_tuple(reshaped(to_array(std::move(result.bayes_optimal)), shape),
                          reshaped(to_array(std::move(result.plug_in)), shape));
}

}  // namespace

void bind_estimators(py::module_& module) {
    using estimators::AmpOptions;
    using estimators::GradientDescentOptions;
    py::class_<AmpOptions>(module, "AmpOptions")
        .def(py::init<>())
        .def_readwrite("max_iterations", &AmpOptions::max_iterations)
        .def_readwrite("tolerance", &AmpOptions::tolerance)
        .def_readwrite("damping", &AmpOptions::damping)
        .def_readwrite("adaptive_damping", &AmpOptions::adaptive_damping)
        .def_property(
            "response", [](const AmpOptions& options) { return std::string(to_string(options.response)); },
            [](AmpOptions& options, const py::object& name) {
                options.response = estimators::parse_response("response", text("response", name));
            });
    py::class_<GradientDescentOptions>(module, "DescentOptions")
        .def(py::init<>())
        .def_readwrite("width", &GradientDescentOptions::width)
        .def_readwrite("learning_rate", &GradientDescentOptions::learning_rate)
        .def_readwrite("beta1", &GradientDescentOptions::beta1)
        .def_readwrite("beta2", &GradientDescentOptions::beta2)
        .def_readwrite("epsilon", &GradientDescentOptions::epsilon)
        .def_readwrite("max_steps", &GradientDescentOptions::max_steps)
        .def_readwrite("batch_size", &GradientDescentOptions::batch_size)
        .def_readwrite("gradient_tolerance", &GradientDescentOptions::gradient_tolerance)
        .def_readwrite("loss_tolerance", &GradientDescentOptions::loss_tolerance)
        .def_readwrite("seed", &GradientDescentOptions::seed)
        .def_readwrite("record_stride", &GradientDescentOptions::record_stride)
        .def_property(
            "plain",
            [](const GradientDescentOptions& options) {
                return options.optimizer == estimators::Optimizer::gradient_descent;
            },
            [](GradientDescentOptions& options, bool plain) {
                options.optimizer =
                    plain ? estimators::Optimizer::gradient_descent : estimators::Optimizer::adam;
            })
        .def_property(
            "single",
            [](const GradientDescentOptions& options) {
                return options.precision == data::Precision::float_precision;
            },
            [](GradientDescentOptions& options, bool single) {
                options.precision =
                    single ? data::Precision::float_precision : data::Precision::double_precision;
            });
    py::class_<Checkpoint>(module, "Checkpoint")
        .def(py::init<>())
        .def_readwrite("file", &Checkpoint::file)
        .def_readwrite("settings", &Checkpoint::settings)
        .def_readwrite("every", &Checkpoint::every)
        .def_readwrite("resume", &Checkpoint::resume);
    module.def(
        "checkpoint_settings",
        [](const std::string& file) { return estimators::read_descent_checkpoint(file).settings; },
        py::arg("file"));
    module.def(
        "student_columns",
        [](double width, Eigen::Index dim) {
            check_positive("width", width);
            return estimators::student_columns(width, dim);
        },
        py::arg("width"), py::arg("dim"));
    module.def("run_amp", &run_amp, py::arg("dataset"), py::arg("model"), py::arg("options"),
               py::arg("initial"), py::arg("initial_error"), py::arg("seed"), py::arg("threads"),
               py::arg("progress"));
    module.def("run_descent", &run_descent, py::arg("dataset"), py::arg("channel"), py::arg("options"),
               py::arg("starts"), py::arg("checkpoint"), py::arg("threads"), py::arg("progress"));
    module.def("predict", &predict, py::arg("dataset"), py::arg("estimates"), py::arg("error"),
               py::arg("channel"), py::arg("threads"));
}

}  // namespace bayesaim::python
