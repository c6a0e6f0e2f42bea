// SPDX-License-Identifier: MIT
// The published hardmax curve and the correct one: draws the picture named on the command line (png, svg or
// pdf) and prints both errors at alpha = 1.
#include <cmath>
#include <cstdio>

#include "bayesaim/channels/hardmax.hpp"
#include "bayesaim/figures/line_figure.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/theory/state_evolution.hpp"

int main(int argc, char** argv) {
    using namespace bayesaim;
    const spectral::MarchenkoPasturLaw law(0.5);
    const theory::SpectralCurve prior(law);
    const channels::Hardmax exact(2);
    const channels::HardmaxAsPrinted printed(2);
    const auto error = [&](const channels::Channel& channel, double alpha) {
        return solve_state_evolution(prior, channel, alpha, theory::Start::uninformed).error();
    };
    std::printf("alpha = 1: printed %.4f, correct %.4f\n", error(printed, 1), error(exact, 1));
    if (argc < 2) return 0;

    figures::Series published{
        "as published", {}, {}, {}, figures::Series::Style::dashed_line, figures::colour::vermilion};
    figures::Series correct{"correct", {}, {}, {}, figures::Series::Style::line, figures::colour::blue};
    for (int i = 0; i < 40; ++i) {
        const double alpha = 0.1 * std::pow(200, i / 39.0);
        published.x.push_back(alpha);
        published.y.push_back(error(printed, alpha));
        correct.x.push_back(alpha);
        correct.y.push_back(error(exact, alpha));
    }
    figures::LineFigure figure;
    figure.title = "Bayes-optimal error of hardmax attention, T = 2, width 0.5";
    figure.x_label = "α = n/d^2";
    figure.y_label = "estimation error";
    figure.log_x = figure.log_y = true;
    figure.series = {published, correct};
    draw(figure, argv[1]);
}
