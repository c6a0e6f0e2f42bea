// SPDX-License-Identifier: MIT
// AMP, gradient descent, predictions.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/saved_state.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/estimators/averaged_gradient_descent.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/experiments/estimator_table.hpp"

#include "dataset.hpp"

namespace bayesaim::python {
namespace {

using channels::Channel;
using linalg::Overlap;

/// One matrix for each layer; symmetric for tied attention.
std::vector<linalg::Matrix> weights_for(const Channel& channel, const char* name, const py::handle& value) {
    return channel.geometry().symmetric() ? symmetric_matrices(name, value) : matrices(name, value);
}

/// `initial`: the name of a start, or matrices; `initial_error` may be None.
py::dict run_amp(const PythonDataset& dataset, const model::Model& model, estimators::AmpOptions options,
                 const py::object& initial, const py::object& initial_error, std::uint64_t seed,
                 std::size_t threads, const py::object& progress) {
    check_data(dataset, model.channel());
    const int layers = model.channel().components();
    const bool known = !dataset.weights.empty();
    std::optional<std::string> start;
    if (py::isinstance<py::str>(initial)) {
        start = initial.cast<std::string>();
        if (start == "informed" && !known)
            throw_invalid("initial", "mean, prior or a matrix where the weights are not known", *start);
    } else {
        options.initial_estimates = weights_for(model.channel(), "initial estimate", initial);
    }
    std::optional<Overlap> error;
    if (!initial_error.is_none()) error = covariance("initial_error", initial_error, layers);
    if (known) {
        options.measure = [&](std::span<const linalg::Matrix> estimates) {
            return data::estimation_errors(model.channel().geometry(), estimates, dataset.weights);
        };
    }
    Watch watch(progress);
    options.progress = [&](const estimators::AmpIteration& now) {
        return watch.report(now.iteration, options.max_iterations,
                            fmt::format("{} {:.6f}", known ? "error" : "predicted error",
                                        now.true_error.value_or(now.predicted_error).trace()));
    };
    const auto result = over_ranks(threads, [&](ThreadPool& pool) {
        if (start) {
            data::Synthetic problem{dataset.weights, {}};
            const Eigen::Index dim = dataset.tokens().dim(), key_dim = dataset.data.keys().dim();
            if (!known) problem.weights.assign(model.priors().size(), linalg::Matrix::Zero(dim, key_dim));
            experiments::set_initial(*start, model, problem, seed, options, pool);
        }
        if (error) options.initial_error = error;
        return estimators::run_amp(dataset.data, model.laws(), model.channel(), options, pool);
    });
    watch.finish();
    using Row = estimators::AmpIteration;
    const auto& record = result.record;
    py::dict out("estimates"_a = stacked(result.estimates),
                 "status"_a = std::string(to_string(result.status)),
                 "predicted_error"_a = result.predicted_error.trace(), "error"_a = py::none(),
                 "predicted_error_matrix"_a = to_array(result.predicted_error), "error_matrix"_a = py::none(),
                 "changes"_a = column(record, &Row::change), "seconds"_a = column(record, &Row::seconds));
    if (known) {
        const Overlap measured =
            data::estimation_errors(model.channel().geometry(), result.estimates, dataset.weights);
        out["error"] = measured.trace();
        out["error_matrix"] = to_array(measured);
    }
    const Overlap unknown = Overlap::Constant(layers, layers, not_known);
    const auto add = [&](const char* name, auto value) { out[name] = history(record, layers, value); };
    add("true_errors", [&](const Row& row) { return row.true_error.value_or(unknown); });
    add("predicted_errors", &Row::predicted_error);
    add("self_overlaps", &Row::self_overlap);
    add("conjugate_overlaps", &Row::conjugate);
    add("responses", &Row::response);
    add("noise_variances", &Row::noise_covariance);
    return out;
}

py::dict descent_dict(const estimators::Descent& descent) {
    using Row = estimators::DescentStep;
    const auto& record = descent.record;
    return py::dict(
        "weights"_a = to_array(descent.weights), "factors"_a = descent.factors, "steps"_a = descent.step,
        "seconds"_a = descent.seconds,
        "status"_a = std::string(to_string(descent.status.value_or(Termination::stopped))),
        "recorded_steps"_a = column(record, &Row::step), "losses"_a = column(record, &Row::loss),
        "gradient_norms"_a = column(record, &Row::gradient_norm),
        "true_errors"_a = column(record, [](const Row& row) { return row.true_error.value_or(not_known); }));
}

int furthest_step(const std::vector<estimators::Descent>& descents) {
    int furthest = 0;
    for (const auto& one : descents) furthest = std::max(furthest, one.step);
    return furthest;
}

/// The checkpoint file of descents. Without a name there is none.
struct Checkpoint {
    std::string file, settings;
    int every;  ///< steps between checkpoints
    bool resume;
};

/// From their names in Python; `plain` stands for gradient descent without Adam, `single` for floats.
estimators::GradientDescentOptions descent_options(const py::dict& settings) {
    estimators::GradientDescentOptions options;
    const auto read = [&]<class Value>(const char* name, Value& value) {
        value = settings[name].cast<Value>();
    };
    read("width", options.width);
    read("learning_rate", options.learning_rate);
    read("beta1", options.beta1);
    read("beta2", options.beta2);
    read("epsilon", options.epsilon);
    read("max_steps", options.max_steps);
    read("batch_size", options.batch_size);
    read("gradient_tolerance", options.gradient_tolerance);
    read("loss_tolerance", options.loss_tolerance);
    read("seed", options.seed);
    read("record_stride", options.record_stride);
    if (settings.contains("weight_decay")) read("weight_decay", options.weight_decay);
    if (settings["plain"].cast<bool>()) options.optimizer = estimators::Optimizer::gradient_descent;
    if (!settings["single"].cast<bool>()) options.precision = data::Precision::double_precision;
    return options;
}

py::dict run_descent(const PythonDataset& dataset, const Channel& channel, const py::dict& settings,
                     int starts, const Checkpoint& checkpoint, std::size_t threads,
                     const py::object& progress) {
    check_data(dataset, channel);
    Watch watch(progress);
    estimators::GradientDescentOptions descent = descent_options(settings);
    if (!dataset.weights.empty()) {
        descent.measure = [&](const linalg::Matrix& estimate) {
            return data::estimation_error(estimate, dataset.weights.front());
        };
    }
    estimators::AveragedGradientDescentOptions options;
    options.descent = descent;
    options.starts = starts;
    options.progress_stride = std::min(options.progress_stride, checkpoint.every);
    if (checkpoint.resume) load(data::read_checkpoint(checkpoint.file).state, "descents", options.resume);
    int saved = furthest_step(options.resume);
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
            data::Checkpoint made{checkpoint.settings};
            save(made.state, "descents", descents);
            data::write_checkpoint(checkpoint.file, made);
            saved = furthest;
        }
        return go;
    };
    estimators::StartErrors errors;
    auto result = over_ranks(threads, [&](ThreadPool& pool) {
        auto found = run_averaged_gradient_descent(dataset.data, channel, options, pool);
        if (descent.measure) errors = measure_starts(found.descents, descent.measure);
        return found;
    });
    watch.finish();
    py::list descents;
    for (const auto& one : result.descents) descents.append(descent_dict(one));
    const bool averaged = result.estimate.size() > 0;
    py::object regularization = py::none();
    if (descent.weight_decay > 0)
        regularization = py::float_(estimators::equivalent_regularization(descent.weight_decay, descent.width,
                                                                          dataset.data.tokens->dim(),
                                                                          result.descents.front().factors));
    return py::dict("descents"_a = descents, "status"_a = std::string(to_string(result.status)),
                    "estimate"_a = averaged ? to_array(std::move(result.estimate)) : py::object(py::none()),
                    "errors"_a = to_array(errors.each), "averaged_errors"_a = to_array(errors.averaged),
                    "regularization"_a = regularization);
}

