// SPDX-License-Identifier: MIT
// What training reaches: theory of regularised losses, their minimum on data, and its spectrum.
#include "bayesaim/estimators/erm.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/estimators/prediction.hpp"
#include "bayesaim/losses/table.hpp"
#include "bayesaim/model/model.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "bayesaim/theory/erm.hpp"
#include "bayesaim/theory/points.hpp"

#include "dataset.hpp"

namespace bayesaim::python {
namespace {

using channels::Channel;
using model::Model;
using theory::ErmPoint;
using TrainingOptions = estimators::ErmOptions;

constexpr const char* solvers[] = {"automatic", "message-passing", "proximal-gradient"};

/// What is trained: the loss by its name (None: the usual one of the channel), and the penalty.
struct ErmSettings {
    std::string loss;
    losses::Penalty penalty;
    channels::Integration integration;
    std::size_t threads;

    ErmSettings(const py::object& loss_name, const py::object& penalty_name, int integration_points,
                std::uint64_t seed, std::size_t thread_count)
        : loss(loss_name.is_none() ? "" : text("loss", loss_name)),
          penalty(losses::parse_penalty("penalty", text("penalty", penalty_name))),
          threads(thread_count) {
        integration.points = integration_points;
        integration.seed = seed;
    }
    std::unique_ptr<losses::Loss> loss_of(const Channel& channel) const {
        return losses::make_loss(loss, channel);
    }
    theory::ErmOptions options(ThreadPool* pool) const {
        theory::ErmOptions result;
        result.penalty = penalty;
        result.integration = integration;
        result.integration.pool = pool;
        return result;
    }
};

/// At the best regularisation if there is none.
ErmPoint solve(const spectral::SpectralLaw& teacher, const losses::Loss& loss, double alpha,
               std::optional<double> regularization, const theory::ErmOptions& options) {
    return regularization ? solve_erm(teacher, loss, alpha, *regularization, options)
                          : solve_optimal_erm(teacher, loss, alpha, options);
}

/// A point that a stopped run did not compute.
ErmPoint missing_point(double alpha, std::optional<double> regularization) {
    ErmPoint point;
    point.alpha = alpha;
    point.regularization = regularization.value_or(not_known);
    point.alignment = {not_known, not_known, not_known};
    for (double* value :
         {&point.error, &point.training_loss, &point.zero_fraction, &point.trace, &point.generalization_error,
          &point.gain, &point.noise_variance, &point.threshold, &point.relative_error, &point.objective})
        *value = not_known;
    point.status = Termination::stopped;
    return point;
}

/// The values of each point by name, model by model, for each regularisation, then those of a missing point, which give
/// names if there are no points. The models share a channel; `alpha` has as many values for each of them.
py::list curve(const std::vector<const Model*>& models, const Array& alpha,
               const std::vector<std::optional<double>>& regularizations, const ErmSettings& settings,
               const py::object& progress) {
    const auto loss = settings.loss_of(models.front()->channel());
    const auto columns = static_cast<std::size_t>(alpha.size()) / models.size(),
               rows = models.size() * regularizations.size(), count = rows * columns;
    std::vector<ErmPoint> points;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = i / columns, model = row / regularizations.size();
        points.push_back(missing_point(alpha.data()[model * columns + i % columns],
                                       regularizations[row % regularizations.size()]));
    }
    points.push_back(missing_point(not_known, std::nullopt));
    Watch watch(progress);
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(settings.threads);
        pool.stop_when([&] { return !watch.look(); });
        // Points in parallel, as the program does, unless the expectations inside a point take the time.
        const theory::ErmOptions options = settings.options(loss->sampled() ? &pool : nullptr);
        const auto report = [&](double fraction) {
            const double total = static_cast<double>(count);
            return watch.report(std::round(fraction * total), total, "");
        };
        theory::solve_points(count, loss->sampled(), pool, report, [&](std::size_t i) {
            const std::size_t row = i / columns;
            points[i] = solve(*models[row / regularizations.size()]->laws()[0], *loss, points[i].alpha,
                              regularizations[row % regularizations.size()], options);
        });
    }
    watch.finish();
    py::list result;
    for (const ErmPoint& point : points) result.append(to_dict(theory::values(point)));
    return result;
}

py::dict thresholds(const Model& model, const ErmSettings& settings) {
    const auto loss = settings.loss_of(model.channel());
    const theory::ErmThresholds found =
        without_lock([&] { return theory::erm_thresholds(*model.laws()[0], *loss, settings.penalty); });
    return py::dict("strong_recovery"_a = found.recovery, "interpolation"_a = found.interpolation);
}

/// The law of the eigenvalues of a trained matrix.
struct TrainedLaw {
    ErmPoint point;
    std::unique_ptr<const theory::TrainedSpectrum> spectrum;

    TrainedLaw(const Model& model, double alpha, std::optional<double> regularization,
               const ErmSettings& settings) {
        check_positive("alpha", alpha);
        const auto loss = settings.loss_of(model.channel());
        Watch watch{py::none()};
        try {
            const py::gil_scoped_release unlock;
            ThreadPool pool(settings.threads);
            pool.stop_when([&] { return !watch.look(); });
            point = solve(*model.laws()[0], *loss, alpha, regularization,
                          settings.options(loss->sampled() ? &pool : nullptr));
        } catch (const Stopped&) {
            // the exception of Python follows
        }
        watch.finish();
        if (!(point.noise_variance > 0))
            throw_unavailable("the spectrum", "at exact recovery, where the trained matrix is the teacher's");
        spectrum = std::make_unique<theory::TrainedSpectrum>(*model.laws()[0], point, settings.penalty);
    }
};

