// SPDX-License-Identifier: MIT
#include "bayesaim/priors/table.hpp"

#include "bayesaim/core/table.hpp"
#include "bayesaim/priors/bilinear.hpp"
#include "bayesaim/priors/ginibre.hpp"
#include "bayesaim/priors/multi_head.hpp"
#include "bayesaim/priors/power_law.hpp"
#include "bayesaim/priors/spectrum_file.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"

namespace bayesaim::priors {

const std::vector<PriorEntry>& prior_table() {
    static const std::vector<PriorEntry> table = {
        {"wishart",
         "tied attention, S = W W^T / sqrt(r d) with W of size d x r and r = width * d",
         {"width", "scale"},
         [](const PriorOptions& options) { return std::make_unique<Wishart>(options.width, options.scale); }},
        {"wigner",
         "Gaussian orthogonal ensemble, the limit of large width",
         {},
         [](const PriorOptions&) { return std::make_unique<Wigner>(); }},
        {"spectrum",
         "eigenvalues (untied attention: singular values) from a text file, one per line, or with weights, "
         "or with "
         "weights and variances, or from an estimate that `fit` wrote; random eigenvectors",
         {"spectrum"},
         [](const PriorOptions& options) -> std::unique_ptr<Prior> {
             if (options.spectrum.empty()) throw InvalidArgument("prior spectrum needs a spectrum file");
             return read_spectrum(options.spectrum, options.symmetric);
         },
         PriorEntry::Matrices::either},
        {"multi-head",
         "the mean of several heads of tied attention, each of the given width",
         {"width", "heads"},
         [](const PriorOptions& options) {
             return std::make_unique<MultiHead>(options.heads, options.width);
         }},
        {"bilinear",
         "untied attention, S = W_Q W_K^T / sqrt(r d) with W_Q and W_K of size d x r and r = width * d",
         {"width", "aspect", "scale"},
         [](const PriorOptions& options) {
             return std::make_unique<Bilinear>(options.width, options.aspect, options.scale);
         },
         PriorEntry::Matrices::general},
        {"ginibre",
         "independent Gaussian entries, the limit of large width of bilinear",
         {"aspect"},
         [](const PriorOptions& options) { return std::make_unique<Ginibre>(options.aspect); },
         PriorEntry::Matrices::general},
        {"power-law",
         "eigenvalues c (x + cutoff)^(-exponent), x uniform on (0, width), the others 0; tr S^2 = 1, random "
         "eigenvectors",
         {"exponent", "width", "cutoff", "scale"},
         [](const PriorOptions& options) {
             return std::make_unique<PowerLaw>(options.exponent, options.width, options.cutoff,
                                               options.scale);
         }},
    };
    return table;
}

std::unique_ptr<Prior> make_prior(const std::string& name, const PriorOptions& options) {
    return find_row(prior_table(), "prior", name).make(options);
}

}  // namespace bayesaim::priors
