// SPDX-License-Identifier: MIT
// State evolution, thresholds, free entropy, generalisation.
#include "bayesaim/core/checks.hpp"
#include "bayesaim/model/model.hpp"
#include "bayesaim/theory/free_entropy.hpp"
#include "bayesaim/theory/required_samples.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "binding.hpp"

namespace bayesaim::python {
namespace {

using linalg::Overlap;
using model::Model;
using theory::EstimationCurve;
using theory::TheoryPoint;

/// Settings common to all functions of state evolution.
struct TheorySettings {
    bool small_width;
    std::size_t threads;
    theory::StateEvolutionOptions options;

    TheorySettings(bool small, double tolerance, int max_iterations, const py::object& method,
                   int integration_points, std::uint64_t seed, std::size_t thread_count)
        : small_width(small), threads(thread_count) {
        check_positive("tolerance", tolerance);
        options.tolerance = tolerance;
        options.max_iterations = max_iterations;
        options.method = theory::parse_method("method", text("method", method));
        options.integration.points = integration_points;
        options.integration.seed = seed;
    }
    theory::StateEvolutionOptions with_pool(ThreadPool* pool) const {
        theory::StateEvolutionOptions result = options;
        result.integration.pool = pool;
        return result;
    }
    std::unique_ptr<EstimationCurve> curve_of(const Model& model) const {
        if (small_width) return std::make_unique<theory::SmallWidthCurve>();
        return theory::make_curve(model.laws(), model.channel().geometry());
    }
};

theory::Start start_of(bool informed) {
    return informed ? theory::Start::informed : theory::Start::uninformed;
}

/// A point that a stopped run did not compute.
TheoryPoint missing_point(double alpha, int layers) {
    const Overlap none = Overlap::Constant(layers, layers, not_known);
    return {alpha,
            {{none, none}, none, not_known, 0, Termination::stopped},
            not_known,
            {not_known, not_known, not_known}};
}

/// The values of each point by name, then those of a missing point, which give names and shapes if there are
/// no points. The models share a channel; `alpha` has as many values for each of them, model by model.
/// `branch` is the optimal, the uninformed or the informed fixed point. `along`: each point of a model starts
/// from the one before, as in the program's phase diagrams.
py::list curve(const std::vector<const Model*>& models, const Array& alpha, const std::string& branch,
               bool generalization, bool free_entropy, bool along, const TheorySettings& settings,
               const py::object& progress) {
    std::vector<std::unique_ptr<EstimationCurve>> priors;
    for (const Model* model : models) priors.push_back(settings.curve_of(*model));
    const channels::Channel& channel = models.front()->channel();
    const int layers = models.front()->channel().components();
    const auto count = static_cast<std::size_t>(alpha.size());
    std::vector<TheoryPoint> points;
    for (std::size_t i = 0; i < count; ++i) points.push_back(missing_point(alpha.data()[i], layers));
    points.push_back(missing_point(not_known, layers));
    std::vector<double> entropies(points.size(), not_known);
    Watch watch(progress);
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(settings.threads);
        pool.stop_when([&] { return !watch.look(); });
        const bool sampled = channel.sampled();
        const auto plain = settings.with_pool(sampled ? &pool : nullptr);
        std::atomic<std::size_t> finished = 0;
        const auto solve_with = [&](std::size_t i, const theory::StateEvolutionOptions& options) {
            if (!watch.look()) return;
            TheoryPoint point = points[i];
            const EstimationCurve& prior = *priors[i * models.size() / count];
            const bool optimal = branch == "optimal";
            if (optimal && generalization) {
                point = solve_theory(prior, channel, point.alpha, options);
            } else if (optimal) {
                const auto both = solve_bayes_optimal(prior, channel, point.alpha, options);
                point.fixed_point = both.optimal();
                point.algorithmic_error = both.uninformed.error();
            } else {
                point.fixed_point = solve_state_evolution(prior, channel, point.alpha,
                                                          start_of(branch == "informed"), options);
            }
            if (generalization && !optimal)
                point.generalization =
                    generalization_error(prior, point.fixed_point, channel, options.integration);
            if (free_entropy)
                entropies[i] = theory::free_entropy(prior, channel, point.alpha, point.fixed_point, options)
                                   .value_or(not_known);
            points[i] = point;
            watch.report(static_cast<double>(++finished), static_cast<double>(count), "");
        };
        const auto solve = [&](std::size_t i) { solve_with(i, plain); };
        const auto solve_row = [&](std::size_t row) {
            auto options = plain;
            const std::size_t size = count / models.size();
            for (std::size_t i = row * size; i < (row + 1) * size; ++i) {
                solve_with(i, options);
                options.neighbour = neighbour_of(points[i].alpha, points[i].fixed_point);
            }
        };
        // Points in parallel, as the program does, unless the expectations inside a point take the time.
        try {
            if (sampled) {
                for (std::size_t i = 0; i < count; ++i) solve(i);
            } else if (along) {
                pool.for_each(models.size(), solve_row);
            } else {
                pool.for_each(count, solve);
            }
        } catch (const Stopped&) {
            // The points that are done are kept.
        }
    }
    watch.finish();
    py::list result;
    for (std::size_t i = 0; i < points.size(); ++i) {
        Record record = values(points[i]);
        record["free_entropy"] = entropies[i];
        result.append(to_dict(record));
    }
    return result;
}

py::array trajectory(const Model& model, double alpha, int iterations, bool informed,
                     const TheorySettings& settings) {
    const auto prior = settings.curve_of(model);
    const auto points = without_lock(settings.threads, [&](ThreadPool& pool) {
        return state_evolution_trajectory(*prior, model.channel(), alpha, iterations, start_of(informed),
                                          settings.with_pool(&pool));
    });
    return history(points, model.channel().components(), [](const auto& point) { return point.error; });
}

std::optional<double> strong_recovery(const Model& model, const TheorySettings& settings) {
    return theory::strong_recovery(*settings.curve_of(model), model.channel());
}

std::optional<double> required_samples(const Model& model, double error, const TheorySettings& settings) {
    const auto prior = settings.curve_of(model);
    Watch watch{py::none()};
    const auto alpha = without_lock(settings.threads, [&](ThreadPool& pool) -> std::optional<double> {
        try {
            return theory::required_samples(*prior, model.channel(), error, settings.with_pool(&pool),
                                            [&] { return watch.look(); });
        } catch (const Stopped&) {
            return std::nullopt;  // `finish` raises what stopped it
        }
    });
    watch.finish();
    return alpha;
}

py::dict thresholds(const Model& model, double lowest, double highest, const TheorySettings& settings) {
    const auto prior = settings.curve_of(model);
    Watch watch{py::none()};
    theory::TransitionSearch search;
    search.lowest = lowest;
    search.highest = highest;
    search.progress = [&](double) { return watch.look(); };
    const auto found = without_lock(settings.threads, [&](ThreadPool& pool) {
        return find_thresholds(*prior, model.channel(), search, settings.with_pool(&pool));
    });
    watch.finish();
    return py::dict("weak_recovery_scaled"_a = found.weak_recovery_scaled,
                    "strong_recovery"_a = found.strong_recovery,
                    "information_theoretic"_a = found.information_theoretic,
                    "algorithmic"_a = found.algorithmic, "spinodal"_a = found.appears);
}

double recovery_growth_rate(const Model& model, double alpha, const TheorySettings& settings) {
    const auto prior = settings.curve_of(model);
    const py::gil_scoped_release unlock;
    ThreadPool pool(settings.threads);
    return theory::recovery_growth_rate(*prior, model.channel(), alpha,
                                        settings.with_pool(&pool).integration);
}

}  // namespace

void bind_theory(py::module_& module) {
    py::class_<TheorySettings>(module, "TheorySettings")
        .def(py::init<bool, double, int, const py::object&, int, std::uint64_t, std::size_t>(),
             "small_width"_a, "tolerance"_a, "max_iterations"_a, "method"_a, "integration_points"_a, "seed"_a,
             "threads"_a);
    module.def("theory_curve", &curve, "models"_a, "alpha"_a, "branch"_a, "generalization"_a,
               "free_entropy"_a, "along"_a, "settings"_a, "progress"_a);
    module.def("trajectory", &trajectory, "model"_a, "alpha"_a, "iterations"_a, "informed"_a, "settings"_a);
    module.def("strong_recovery", &strong_recovery, "model"_a, "settings"_a);
    module.def("required_samples", &required_samples, "model"_a, "error"_a, "settings"_a);
    module.def("thresholds", &thresholds, "model"_a, "lowest"_a, "highest"_a, "settings"_a);
    module.def("recovery_growth_rate", &recovery_growth_rate, "model"_a, "alpha"_a, "settings"_a);
}

}  // namespace bayesaim::python
