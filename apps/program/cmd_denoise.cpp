// SPDX-License-Identifier: MIT
#include <cmath>

#include "program/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/denoisers/rotation_invariant.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "program/options.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    PriorArguments prior;
    OutputArguments output;
    RunArguments run;
    double noise_variance = 0;
    int dim = 1000, seeds = 1;
};

int run(const Arguments& arguments) {
    check_positive("noise variance", arguments.noise_variance);
    arguments.output.check_writable();
    const auto prior = arguments.prior.make();
    ThreadPool pool(arguments.run.thread_count());

    Report report{"denoise"};
    report.configuration = describe(arguments.prior, *prior);
    report.configuration["noise_variance"] = arguments.noise_variance;
    report.configuration["dim"] = arguments.dim;
    report.configuration["seed"] = arguments.run.seed;
    report.configuration["seeds"] = arguments.seeds;
    for (int i = 0; i < arguments.seeds; ++i) {
        const std::uint64_t seed = arguments.run.seed + static_cast<std::uint64_t>(i);
        const RandomStream noise(seed, Purpose::noise);
        const linalg::Matrix weights = prior->sample(arguments.dim, seed, 0, pool);
        const linalg::Matrix noisy =
            weights + std::sqrt(arguments.noise_variance) *
                          linalg::gaussian_orthogonal_ensemble(arguments.dim, noise, pool);
        const denoisers::Denoised denoised =
            denoisers::denoise(prior->law(), noisy, arguments.noise_variance, pool);
        const double measured = (denoised.estimate - weights).squaredNorm() / arguments.dim;
        const double unprocessed = (noisy - weights).squaredNorm() / arguments.dim;
        report.points.push_back({{"seed", seed},
                                 {"measured_error", measured},
                                 {"predicted_error", denoised.posterior_variance},
                                 {"relative_difference", measured / denoised.posterior_variance - 1},
                                 {"error_before", unprocessed}});
    }
    arguments.output.publish(report);
    return 0;
}

}  // namespace

Action add_denoise(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand(
        "denoise",
        "Sample a weight matrix, add noise, denoise it; measured and predicted error ||Shat - S||^2/d");
    add_number(*command, "--noise-variance", arguments->noise_variance,
               "variance D of the noise sqrt(D) Xi, Xi ~ GOE")
        ->default_str("")
        ->required();
    arguments->prior.add_to(*command);
    add_count(*command, "--dim", arguments->dim, 2, "size d of the matrix");
    add_count(*command, "--seeds", arguments->seeds, 1, "how many matrices");
    arguments->run.add_to(*command);
    arguments->output.add_to(*command);
    command->footer("Example:\n  bayesaim denoise --width 0.5 --noise-variance 0.5 --dim 1000");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