/// `initial`: a matrix, or None for 0.
py::dict run(const PythonDataset& dataset, const Channel& channel, const ErmSettings& settings,
             TrainingOptions options, const py::object& initial, const py::object& progress) {
    const auto loss = settings.loss_of(channel);
    check_data(dataset, channel);
    options.penalty = settings.penalty;
    if (!initial.is_none()) options.initial_estimate = symmetric_matrix("initial estimate", initial);
    const bool known = !dataset.weights.empty();
    if (known) {
        options.measure = [&](const linalg::Matrix& estimate) {
            return data::estimation_error(estimate, dataset.weights.front());
        };
    }
    Watch watch(progress);
    options.progress = [&](const estimators::ErmIteration& now) {
        return watch.report(now.iteration, options.max_iterations, fmt::format("change {:.1e}", now.change));
    };
    auto result = over_ranks(settings.threads, [&](ThreadPool& pool) {
        return estimators::run_erm(dataset.data, *loss, options, pool);
    });
    watch.finish();
    using Row = estimators::ErmIteration;
    const auto& record = result.record;
    py::dict out(
        "training_loss"_a = result.training_loss, "objective"_a = result.objective,
        "zero_fraction"_a = result.zero_fraction, "kkt_residual"_a = result.kkt_residual,
        "status"_a = std::string(to_string(result.status)), "error"_a = py::none(), "loss"_a = loss->name(),
        "true_errors"_a = column(record, [](const Row& row) { return row.true_error.value_or(not_known); }),
        "changes"_a = column(record, &Row::change), "zero_fractions"_a = column(record, &Row::zero_fraction),
        "curvatures"_a = column(record, &Row::curvature), "responses"_a = column(record, &Row::response),
        "seconds"_a = column(record, &Row::seconds));
    if (known) out["error"] = options.measure(result.estimate);
    out["estimate"] = to_array(std::move(result.estimate));
    return out;
}

/// The mean squared distance of the outputs of an estimate to those of the known weights, on new samples.
double test_error(const PythonDataset& dataset, const py::object& estimate, const Channel& channel,
                  Eigen::Index samples, std::uint64_t seed, std::size_t threads) {
    const linalg::Matrix trained = symmetric_matrix("estimate", estimate);
    return over_ranks(threads, [&](ThreadPool& pool) {
        const data::TestSet test = data::make_test_set(dataset.weights, channel, samples, seed, pool);
        const auto prediction = estimators::predict(*test.tokens, trained, 0, channel, pool);
        return estimators::mean_squared_distance(prediction.plug_in, test.targets, test.tokens->shares(),
                                                 pool);
    });
}

/// Mean and standard error of the values that are finite, and the number of standard errors between the mean and
/// the expected value; None where there is none.
py::tuple mean_of(const std::vector<double>& values, double expected) {
    const auto mean = numerics::mean_of(values);
    if (!mean) return py::make_tuple(not_known, py::none(), py::none());
    return py::make_tuple(mean->value, mean->standard_error, mean->z_score(expected));
}

std::vector<std::pair<double, double>> edges_of(const theory::TrainedSpectrum& spectrum) {
    std::vector<std::pair<double, double>> result;
    for (const auto& [low, high] : spectrum.edges()) result.emplace_back(low, high);
    return result;
}

}  // namespace

void bind_erm(py::module_& module) {
    py::class_<ErmSettings>(module, "ErmSettings")
        .def(py::init<const py::object&, const py::object&, int, std::uint64_t, std::size_t>(),
             "loss"_a.none(true), "penalty"_a, "integration_points"_a, "seed"_a, "threads"_a);
    module.def("erm_curve", &curve, "models"_a, "alpha"_a, "regularizations"_a, "settings"_a, "progress"_a);
    module.def("erm_thresholds", &thresholds, "model"_a, "settings"_a);
    py::class_<TrainedLaw>(module, "TrainedLaw")
        .def(py::init<const Model&, double, std::optional<double>, const ErmSettings&>(), "model"_a,
             "alpha"_a, "regularization"_a.none(true), "settings"_a, py::keep_alive<1, 2>())
        .def(
            "density",
            [](const TrainedLaw& law, const Array& eigenvalues) {
                return map(eigenvalues, [&](double x) { return law.spectrum->density(x); });
            },
            "eigenvalues"_a)
        .def_property_readonly("edges", [](const TrainedLaw& law) { return edges_of(*law.spectrum); })
        .def_property_readonly("point",
                               [](const TrainedLaw& law) { return to_dict(theory::values(law.point)); });
    py::class_<TrainingOptions>(module, "TrainingOptions")
        .def(py::init<>())
        .def_readwrite("regularization", &TrainingOptions::regularization)
        .def_readwrite("tolerance", &TrainingOptions::tolerance)
        .def_readwrite("max_iterations", &TrainingOptions::max_iterations)
        .def_readwrite("damping", &TrainingOptions::damping)
        .def_property(
            "solver",
            [](const TrainingOptions& options) { return solvers[static_cast<std::size_t>(options.solver)]; },
            [](TrainingOptions& options, const py::object& name) {
                options.solver = estimators::parse_solver("solver", text("solver", name));
            });
    module.def("run_erm", &run, "dataset"_a, "channel"_a, "settings"_a, "options"_a, "initial"_a,
               "progress"_a);
    module.def("test_error", &test_error, "dataset"_a, "estimate"_a, "channel"_a, "samples"_a, "seed"_a,
               "threads"_a);
    module.def("mean_of", &mean_of, "values"_a, "expected"_a);
}

}  // namespace bayesaim::python