/// (Bayes-optimal, plug-in), each (n, T, T).
py::tuple predict(const PythonDataset& dataset, const py::object& estimates, const py::object& error,
                  const Channel& channel, const py::object& given_terms, std::size_t threads) {
    const std::vector<linalg::Matrix> weights = weights_for(channel, "estimate", estimates);
    data::LinearTerms terms;
    if (!given_terms.is_none()) {
        const auto parts = given_terms.cast<py::tuple>();
        const auto vector = [](const py::handle& value) {
            if (value.is_none()) return linalg::Vector();
            const Array array = numbers("term", value, 1);
            return linalg::Vector(Eigen::Map<const linalg::Vector>(array.data(), array.size()));
        };
        terms = {vector(parts[0]), vector(parts[1]), parts[2].cast<double>(), parts[3].cast<double>()};
        // Those of logits; indices subtract the trace.
        if (channel.geometry().symmetric() || channel.geometry().parts() == 2)
            terms.diagonal += weights[0].trace() / std::sqrt(static_cast<double>(weights[0].rows()));
    }
    Overlap c = covariance("error", error, channel.components());
    // One number is the error of S, half of it for each part.
    const channels::Geometry geometry = channel.geometry();
    if (geometry.parts() == 2 && !py::isinstance<py::array>(error)) c /= 2;
    auto result = without_lock(threads, [&](ThreadPool& pool) {
        return estimators::predict(dataset.tokens(), dataset.data.keys(), weights, c, channel, pool, terms);
    });
    const std::vector<py::ssize_t> shape{result.plug_in.rows(), geometry.queries, geometry.keys};
    return py::make_tuple(reshaped(to_array(std::move(result.bayes_optimal)), shape),
                          reshaped(to_array(std::move(result.plug_in)), shape));
}

}  // namespace

void bind_estimators(py::module_& module) {
    using estimators::AmpOptions;
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
    py::class_<Checkpoint>(module, "Checkpoint")
        .def(py::init<std::string, std::string, int, bool>(), "file"_a, "settings"_a, "every"_a, "resume"_a);
    module.def(
        "checkpoint_settings", [](const std::string& file) { return data::read_checkpoint(file).settings; },
        "file"_a);
    module.def(
        "student_columns",
        [](double width, Eigen::Index dim) {
            check_positive("width", width);
            return estimators::student_columns(width, dim);
        },
        "width"_a, "dim"_a);
    module.def("run_amp", &run_amp, "dataset"_a, "model"_a, "options"_a, "initial"_a, "initial_error"_a,
               "seed"_a, "threads"_a, "progress"_a);
    module.def("run_descent", &run_descent, "dataset"_a, "channel"_a, "settings"_a, "starts"_a,
               "checkpoint"_a, "threads"_a, "progress"_a);
    module.def("predict", &predict, "dataset"_a, "estimates"_a, "error"_a, "channel"_a, "terms"_a.none(true),
               "threads"_a);
}

}  // namespace bayesaim::python
