// SPDX-License-Identifier: MIT
#include "bayesaim/deep.hpp"

#include <cmath>

#include <fmt/format.h>

#include "bayesaim/channels/deep_attention.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/data/deep_attention.hpp"
#include "bayesaim/estimators/deep_amp.hpp"
#include "bayesaim/experiments/grid.hpp"
#include "bayesaim/interrupt.hpp"
#include "bayesaim/progress.hpp"
#include "bayesaim/theory/deep_state_evolution.hpp"

namespace bayesaim::program {
namespace {

/// The channel, and a prior for each of its layers.
struct DeepModel {
    channels::DeepAttention channel;
    std::vector<std::unique_ptr<priors::Prior>> owned;
    std::vector<const priors::Prior*> priors;
    std::vector<const spectral::SpectralLaw*> laws;
    Json configuration;

    DeepModel(const ChannelArguments& channel_arguments, const PriorArguments& prior_arguments)
        : channel({.layers = channel_arguments.layers,
                   .tokens = channel_arguments.options.tokens,
                   .beta = channel_arguments.options.beta,
                   .residual = channel_arguments.residual}) {
        std::vector<double> widths = prior_arguments.widths;
        const auto layers = static_cast<std::size_t>(channel_arguments.layers);
        if (widths.size() == 1) widths.resize(layers, widths.front());
        if (widths.size() != layers) {
            throw_invalid("--width", fmt::format("one number, or one for each of the {} layers", layers),
                          fmt::format("{} numbers", widths.size()));
        }
        configuration = {{"prior", prior_arguments.prior}, {"width", widths}};
        for (const double width : widths) {
            PriorArguments layer = prior_arguments;
            layer.width = width;
            layer.widths = {width};
            owned.push_back(layer.make());
            priors.push_back(owned.back().get());
            laws.push_back(&owned.back()->law());
        }
        program::describe(channel, configuration);
    }

    std::vector<double> alphas(const std::string& grid) const {
        return experiments::Grid("--alpha", grid).values(theory::deep_strong_recovery(laws, channel));
    }
};

Json nested(const linalg::Overlap& matrix) {
    Json rows = Json::array();
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
        Json row = Json::array();
        for (Eigen::Index j = 0; j < matrix.cols(); ++j)
            row.push_back(std::isfinite(matrix(i, j)) ? Json(matrix(i, j)) : Json(nullptr));
        rows.push_back(row);
    }
    return rows;
}

Json diagonal(const linalg::Overlap& matrix) {
    Json values = Json::array();
    for (Eigen::Index i = 0; i < matrix.rows(); ++i) values.push_back(matrix(i, i));
    return values;
}

theory::FixedPoint solve(const DeepModel& model, double alpha, const theory::StateEvolutionOptions& options) {
    return solve_deep_state_evolution(model.laws, model.channel, alpha, theory::Start::uninformed, options);
}

}  // namespace

bool is_deep(const ChannelArguments& channel) { return channel.channel == "deep-softmax"; }

int run_deep_theory(const DeepArguments& arguments, const IntegrationArguments& integration, int trajectory) {
    arguments.output.check_writable();
    const DeepModel model(arguments.channel, arguments.prior);
    ThreadPool pool(arguments.run.thread_count());
    const auto options = integration.options(arguments.run, &pool);
    Report report{"theory", model.configuration};
    report.configuration["alpha"] = arguments.alpha;
    integration.describe(model.channel, arguments.run, report.configuration);
    const std::vector<double> alphas = model.alphas(arguments.alpha);
    Progress progress(arguments.output.quiet, alphas.size());
    bool good = true;
    for (const double alpha : alphas) {
        progress.update(0, fmt::format("alpha {:g}", alpha));
        if (trajectory > 0) {
            const auto iterates = deep_state_evolution_trajectory(
                model.laws, model.channel, alpha, trajectory, theory::Start::uninformed, options);
            for (std::size_t t = 0; t < iterates.size(); ++t) {
                report.points.push_back({{"alpha", alpha},
                                         {"iteration", t},
                                         {"estimation_error", iterates[t].error.trace()},
                                         {"layer_errors", diagonal(iterates[t].error)},
                                         {"error", nested(iterates[t].error)}});
            }
        } else {
            const theory::FixedPoint point = solve(model, alpha, options);
            const auto generalization = generalization_error(point, model.channel, options.integration);
            good &= succeeded(point.status);
            report.points.push_back({{"alpha", alpha},
                                     {"estimation_error", point.error()},
                                     {"standard_error", point.relative_error * point.error()},
                                     {"layer_errors", diagonal(point.parameters.error)},
                                     {"error", nested(point.parameters.error)},
                                     {"overlap", nested(point.parameters.overlap)},
                                     {"conjugate_overlap", nested(point.conjugate)},
                                     {"generalization_error", generalization.bayes_optimal},
                                     {"plugin_generalization_error", generalization.plug_in},
                                     {"status", to_string(point.status)}});
        }
        progress.finish_item();
    }
    progress.clear();
    arguments.output.publish(report);
    return good ? 0 : 2;
}

