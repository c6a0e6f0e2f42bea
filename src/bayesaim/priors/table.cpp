// SPDX-License-Identifier: MIT
#include "bayesaim/priors/table.hpp"

#include "bayesaim/core/table.hpp"
#include "bayesaim/priors/multi_head.hpp"
#include "bayesaim/priors/user_spectrum.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"

namespace bayesaim::priors {

const std::vector<PriorEntry>& prior_table() {
    static const std::vector<PriorEntry> table = {
        {"wishart",
         "tied attention, S = W W^T / sqrt(r d) with W of size d x r and r = width * d",
         {"width"},
         [](const PriorOptions& options) { return std::make_unique<Wishart>(options.width); }},
        {"wigner",
         "Gaussian orthogonal ensemble, the limit of large width",
         {},
         [](const PriorOptions&) { return std::make_unique<Wigner>(); }},
        {"spectrum",
         "eigenvalues from a file, one per line or with a weight, and random eigenvectors",
         {"spectrum"},
         [](const PriorOptions& options) {
             if (options.spectrum.empty()) throw InvalidArgument("prior spectrum needs a spectrum file");
             return std::make_unique<UserSpectrum>(read_spectrum(options.spectrum));
         }},
        {"multi-head",
         "the mean of several heads of tied attention, each of the given width",
         {"width", "heads"},
         [](const PriorOptions& options) {
             return std::make_unique<MultiHead>(options.heads, options.width);
         }},
    };
    return table;
}

std::unique_ptr<Prior> make_prior(const std::string& name, const PriorOptions& options) {
    return find_row(prior_table(), "prior", name).make(options);
}

}  // namespace bayesaim::priors
