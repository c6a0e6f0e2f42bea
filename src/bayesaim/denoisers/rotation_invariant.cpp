// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/rotation_invariant.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::denoisers {
namespace {

double nearest_in_support(const std::vector<spectral::Interval>& bulks, double x) {
    double best = bulks.front().low;
    for (const spectral::Interval& bulk : bulks) {
        const double candidate = std::clamp(x, bulk.low, bulk.high);
        if (std::abs(candidate - x) < std::abs(best - x)) best = candidate;
    }
    return best;
}

}  // namespace

Denoised denoise(const spectral::SpectralLaw& law, const linalg::ConstMatrixRef& noisy, double noise_variance,
                 ThreadPool& pool, const DenoiseOptions& options) {
    linalg::check_symmetric("noisy matrix", noisy);
    const spectral::FreeConvolution spectrum(law, noise_variance);
    auto [values, vectors] = linalg::symmetric_eigen(noisy);
    const std::vector<spectral::Interval> bulks = spectrum.edges();
    linalg::Vector shrunk(values.size());
    const double slope = law.variance() / (law.variance() + noise_variance);
    for (Eigen::Index i = 0; i < values.size(); ++i) {
        const double x = options.linear_outside_support ? nearest_in_support(bulks, values[i]) : values[i];
        shrunk[i] = spectrum.at(x).denoised + slope * (values[i] - x);
    }
    return {linalg::from_eigen(vectors, shrunk, pool), spectrum.mmse(), std::move(values), std::move(shrunk)};
}

}  // namespace bayesaim::denoisers
