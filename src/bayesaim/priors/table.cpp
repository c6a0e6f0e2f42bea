// SPDX-License-Identifier: MIT
#include "bayesaim/priors/table.hpp"

#include "bayesaim/core/checks.hpp"
#include "bayesaim/priors/user_spectrum.hpp"
#include "bayesaim/priors/wigner.hpp"
#include "bayesaim/priors/wishart.hpp"

namespace bayesaim::priors {

const std::vector<PriorEntry>& prior_table() {
    static const std::vector<PriorEntry> table = {
        {"wishart", "tied attention, S = W W^T / sqrt(r d) with W of size d x r and r = width * d",
         [](const PriorOptions& options) { return std::make_unique<Wishart>(options.width); }},
        {"wigner", "Gaussian orthogonal ensemble, the limit of large width",
         [](const PriorOptions&) { return std::make_unique<Wigner>(); }},
        {"spectrum", "eigenvalues from a file, one per line or with a weight, and random eigenvectors",
         [](const PriorOptions& options) {
             if (options.spectrum_file.empty())
                 throw_invalid("spectrum file", "given with this prior", "none");
             return std::make_unique<UserSpectrum>(read_spectrum(options.spectrum_file));
         }},
    };
    return table;
}

std::vector<std::string> prior_names() {
    std::vector<std::string> names;
    for (const PriorEntry& entry : prior_table()) names.push_back(entry.name);
    return names;
}

std::unique_ptr<Prior> make_prior(const std::string& name, const PriorOptions& options) {
    return prior_table()[check_one_of("prior", name, prior_names())].make(options);
}

}  // namespace bayesaim::priors
