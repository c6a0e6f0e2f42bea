// SPDX-License-Identifier: MIT
#include "bayesaim/priors/learned_spectrum.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/priors/rotated.hpp"

namespace bayesaim::priors {
namespace {

using spectral::Bump;
using spectral::BumpLaw;

/// The law, symmetric to the last bit: each bump is replaced by its mean with the mirror image of its
/// partner.
BumpLaw symmetric_law(const BumpLaw& law) {
    std::vector<Bump> bumps = law.bumps(), mirrored = bumps;
    for (Bump& bump : mirrored) bump.centre = -bump.centre;
    double size = 0;
    for (std::vector<Bump>* list : {&bumps, &mirrored})
        std::ranges::sort(
            *list, {}, [](const Bump& bump) { return std::tuple(bump.centre, bump.variance, bump.weight); });
    for (const Bump& bump : bumps)
        size = std::max(size, std::abs(bump.centre) + 2 * std::sqrt(bump.variance));
    for (std::size_t i = 0; i < bumps.size(); ++i) {
        auto& [centre, weight, variance] = bumps[i];
        const Bump& partner = mirrored[i];
        if (!(std::abs(centre - partner.centre) <= 1e-6 * size && std::abs(weight - partner.weight) <= 1e-6 &&
              std::abs(variance - partner.variance) <= 1e-6 * size * size))
            throw InvalidArgument(
                "the law of singular values must be symmetric: with every bump its mirror image");
        centre = 0.5 * (centre + partner.centre);
        weight = 0.5 * (weight + partner.weight);
        variance = 0.5 * (variance + partner.variance);
    }
    return BumpLaw(bumps);
}

}  // namespace

LearnedSpectrum::LearnedSpectrum(std::span<const Bump> bumps, bool symmetric)
    : symmetric_(symmetric), law_(symmetric ? BumpLaw(bumps) : symmetric_law(BumpLaw(bumps))) {}

std::vector<std::pair<std::string, double>> LearnedSpectrum::parameters() const {
    return {{"bumps", static_cast<double>(law_.bumps().size())},
            {"mean", law_.mean()},
            {"second_moment", law_.second_moment()}};
}

linalg::Matrix LearnedSpectrum::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                       ThreadPool& pool) const {
    if (symmetric_) {
        const auto quantile = [this](double level) { return law_.quantile(level); };
        return rotated(quantiles(dim, quantile), seed, index, pool);
    }
    // |x| <= q has the probability F(q) - F(-q) = 2 F(q) - 1.
    const auto quantile = [this](double level) { return std::max(law_.quantile(0.5 * (1 + level)), 0.0); };
    return rotated_on_both_sides(quantiles(dim, quantile), seed, index, pool);
}

}  // namespace bayesaim::priors
