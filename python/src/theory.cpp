// SPDX-License-Identifier: MIT
// State evolution, thresholds, free entropy, generalisation.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "bayesaim/priors/prior.hpp"
#include "bayesaim/theory/thresholds.hpp"

#include "theory_settings.hpp"

namespace bayesaim::python {
namespace {

using channels::Channel;
using priors::Prior;
using theory::EstimationCurve;
using theory::FixedPoint;

/// The prior as state evolution sees it. Asks a prior written in Python for its law while the lock is held.
std::unique_ptr<EstimationCurve> curve_of(const Prior& prior, bool small_width) {
    if (small_width) return std::make_unique<theory::SmallWidthCurve>();
    return std::make_unique<theory::SpectralCurve>(prior.law());
}

/// One row of a curve, in the order of `columns`.
constexpr std::array<const char*, 10> columns = {"alpha",
                                                 "estimation_error",
                                                 "standard_error",
                                                 "overlap",
                                                 "conjugate_overlap",
                                                 "generalization_error",
                                                 "generalization_standard_error",
                                                 "plugin_generalization_error",
                                                 "algorithmic_error",
                                                 "free_entropy"};
using Row = std::array<double, columns.size()>;

/// Columns that take time of their own.
struct Wanted {
    bool generalization, free_entropy;
};

Row row_of(const EstimationCurve& prior, const Channel& channel, double alpha, const FixedPoint& point,
           double algorithmic_error, const Wanted& wanted, const theory::StateEvolutionOptions& options) {
    channels::GeneralizationError generalization{not_known, not_known, not_known};
    if (wanted.generalization) generalization = generalization_error(point, channel, options.integration);
    const auto entropy =
        wanted.free_entropy ? free_entropy(prior, channel, alpha, point, options) : std::nullopt;
    return {alpha,
            point.error(),
            point.relative_error * point.error(),
            point.parameters.overlap(0, 0),
            point.scalar_conjugate(),
            generalization.bayes_optimal,
            generalization.relative_error * generalization.bayes_optimal,
            generalization.plug_in,
            algorithmic_error,
            entropy.value_or(not_known)};
}

/// `branch`: the optimal fixed point, or the uninformed or the informed one.
py::dict curve(const Prior& prior, const Channel& channel, const Array& alpha, const std::string& branch,
               bool generalization, bool free_entropy, const TheorySettings& settings,
               const py::object& progress) {
    const auto error_curve = curve_of(prior, settings.small_width);
    const auto count = static_cast<std::size_t>(alpha.size());
    const double* alphas = alpha.data();
    Row missing;  // what a stopped run leaves
    missing.fill(not_known);
    std::vector<Row> rows(count, missing);
    std::vector<Termination> status(count, Termination::stopped);
    std::vector<int> iterations(count);
    Watch watch(progress);
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(settings.threads);
        const bool sampled = channel.sampled();
        const auto options = settings.options(sampled ? &pool : nullptr);
        std::atomic<std::size_t> finished = 0;
        const auto solve = [&](std::size_t i) {
            FixedPoint point;
            double algorithmic = not_known;
            if (branch == "optimal") {
                const auto both = solve_bayes_optimal(*error_curve, channel, alphas[i], options);
                point = both.optimal();
                algorithmic = both.uninformed.error();
            } else {
                point = solve_state_evolution(*error_curve, channel, alphas[i],
                                              start_of(branch == "informed"), options);
            }
            rows[i] = row_of(*error_curve, channel, alphas[i], point, algorithmic,
                             {generalization, free_entropy}, options);
            status[i] = point.status;
            iterations[i] = point.iterations;
        };
        // As the program does: points in parallel, unless the expectations inside a point take the time.
        // Points are cheap where there are many of them, reports are not.
        const std::size_t block = sampled ? 1 : std::clamp<std::size_t>(count / 100, 1, 64);
        const auto solve_block = [&](std::size_t b) {
            if (!watch.look()) return;
            const Range range = block_range(count, block, b);
            for (std::size_t i = range.begin; i < range.end; ++i) solve(i);
            finished += range.size();
            watch.report(static_cast<double>(finished), static_cast<double>(count), "");
        };
        const std::size_t blocks = block_count(count, block);
        if (sampled) {
            for (std::size_t b = 0; b < blocks; ++b) solve_block(b);
        } else {
            pool.for_each(blocks, solve_block);
        }
    }
    watch.finish();
    py::dict result;
    std::vector<double> values(count);
    for (std::size_t k = 0; k < columns.size(); ++k) {
        for (std::size_t i = 0; i < count; ++i) values[i] = k == 0 ? alphas[i] : rows[i][k];
        result[columns[k]] = to_array(values);
    }
    py::list texts;
    for (const Termination one : status) texts.append(std::string(to_string(one)));
    result["status"] = texts;
    result["iterations"] = py::cast(iterations);
    return result;
}

py::array trajectory(const Prior& prior, const Channel& channel, double alpha, int iterations, bool informed,
                     const TheorySettings& settings) {
    const auto error_curve = curve_of(prior, settings.small_width);
    check_at_least("iterations", iterations, 0);
    std::vector<double> errors;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(settings.threads);
        for (const auto& point : state_evolution_trajectory(*error_curve, channel, alpha, iterations,
                                                            start_of(informed), settings.options(&pool)))
            errors.push_back(point.error.trace());
    }
    return to_array(errors);
}

