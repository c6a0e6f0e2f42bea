// SPDX-License-Identifier: MIT
#include <cmath>

#include "bayesaim/denoisers/singular_values.hpp"

#include "program/commands.hpp"
#include "program/interrupt.hpp"
#include "program/options.hpp"
#include "program/progress.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    NoiseArguments noise;
    int seeds = 1;
};

int run(const Arguments& arguments) {
    const double noise_variance = arguments.noise.noise_variance;
    const int dim = arguments.noise.dim;
    arguments.check_writable();
    const auto prior = arguments.noise.make_prior();
    ThreadPool pool(arguments.thread_count());

    Report report{"denoise", arguments.noise.describe(*prior)};
    report.configuration.update({{"dim", dim}, {"seed", arguments.seed}, {"seeds", arguments.seeds}});
    Progress progress(arguments.quiet, static_cast<std::size_t>(arguments.seeds));
    catch_interrupts();
    for (int i = 0; i < arguments.seeds && !interrupted(); ++i) {
        const std::uint64_t seed = arguments.seed + static_cast<std::uint64_t>(i);
        const linalg::Matrix weights = prior->sample(dim, seed, 0, pool);
        linalg::Matrix noisy = weights;
        arguments.noise.add_noise(prior->symmetric(), noisy, seed, pool);
        const auto denoise = prior->symmetric() ? denoisers::denoise : denoisers::denoise_singular_values;
        const denoisers::Denoised denoised = denoise(prior->law(), noisy, noise_variance, pool, {});
        const double size =
            std::sqrt(static_cast<double>(weights.rows()) * static_cast<double>(weights.cols()));
        const double measured = (denoised.estimate - weights).squaredNorm() / size;
        const double unprocessed = (noisy - weights).squaredNorm() / size;
        report.points.push_back({{"seed", seed},
                                 {"measured_error", measured},
                                 {"predicted_error", denoised.posterior_variance},
                                 {"relative_difference", measured / denoised.posterior_variance - 1},
                                 {"error_before", unprocessed}});
        progress.finish_item();
    }
    progress.clear();
    return arguments.publish(report);
}

}  // namespace

void add_denoise(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "denoise", "Sample a weight matrix, add noise, denoise it; compare measured and predicted error",
        run);
    arguments.noise.add_to(command);
    command.count("--seeds", arguments.seeds, 1, "number of matrices");
    arguments.add_to(command, Arguments::Points::never_fail);
    command.footer("Example:\n  bayesaim denoise --width 0.5 --noise-variance 0.5 --dim 1000");
}

}  // namespace bayesaim::program