int run_deep_threshold(const DeepArguments& arguments) {
    arguments.output.check_writable();
    const DeepModel model(arguments.channel, arguments.prior);
    const double strong = theory::deep_strong_recovery(model.laws, model.channel);
    Report report{"threshold", model.configuration};
    report.summary["weak_recovery_scaled"] = nullptr;
    report.summary["strong_recovery"] = strong;
    report.summary["information_theoretic"] = strong;
    report.summary["algorithmic"] = strong;
    arguments.output.publish(report);
    return 0;
}

int run_deep_amp(const DeepArguments& arguments, const DeepAmpArguments& amp) {
    arguments.output.check_writable();
    const DeepModel model(arguments.channel, arguments.prior);
    ThreadPool pool(arguments.run.thread_count());
    catch_interrupts();
    estimators::DeepAmpOptions options;
    if (amp.damping_given) options.damping = amp.amp.options.damping;
    options.max_iterations = amp.amp.options.max_iterations;
    if (amp.tolerance_given) options.tolerance = amp.amp.options.tolerance;

    Report report{"amp", model.configuration};
    report.configuration["alpha"] = arguments.alpha;
    report.configuration["dim"] = amp.dim;
    report.configuration["seed"] = arguments.run.seed;
    report.configuration["seeds"] = amp.seeds;
    report.configuration["damping"] = options.damping;
    report.configuration["max_iterations"] = options.max_iterations;
    report.configuration["tolerance"] = options.tolerance;
    theory::StateEvolutionOptions theory_options;
    theory_options.integration.pool = &pool;

    const std::vector<double> alphas = model.alphas(arguments.alpha);
    Progress progress(arguments.output.quiet, alphas.size() * static_cast<std::size_t>(amp.seeds));
    bool good = true;
    for (const double alpha : alphas) {
        std::vector<double> errors;
        linalg::Overlap total = linalg::Overlap::Zero(model.channel.layers(), model.channel.layers());
        double iterations = 0, seconds = 0;
        Termination status = Termination::converged;
        for (int i = 0; i < amp.seeds && !interrupted(); ++i) {
            data::SyntheticOptions synthetic;
            synthetic.dim = amp.dim;
            synthetic.alpha = alpha;
            synthetic.seed = arguments.run.seed + static_cast<std::uint64_t>(i);
            const auto problem = data::make_deep_synthetic(model.priors, model.channel, synthetic, pool);
            options.progress = [&](const estimators::DeepAmpIteration& now) {
                progress.update(
                    static_cast<double>(now.iteration) / options.max_iterations,
                    fmt::format("alpha {:g}, seed {}, iteration {}, predicted error {:.6f}", alpha,
                                synthetic.seed, now.iteration, now.predicted_error.trace()));
                return !interrupted();
            };
            const auto result =
                estimators::run_deep_amp(problem.data, model.laws, model.channel, options, pool);
            progress.finish_item();
            if (result.status == Termination::stopped) break;  // half a run is not a result
            const linalg::Overlap error = data::estimation_errors(result.estimates, problem.weights);
            errors.push_back(error.trace());
            total += error;
            iterations += static_cast<double>(result.record.size());
            for (const auto& iteration : result.record) seconds += iteration.seconds;
            if (succeeded(status)) status = result.status;
            good &= succeeded(result.status);
        }
        if (errors.empty()) break;
        const theory::FixedPoint theory = solve(model, alpha, theory_options);
        const double count = static_cast<double>(errors.size()), mean = total.trace() / count;
        double squares = 0;
        for (const double error : errors) squares += (error - mean) * (error - mean);
        const bool several = errors.size() > 1;
        const double standard_error = several ? std::sqrt(squares / (count - 1) / count) : 0;
        report.points.push_back(
            {{"alpha", alpha},
             {"dim", amp.dim},
             {"seeds", errors.size()},
             {"mean_error", mean},
             {"standard_error", several ? Json(standard_error) : Json(nullptr)},
             {"theory_error", theory.error()},
             {"z_score", standard_error > 0 ? Json((mean - theory.error()) / standard_error) : Json(nullptr)},
             {"layer_errors", diagonal(total / count)},
             {"theory_layer_errors", diagonal(theory.parameters.error)},
             {"iterations", iterations / count},
             {"seconds_per_iteration", seconds / std::max(1.0, iterations)},
             {"status", to_string(status)}});
    }
    progress.clear();
    arguments.output.publish(report);
    if (interrupted()) {
        fmt::print(stderr, "bayesaim: interrupted; what was finished is above\n");
        return interrupted_exit_code;
    }
    return good ? 0 : 2;
}

}  // namespace bayesaim::program
