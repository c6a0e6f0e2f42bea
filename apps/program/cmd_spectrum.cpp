// SPDX-License-Identifier: MIT
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/figures/spectrum_figure.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "program/commands.hpp"
#include "program/options.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    NoiseArguments noise;
    int points = 201;
    std::string plot;
};

std::vector<double> eigenvalues_of_one_matrix(const priors::Prior& prior, const Arguments& arguments) {
    ThreadPool pool(arguments.thread_count());
    linalg::Matrix matrix = prior.sample(arguments.noise.dim, arguments.seed, 0, pool);
    arguments.noise.add_noise(prior.symmetric(), matrix, arguments.seed, pool);
    if (!prior.symmetric()) {  // singular values with both signs
        const linalg::Vector squares = linalg::symmetric_eigenvalues(linalg::gram(1, matrix));
        std::vector<double> values;
        for (const double square : squares) {
            const double value = std::sqrt(std::max(square, 0.0));
            values.insert(values.end(), {value, -value});
        }
        return values;
    }
    const linalg::Vector values = linalg::symmetric_eigenvalues(std::move(matrix));
    return {values.begin(), values.end()};
}

int run(const Arguments& arguments) {
    arguments.check_writable(arguments.plot);
    const auto prior = arguments.noise.make_prior();
    if (prior->law().aspect() != 1) throw_unavailable("--aspect", "for this command");
    const spectral::FreeConvolution spectrum(prior->law(), arguments.noise.noise_variance);
    const std::vector<spectral::Interval> edges = spectrum.edges();

    Report report{"spectrum", arguments.noise.describe(*prior)};
    report.configuration["points"] = arguments.points;
    report.summary["mmse"] = spectrum.mmse();
    Value::List bulks;
    for (const auto& bulk : edges) bulks.push_back(Value::List{bulk.low, bulk.high});
    report.summary["edges"] = std::move(bulks);
    report.summary["mean"] = prior->law().mean();
    report.summary["second_moment"] = prior->law().second_moment() + arguments.noise.noise_variance;

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
        report.configuration["dim"] = arguments.noise.dim;
        report.configuration["seed"] = arguments.seed;
        figures::SpectrumFigure figure;
        figure.title = fmt::format("{} prior, noise variance {:g}, mmse {:.6g}", prior->name(),
                                   arguments.noise.noise_variance, spectrum.mmse());
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
        if (!arguments.quiet) fmt::print(stderr, "picture: {}\n", arguments.plot);
    }
    return arguments.publish(report);
}

}  // namespace

void add_spectrum(Program& program) {
    auto [command, arguments] = program.add_command<Arguments>(
        "spectrum",
        "Spectrum of a weight matrix under noise, and the Bayes-optimal denoiser of its eigenvalues", run);
    arguments.noise.add_to(command);
    command.option("--dim").description("size d of the sampled matrix in the picture");
    command.count("--points", arguments.points, 2, "number of rows of the table");
    command.text("--plot", arguments.plot,
                 "picture of density, one sampled matrix and denoiser (png, svg, pdf)", "FILE");
    arguments.add_to(command, Arguments::Points::never_fail);
    command.footer("Example:\n  bayesaim spectrum --width 0.5 --noise-variance 0.1 --plot spectrum.png");
}

}  // namespace bayesaim::program
