// SPDX-License-Identifier: MIT
// The published hardmax curve, the correct one, and AMP. Given a file name (png, svg or pdf) it draws them over a
// range of alpha, with four AMP runs a point (a minute). Prints:
//   alpha = 1: printed 0.3156, correct 0.0789, AMP at d = 100 0.0872
#include <cmath>
#include <cstdio>

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/estimators/amp.hpp"
#include "bayesaim/figures/line_figure.hpp"
#include "bayesaim/priors/wishart.hpp"
#include "bayesaim/theory/state_evolution.hpp"

namespace {

using namespace bayesaim;

double theory_error(const priors::Prior& prior, const channels::Channel& channel, double alpha) {
    return theory::solve_state_evolution(theory::SpectralCurve(prior.law()), channel, alpha).error();
}

double amp_error(const priors::Prior& prior, const channels::Channel& channel, double alpha,
                 std::uint64_t seed, ThreadPool& pool) {
    const auto problem =
        data::make_synthetic(prior, channel, {.dim = 100, .alpha = alpha, .seed = seed}, pool);
    estimators::AmpOptions options;
    options.damping = 0;
    options.max_iterations = 40;
    const auto result = run_amp(problem.data, prior.law(), channel, options, pool);
    return data::estimation_error(result.estimates[0], problem.weights[0]);
}

}  // namespace

int main(int argc, char** argv) {
    const priors::Wishart prior(0.5);
    const channels::Hardmax exact(2);
    const channels::HardmaxAsPrinted printed(2);
    ThreadPool pool(0);
    std::printf("alpha = 1: printed %.4f, correct %.4f, AMP at d = 100 %.4f\n",
                theory_error(prior, printed, 1), theory_error(prior, exact, 1),
                amp_error(prior, exact, 1, 0, pool));
    if (argc < 2) return 0;

    using figures::Series;
    Series published{"as published", {}, {}, {}, Series::Style::dashed_line, figures::colour::vermilion};
    Series correct{"correct", {}, {}, {}, Series::Style::line, figures::colour::blue};
    Series amp{"AMP, d = 100, 4 seeds", {}, {}, {}, Series::Style::dots, figures::colour::black};
    for (int i = 0; i < 40; ++i) {
        const double alpha = 0.1 * std::pow(200, i / 39.0);
        published.x.push_back(alpha);
        published.y.push_back(theory_error(prior, printed, alpha));
        correct.x.push_back(alpha);
        correct.y.push_back(theory_error(prior, exact, alpha));
    }
    for (const double alpha : {0.25, 0.5, 1.0, 2.0, 4.0}) {
        constexpr int seeds = 4;
        double mean = 0, squares = 0;
        for (std::uint64_t seed = 0; seed < seeds; ++seed) {
            const double error = amp_error(prior, exact, alpha, seed, pool);
            mean += error / seeds;
            squares += error * error / seeds;
        }
        amp.x.push_back(alpha);
        amp.y.push_back(mean);
        amp.error.push_back(std::sqrt(std::max(0.0, squares - mean * mean) / (seeds - 1)));
    }
    figures::LineFigure figure;
    figure.title = "Bayes-optimal error of hardmax attention, T = 2, width 0.5";
    figure.x_label = "α = n/d^2";
    figure.y_label = "estimation error";
    figure.log_x = figure.log_y = true;
    figure.series = {published, correct, amp};
    draw(figure, argv[1]);
}
