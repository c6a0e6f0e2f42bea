// SPDX-License-Identifier: MIT
#include "program/deep.hpp"

#include <fmt/format.h>

#include "bayesaim/experiments/grid.hpp"
#include "program/model.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {

int run_deep_theory(const DeepArguments& arguments, const IntegrationArguments& integration, int trajectory) {
    arguments.output.check_writable();
    const Model model(arguments.prior, arguments.channel);
    ThreadPool pool(arguments.run.thread_count());
    const auto options = integration.options(arguments.run, &pool);
    Report report{"theory", model.configuration};
    report.configuration["alpha"] = arguments.alpha;
    integration.describe(*model.channel, arguments.run, report.configuration);
    const std::vector<double> alphas =
        experiments::Grid("--alpha", arguments.alpha).values(model.strong_recovery());
    Progress progress(arguments.output.quiet, alphas.size());
    bool good = true;
    for (const double alpha : alphas) {
        progress.update(0, fmt::format("alpha {:g}", alpha));
        if (trajectory > 0) {
            const auto iterates = deep_state_evolution_trajectory(
                model.laws, *model.channel, alpha, trajectory, theory::Start::uninformed, options);
            for (std::size_t t = 0; t < iterates.size(); ++t) {
                report.points.push_back({{"alpha", alpha},
                                         {"iteration", t},
                                         {"estimation_error", iterates[t].error.trace()},
                                         {"layer_errors", diagonal(iterates[t].error)},
                                         {"error", nested(iterates[t].error)}});
            }
        } else {
            const theory::FixedPoint point = model.solve(alpha, options);
            const auto generalization = generalization_error(point, *model.channel, options.integration);
            good &= succeeded(point.status);
            report.points.push_back({{"alpha", alpha},
                                     {"estimation_error", point.error()},
                                     {"standard_error", point.relative_error * point.error()},
                                     {"layer_errors", diagonal(point.parameters.error)},
                                     {"error", nested(point.parameters.error)},
                                     {"overlap", nested(point.parameters.overlap)},
                                     {"conjugate_overlap", nested(point.conjugate)},
                                     {"generalization_error", generalization.bayes_optimal},
                                     {"generalization_standard_error",
                                      generalization.relative_error * generalization.bayes_optimal},
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
    const Model model(arguments.prior, arguments.channel);
    const double strong = *model.strong_recovery();
    Report report{"threshold", model.configuration};
    report.summary["weak_recovery_scaled"] = nullptr;
    report.summary["strong_recovery"] = strong;
    report.summary["information_theoretic"] = strong;
    report.summary["algorithmic"] = strong;
    arguments.output.publish(report);
    return 0;
}

}  // namespace bayesaim::program
