// SPDX-License-Identifier: MIT
#include "bayesaim/figures/phase_figure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "bayesaim/figures/gnuplot.hpp"

namespace bayesaim::figures {

void draw(const PhaseFigure& figure, const std::filesystem::path& output) {
    std::string script = "$map << EOD\n";
    for (std::size_t i = 0; i < figure.error.size(); ++i) {
        if (i > 0 && i % figure.columns == 0) script += '\n';  // a blank line ends a row of the surface
        script += fmt::format("{:.8g} {:.8g} {:.8g}\n", figure.alpha[i], figure.width[i], figure.error[i]);
    }
    script += "EOD\n" + data_block("line", {figure.line_alpha, figure.line_width});
    const auto [low_alpha, high_alpha] = std::minmax_element(figure.alpha.begin(), figure.alpha.end());
    const auto [low_width, high_width] = std::minmax_element(figure.width.begin(), figure.width.end());
    script += fmt::format(
        "set title \"{}\"\nset xlabel \"α = n/d^2\"\nset ylabel \"width ratio r/d\"\n"
        "set cblabel \"{}\"\nset xrange [{}:{}]\nset yrange [{}:{}]\nset cbrange [0:*]\n"
        "set tics out nomirror\nset pm3d map corners2color mean\n"
        // viridis: its lightness is even, so that the picture can be read in grey
        "set palette defined (0 '#440154', 1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n"
        "set lmargin at screen 0.14\nset rmargin at screen 0.8\nset bmargin at screen 0.16\nset tmargin at "
        "screen 0.9\n",
        figure.title, figure.quantity, *low_alpha, *high_alpha, *low_width, *high_width);
    if (figure.log_alpha) script += "set logscale x\n";
    if (figure.log_width) script += "set logscale y\n";
    script += "splot $map using 1:2:3 notitle";
    // The key stands below the map: on the map, the text may leave the picture or meet its own colour.
    if (std::ranges::any_of(figure.line_alpha, [low = *low_alpha, high = *high_alpha](double x) {
            return x >= low && x <= high;
        })) {
        script = "set key at screen 0.8,screen 0.05 right samplen 2\n" + script +
                 fmt::format(", $line using 1:2:(0) with lines lw 2.5 lc rgb '{}' title 'strong recovery'",
                             colour::vermilion);
    }
    render(script + "\n", output);
}

}  // namespace bayesaim::figures
