// SPDX-License-Identifier: MIT
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "program/commands.hpp"
#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/figures/gnuplot.hpp"
#include "bayesaim/figures/spectrum_figure.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "program/options.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

namespace bayesaim::program {
namespace {

struct Arguments {
    PriorArguments prior;
    OutputArguments output;
    RunArguments run;
    double noise_variance = 0;
    int points = 201, dim = 1000;
    std::string plot;
};

std::vector<double> eigenvalues_of_one_matrix(const priors::Prior& prior, const Arguments& arguments) {
    ThreadPool pool(arguments.run.thread_count());
    const RandomStream noise(arguments.run.seed, Purpose::noise);
    linalg::Matrix matrix = prior.sample(arguments.dim, arguments.run.seed, 0, pool);
    matrix += std::sqrt(arguments.noise_variance) *
              linalg::gaussian_orthogonal_ensemble(arguments.dim, noise, pool);
    const linalg::Vector values = linalg::symmetric_eigenvalues(std::move(matrix));
    return {values.begin(), values.end()};
}

int run(const Arguments& arguments) {
    arguments.output.check_writable(arguments.plot);
    const auto prior = arguments.prior.make();
    const spectral::FreeConvolution spectrum(prior->law(), arguments.noise_variance);
    const std::vector<spectral::Interval> edges = spectrum.edges();

    Report report{"spectrum"};
    report.configuration = describe(arguments.prior, *prior);
    report.configuration["noise_variance"] = arguments.noise_variance;
    report.configuration["points"] = arguments.points;
    report.summary["mmse"] = spectrum.mmse();
    report.summary["edges"] = Json::array();
    for (const auto& bulk : edges) report.summary["edges"].push_back({bulk.low, bulk.high});
    report.summary["mean"] = prior->law().mean();
    report.summary["second_moment"] = prior->law().second_moment() + arguments.noise_variance;

    const double margin = 0.05 * (edges.back().high - edges.front().low);
    const auto grid = [&](int i, int count) {
        return edges.front().low - margin +
               (edges.back().high - edges.front().low + 2 * margin) * i / (count - 1);
    };
    for (int i = 0; i < arguments.points; ++i) {
        const double x = grid(i, arguments.points);
        const spectral::SpectrumPoint point = spectrum.at(x);
        report.points.push_back(
            {{"x", x}, {"density", point.density}, {"hilbert", point.hilbert}, {"denoised", point.denoised}});
    }
    if (!arguments.plot.empty()) {
        report.configuration["dim"] = arguments.dim;
        report.configuration["seed"] = arguments.run.seed;
        figures::SpectrumFigure figure;
        figure.title = fmt::format("{} prior, noise variance {:g}, mmse {:.6g}", prior->name(),
                                   arguments.noise_variance, spectrum.mmse());
        figure.eigenvalues = eigenvalues_of_one_matrix(*prior, arguments);
        constexpr int curve_points = 1001;
        for (int i = 0; i < curve_points; ++i) {
            const double x = grid(i, curve_points);
            const spectral::SpectrumPoint point = spectrum.at(x);
            figure.x.push_back(x);
            figure.density.push_back(point.density);
            figure.denoised.push_back(point.denoised);
        }
        figures::draw(figure, arguments.plot);
        if (!arguments.output.quiet) fmt::print(stderr, "picture: {}\n", arguments.plot);
    }
    arguments.output.publish(report);
    return 0;
}

}  // namespace

Action add_spectrum(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand(
        "spectrum",
        "Spectrum of a weight matrix under noise, and the Bayes-optimal denoiser of its eigenvalues");
    add_number(*command, "--noise-variance", arguments->noise_variance,
               "variance D of the noise sqrt(D) Xi, Xi ~ GOE")
        ->default_str("")
        ->required();
    arguments->prior.add_to(*command);
    add_count(*command, "--points", arguments->points, 2, "points of the table");
    add_count(*command, "--dim", arguments->dim, 2, "size d of the sampled matrix in the picture");
    command->add_option("--plot", arguments->plot,
                        "picture of density, one sampled matrix and denoiser (png, svg, pdf)");
    arguments->run.add_to(*command);
    arguments->output.add_to(*command);
    command->footer("Example:\n  bayesaim spectrum --width 0.5 --noise-variance 0.1 --plot spectrum.png");
    return [arguments] { return run(*arguments); };
}

}  // namespace bayesaim::program