/// As `bayesaim threshold`.
py::dict thresholds(const Prior& prior, const Channel& channel, double lowest, double highest,
                    const TheorySettings& settings) {
    const auto error_curve = curve_of(prior, settings.small_width);
    std::optional<double> strong, information_theoretic, algorithmic, appears;
    double weak = 0;
    {
        const py::gil_scoped_release unlock;
        ThreadPool pool(settings.threads);
        const auto options = settings.options(&pool);
        strong = information_theoretic = algorithmic = strong_recovery(*error_curve, channel);
        if (!strong && !channel.sampled()) {
            if (const auto transition = find_first_order_transition(*error_curve, channel, lowest, highest)) {
                appears = transition->appears;
                information_theoretic = transition->information_theoretic;
                algorithmic = transition->algorithmic;
            }
        }
        weak = theory::weak_recovery_scaled(channel, options.integration);
    }
    py::dict result;
    result["weak_recovery_scaled"] = weak;
    result["strong_recovery"] = strong;
    result["information_theoretic"] = information_theoretic;
    result["algorithmic"] = algorithmic;
    result["spinodal"] = appears;
    return result;
}

}  // namespace

void bind_theory(py::module_& module) {
    py::class_<TheorySettings>(module, "TheorySettings")
        .def(py::init<>())
        .def_readwrite("small_width", &TheorySettings::small_width)
        .def_readwrite("tolerance", &TheorySettings::tolerance)
        .def_readwrite("max_iterations", &TheorySettings::max_iterations)
        .def_readwrite("integration_points", &TheorySettings::integration_points)
        .def_readwrite("seed", &TheorySettings::seed)
        .def_readwrite("threads", &TheorySettings::threads);
    module.def("theory_curve", &curve, py::arg("prior"), py::arg("channel"), py::arg("alpha"),
               py::arg("branch"), py::arg("generalization"), py::arg("free_entropy"), py::arg("settings"),
               py::arg("progress"));
    module.def("trajectory", &trajectory, py::arg("prior"), py::arg("channel"), py::arg("alpha"),
               py::arg("iterations"), py::arg("informed"), py::arg("settings"));
    module.def("thresholds", &thresholds, py::arg("prior"), py::arg("channel"), py::arg("lowest"),
               py::arg("highest"), py::arg("settings"));
}

}  // namespace bayesaim::python
