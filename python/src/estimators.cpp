// SPDX-License-Identifier: MIT
// AMP, gradient descent, predictions.
#include <algorithm>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/estimators/descent_checkpoint.hpp"
#include "bayesaim/estimators/prediction.hpp"

#include "dataset.hpp"

namespace bayesaim::python {
namespace {

using channels::Channel;

std::function<double(const linalg::Matrix&)> measure_of(const PythonDataset& dataset) {
    if (dataset.weights.empty()) return {};
    return [&](const linalg::Matrix& estimate) {
        return data::estimation_error(estimate, dataset.weights.front());
    };
}

py::dict run_amp(const PythonDataset& dataset, const priors::Prior& prior, const Channel& channel,
                 estimators::AmpOptions options, const py::object& initial_estimate, std::size_t threads,
                 const py::object& progress) {
    check_data(dataset, channel);
    const spectral::SpectralLaw& law = prior.law();
    if (!initial_estimate.is_none())
        options.initial_estimate = symmetric_matrix("initial estimate", initial_estimate);
    options.measure = measure_of(dataset);
    Watch watch(progress);
    options.progress = [&](const estimators::AmpIteration& now) {
        return watch.report(now.iteration, options.max_iterations,
                            now.true_error ? fmt::format("error {:.6f}", *now.true_error)
                                           : fmt::format("predicted error {:.6f}", now.predicted_error));
    };
    estimators::AmpResult result;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(threads);
        result = estimators::run_amp(dataset.data, law, channel, options, pool);
    }
    watch.finish();
    using Row = estimators::AmpIteration;
    const auto& record = result.record;
    py::dict out;
    out["error"] = options.measure ? py::cast(options.measure(result.estimate)) : py::object(py::none());
    out["estimate"] = to_array(std::move(result.estimate));
    out["predicted_error"] = result.predicted_error;
    out["status"] = std::string(to_string(result.status));
    out["true_errors"] = column(record, [](const Row& r) { return r.true_error.value_or(not_known); });
    out["predicted_errors"] = column(record, [](const Row& r) { return r.predicted_error; });
    out["self_overlaps"] = column(record, [](const Row& r) { return r.self_overlap; });
    out["conjugate_overlaps"] = column(record, [](const Row& r) { return r.conjugate; });
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

/// The file that keeps descents, to go on from after a stop; none without a name.
struct Checkpoint {
    std::string file, settings;
    int every = 100;  ///< steps
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

py::tuple predict(const PythonDataset& dataset, const py::object& estimate, double error,
                  const Channel& channel, std::size_t threads) {
    const linalg::Matrix matrix = symmetric_matrix("estimate", estimate);
    check_size("dimension of the estimate", matrix.rows(), dataset.tokens().dim());
    check_size("tokens of the channel", channel.tokens(), dataset.tokens().tokens());
    check_non_negative("error", error);
    estimators::Prediction result;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(threads);
        result = estimators::predict(dataset.tokens(), matrix, error, channel, pool);
    }
    return prediction_arrays(std::move(result), channel.tokens());
}

}  // namespace

py::tuple prediction_arrays(estimators::Prediction prediction, py::ssize_t tokens) {
    const std::vector<py::ssize_t> shape{prediction.plug_in.rows(), tokens, tokens};
    return py::make_tuple(reshaped(to_array(std::move(prediction.bayes_optimal)), shape),
                          reshaped(to_array(std::move(prediction.plug_in)), shape));
}

void bind_estimators(py::module_& module) {
    using estimators::AmpOptions;
    using estimators::GradientDescentOptions;
    py::class_<AmpOptions>(module, "AmpOptions")
        .def(py::init<>())
        .def_readwrite("max_iterations", &AmpOptions::max_iterations)
        .def_readwrite("tolerance", &AmpOptions::tolerance)
        .def_readwrite("damping", &AmpOptions::damping)
        .def_readwrite("adaptive_damping", &AmpOptions::adaptive_damping)
        .def_readwrite("initial_error", &AmpOptions::initial_error);
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
    module.def("run_amp", &run_amp, py::arg("dataset"), py::arg("prior"), py::arg("channel"),
               py::arg("options"), py::arg("initial_estimate"), py::arg("threads"), py::arg("progress"));
    module.def("run_descent", &run_descent, py::arg("dataset"), py::arg("channel"), py::arg("options"),
               py::arg("starts"), py::arg("checkpoint"), py::arg("threads"), py::arg("progress"));
    module.def("predict", &predict, py::arg("dataset"), py::arg("estimate"), py::arg("error"),
               py::arg("channel"), py::arg("threads"));
}

}  // namespace bayesaim::python
