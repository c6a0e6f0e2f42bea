// SPDX-License-Identifier: MIT
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/estimators/erm.hpp"
#include "bayesaim/figures/spectrum_figure.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "program/commands.hpp"
#include "program/erm_options.hpp"
#include "program/interrupt.hpp"
#include "program/messages.hpp"
#include "program/options.hpp"
#include "program/spectra.hpp"

namespace bayesaim::program {
namespace {

struct Arguments : CommonArguments {
    NoiseArguments noise;
    ErmArguments erm;
    double alpha = 0;
    int points = 201;
    bool eigenvalues = false;
    std::string plot;
};

std::vector<double> eigenvalues_of_one_matrix(const priors::Prior& prior, const Arguments& arguments) {
    ThreadPool pool(arguments.thread_count());
    linalg::Matrix matrix = prior.sample(arguments.noise.dim, arguments.seed, 0, pool);
    arguments.noise.add_noise(prior.symmetric(), matrix, arguments.seed, pool);
    return eigenvalues_of(std::move(matrix), prior.symmetric());
}

/// The eigenvalues that are not 0 of one trained matrix.
std::vector<double> trained_eigenvalues(const model::Model& model, const losses::Loss& loss,
                                        const theory::ErmPoint& point, const Arguments& arguments) {
    ThreadPool pool(arguments.thread_count());
    const data::Synthetic problem = data::make_synthetic(
        model.priors(), model.channel(),
        {.dim = arguments.noise.dim, .alpha = point.alpha, .seed = arguments.seed}, pool);
    estimators::ErmOptions options;
    options.penalty = losses::parse_penalty("--penalty", arguments.erm.penalty);
    options.regularization = point.regularization;
    options.tolerance = 1e-6;
    const auto result = estimators::run_erm(problem.data, loss, options, pool);
    if (!succeeded(result.status))
        tell("bayesaim: training of the matrix in the picture: {}\n", to_string(result.status));
    const linalg::Vector values = linalg::symmetric_eigenvalues(result.estimate);
    const auto zeros =
        static_cast<Eigen::Index>(std::llround(result.zero_fraction * static_cast<double>(values.size())));
    return {values.begin() + zeros, values.end()};
}

/// --estimator erm: the spectrum of a trained matrix.
int run_trained(const Arguments& arguments) {
    if (arguments.noise.model.command.given("--noise-variance"))
        throw_conflict("--noise-variance", "--estimator erm");
    if (arguments.eigenvalues) throw_conflict("--eigenvalues", "--estimator erm");
    if (!arguments.noise.model.command.given("--alpha")) throw_missing("--estimator erm", "--alpha");
    check_positive("--alpha", arguments.alpha);
    const auto regularizations = arguments.erm.regularizations();
    if (regularizations.size() > 1)
        throw_invalid("--regularization", "one number here, or optimal", arguments.erm.regularization);
    const model::Model model = arguments.noise.model.make();
    const auto loss = arguments.erm.make_loss(model.channel());
    const theory::ErmOptions options = arguments.erm.options({});
    const spectral::SpectralLaw& teacher = teacher_of(model);
    const theory::ErmPoint point =
        regularizations.front()
            ? solve_erm(teacher, *loss, arguments.alpha, *regularizations.front(), options)
            : solve_optimal_erm(teacher, *loss, arguments.alpha, options);
    if (!(point.noise_variance > 0))
        throw_unavailable("the spectrum", "at exact recovery, where the trained matrix is the teacher's");
    const theory::TrainedSpectrum spectrum(teacher, point, options.penalty);
    const auto edges = spectrum.edges();

    Report report{"spectrum", model::describe(model)};
    arguments.erm.describe(*loss, report.configuration);
    report.configuration.update({{"alpha", arguments.alpha}, {"points", arguments.points}});
    report.summary = theory::values(point);
    Value::List bulks;
    for (const auto& bulk : edges) bulks.push_back(Value::List{bulk.low, bulk.high});
    report.summary["edges"] = std::move(bulks);
    const double low = edges.empty() ? 0 : edges.front().low, high = edges.empty() ? 1 : edges.back().high,
                 margin = 0.03 * (high - low), first = low == 0 ? 0 : low - margin;
    const auto grid = [&](int i, int count) { return first + (high + margin - first) * i / (count - 1); };
    for (int i = 0; i < arguments.points && !interrupted(); ++i) {
        const double x = grid(i, arguments.points);
        report.points.push_back({{"x", x}, {"density", spectrum.density(x)}});
    }
    if (!arguments.plot.empty()) {
        if (point.regularization == 0)
            throw_unavailable("--plot", arguments.erm.regularization == "optimal"
                                            ? "where the best lambda is 0+; take a small --regularization"
                                            : "as lambda -> 0+; take a small --regularization");
        report.configuration["dim"] = arguments.noise.dim;
        report.configuration["seed"] = arguments.seed;
        figures::SpectrumFigure figure;
        figure.eigenvalues = trained_eigenvalues(model, *loss, point, arguments);
        figure.matrix_size = static_cast<std::size_t>(arguments.noise.dim);
        const double zeros = 1 - static_cast<double>(figure.eigenvalues.size()) / arguments.noise.dim;
        figure.title =
            fmt::format("trained: {} loss, α = {:g}, λ = {:g}; zeros {:.3f}, theory {:.3f}", loss->name(),
                        point.alpha, point.regularization, zeros, point.zero_fraction);
        figure.x_label = "eigenvalue of the trained matrix";
        constexpr int curve_points = 1001;
        for (int i = 0; i < curve_points; ++i) {
            figure.x.push_back(grid(i, curve_points));
            figure.density.push_back(spectrum.density(figure.x.back()));
        }
        figures::draw(figure, arguments.plot);
        if (!arguments.quiet) tell("picture: {}\n", arguments.plot);
    }
    return arguments.publish(report);
}

int run(Arguments arguments) {
    arguments.check_writable(arguments.plot);
    if (arguments.erm.chosen()) {
        constexpr int trained_in_seconds = 200;
        if (!arguments.noise.model.command.given("--dim")) arguments.noise.dim = trained_in_seconds;
        return run_trained(arguments);
    }
    for (const char* option :
         {"--channel", "--alpha", "--tokens", "--beta", "--label-noise", "--attention"}) {
        if (arguments.noise.model.command.given(option))
            throw_inapplicable(option, "--estimator erm", "estimator is bayes");
    }
    if (!arguments.noise.model.command.given("--noise-variance"))
        throw InvalidArgument("--noise-variance is required");
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
    catch_interrupts();
    for (int i = 0; i < arguments.points && !interrupted(); ++i) {
        const double x = grid(i, arguments.points);
        const spectral::SpectrumPoint point = spectrum.at(x);
        report.points.push_back(
            {{"x", x}, {"density", point.density}, {"hilbert", point.hilbert}, {"denoised", point.denoised}});
    }
    if (!arguments.plot.empty() || arguments.eigenvalues) {
        report.configuration["dim"] = arguments.noise.dim;
        report.configuration["seed"] = arguments.seed;
    }
    const std::vector<double> sampled = report.configuration.contains("dim")
                                            ? eigenvalues_of_one_matrix(*prior, arguments)
                                            : std::vector<double>();
    if (arguments.eigenvalues) report.summary["eigenvalues"] = sampled;
    if (!arguments.plot.empty()) {
        figures::SpectrumFigure figure;
        figure.title = fmt::format("{} prior, noise variance {:g}, mmse {:.6g}", prior->name(),
                                   arguments.noise.noise_variance, spectrum.mmse());
        figure.eigenvalues = sampled;
        constexpr int curve_points = 1001;
        for (int i = 0; i < curve_points; ++i) {
            const double x = grid(i, curve_points);
            const spectral::SpectrumPoint point = spectrum.at(x);
            figure.x.push_back(x);
            figure.density.push_back(point.density);
            figure.denoised.push_back(point.denoised);
        }
        figures::draw(figure, arguments.plot);
        if (!arguments.quiet) tell("picture: {}\n", arguments.plot);
    }
    return arguments.publish(report);
}

}  // namespace

void add_spectrum(Program& program) {
    auto [command, arguments] =
        program.add_command<Arguments>("spectrum",
                                       "Spectrum of a weight matrix under noise, and the Bayes-optimal "
                                       "denoiser of its eigenvalues; or of a\n"
                                       "trained matrix (--estimator erm)",
                                       run);
    arguments.noise.add_to(command, NoiseArguments::Variance::optional);
    arguments.noise.model.add_channel_to(command, ModelArguments::Channels::smooth);
    arguments.erm.add_choice_to(command);
    command.number("--alpha", arguments.alpha, "samples per d^2 (--estimator erm)").default_text("");
    command.option("--dim").description(
        "size d of the sampled matrix in the picture (trained: 200 unless given)");
    command.count("--points", arguments.points, 2, "number of rows of the table", 1'000'000);
    command.flag("--eigenvalues", arguments.eigenvalues, "adds the eigenvalues of one sampled matrix");
    command.text("--plot", arguments.plot,
                 "picture of density, one sampled matrix and denoiser (png, svg, pdf)", "FILE");
    arguments.add_to(command, Arguments::Points::never_fail);
    command.footer(
        "Examples:\n  bayesaim spectrum --width 0.5 --noise-variance 0.1 --plot spectrum.png\n"
        "  bayesaim spectrum --estimator erm --channel linear --label-noise 0.5 --width 0.5 --alpha 0.1 "
        "--regularization 0.2 --dim 400 --plot trained.png");
}

}  // namespace bayesaim::program
