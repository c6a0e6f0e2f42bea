// SPDX-License-Identifier: MIT
#include "bayesaim/priors/user_spectrum.hpp"

#include "bayesaim/core/checks.hpp"
#include "bayesaim/priors/rotated.hpp"

namespace bayesaim::priors {
namespace {

linalg::Vector quantiles_of(const spectral::AtomicLaw& law, Eigen::Index dim) {
    return quantiles(dim, [&](double level) { return law.quantile(level); });
}

/// Half of each weight at the value, half at its negative.
spectral::AtomicLaw both_signs(std::span<const double> values, std::span<const double> weights) {
    std::vector<double> positions, halves;
    for (std::size_t i = 0; i < values.size(); ++i) {
        check_non_negative("singular value", values[i]);
        for (const double sign : {1.0, -1.0}) {
            positions.push_back(sign * values[i]);
            halves.push_back(0.5 * weights[i]);
        }
    }
    return {positions, halves};
}

}  // namespace

std::vector<std::pair<std::string, double>> UserSpectrum::parameters() const {
    return {{"atoms", static_cast<double>(law_.centred_support().size())},
            {"mean", law_.mean()},
            {"second_moment", law_.second_moment()}};
}

linalg::Matrix UserSpectrum::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                    ThreadPool& pool) const {
    return rotated(quantiles_of(law_, dim), seed, index, pool);
}

UserSingularValues::UserSingularValues(std::span<const double> values, std::span<const double> weights)
    : values_(values, weights), law_(both_signs(values, weights)) {}

std::vector<std::pair<std::string, double>> UserSingularValues::parameters() const {
    return {{"atoms", static_cast<double>(values_.centred_support().size())},
            {"mean", values_.mean()},
            {"second_moment", values_.second_moment()}};
}

linalg::Matrix UserSingularValues::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                          ThreadPool& pool) const {
    return rotated_on_both_sides(quantiles_of(values_, dim), seed, index, pool);
}

}  // namespace bayesaim::priors
