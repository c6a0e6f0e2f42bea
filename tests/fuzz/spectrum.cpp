// SPDX-License-Identifier: MIT
// Spectrum files: eigenvalues, weights and variances as text.
#include <cmath>

#include "bayesaim/priors/prior.hpp"
#include "bayesaim/priors/spectrum_file.hpp"

#include "fuzz.hpp"

FUZZ_TARGET(spectrum) {
    using namespace bayesaim;
    fuzz::Description description(input);
    const bool symmetric = description.byte() % 2 == 0;
    const std::string_view text = fuzz::text_of(input.subspan(std::min<std::size_t>(input.size(), 1)));
    const std::string file = fuzz::memory_file(text);
    fuzz::accepts([&] {
        const auto prior = priors::read_spectrum(file, symmetric);
        const spectral::SpectralLaw& law = prior->law();
        if (!std::isfinite(law.mean()) || !(law.variance() >= 0) || !std::isfinite(law.second_moment()))
            fuzz::fail("a law without moments");
        const auto support = law.centred_support();
        for (std::size_t i = 0; i < support.size(); ++i) {
            if (!(support[i].low <= support[i].high) || (i > 0 && !(support[i - 1].high < support[i].low)))
                fuzz::fail("a support that is not sorted");
        }
        law.stieltjes({support.back().high, 1});
        law.moment_transform({0, 1});
        law.log_potential({0.5, 1});
    });
}
