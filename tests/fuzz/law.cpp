// SPDX-License-Identifier: MIT
// The spectral engine: every prior with difficult parameters, at any noise variance.
#include <cmath>

#include "bayesaim/priors/learned_spectrum.hpp"
#include "bayesaim/priors/table.hpp"
#include "bayesaim/priors/user_spectrum.hpp"
#include "bayesaim/spectral/free_convolution.hpp"

#include "fuzz.hpp"

namespace {

using namespace bayesaim;

std::unique_ptr<priors::Prior> make(fuzz::Description& description) {
    constexpr std::array<const char*, 6> names = {"wishart",  "wigner",    "multi-head",
                                                  "bilinear", "power-law", "ginibre"};
    const unsigned kind = description.byte();
    if (kind % 8 < names.size()) {
        priors::PriorOptions options;
        options.width = description.number();
        options.scale = description.number();
        options.exponent = description.number();
        options.cutoff = description.number();
        options.heads = static_cast<int>(description.byte()) - 1;
        if (kind >= 128) options.aspect = description.number();
        return priors::make_prior(names[kind % 8], options);
    }
    std::vector<spectral::Bump> bumps;
    std::vector<double> values, weights;
    for (unsigned count = 1 + description.byte() % 6; count > 0; --count) {
        bumps.push_back({description.number(), description.number(), std::abs(description.number())});
        values.push_back(bumps.back().centre);
        weights.push_back(bumps.back().weight);
    }
    double sum = 0;
    for (const double weight : weights) sum += weight;
    for (std::size_t i = 0; i < bumps.size(); ++i) bumps[i].weight = weights[i] /= sum;
    if (kind % 8 == 6) return std::make_unique<priors::LearnedSpectrum>(bumps, kind < 128);
    return std::make_unique<priors::UserSpectrum>(values, weights);
}

}  // namespace

FUZZ_TARGET(law) {
    fuzz::Description description(input);
    fuzz::accepts([&] {
        const double noise_variance = description.number(), place = description.number();
        const auto prior = make(description);
        const spectral::SpectralLaw& law = prior->law();
        if (!std::isfinite(law.mean()) || !(law.variance() >= 0)) fuzz::fail("a law without moments");
        if (law.aspect() != 1) {
            spectral::mmse(law, noise_variance);
            return;
        }
        const spectral::FreeConvolution noisy(law, noise_variance);
        if (std::isnan(noisy.mmse()) || std::isnan(noisy.mmse_derivative())) fuzz::fail("no error");
        noisy.edges();
        noisy.at(place);
    });
}
