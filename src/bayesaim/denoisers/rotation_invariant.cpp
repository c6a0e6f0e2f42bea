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

Shrinkage::Shrinkage(const spectral::SpectralLaw& law, const spectral::FreeConvolution& spectrum,
                     const DenoiseOptions& options)
    : denoised_([&spectrum](double x) { return spectrum.at(x).denoised; }),
      slope_(law.variance() / (law.variance() + spectrum.noise_variance())) {
    if (options.linear_outside_support) bulks_ = spectrum.edges();
}

Shrinkage::Shrinkage(const spectral::SpectralLaw& law, const spectral::RectangularCurve& spectrum,
                     const DenoiseOptions& options)
    : denoised_([&spectrum](double x) { return spectrum.at(x).denoised; }),
      slope_(law.variance() / (law.variance() + spectrum.noise_variance())) {
    if (options.linear_outside_support) bulks_ = spectrum.edges();
}

double Shrinkage::operator()(double lambda) const {
    const double x = bulks_.empty() ? lambda : nearest_in_support(bulks_, lambda);
    return denoised_(x) + slope_ * (lambda - x);
}

Denoised denoise(const spectral::SpectralLaw& law, const linalg::ConstMatrixRef& noisy, double noise_variance,
                 ThreadPool& pool, const DenoiseOptions& options) {
    linalg::check_symmetric("noisy matrix", noisy);
    const spectral::FreeConvolution spectrum(law, noise_variance);
    auto [values, vectors] = linalg::symmetric_eigen(noisy);
    linalg::Vector shrunk(values.size());
    const Shrinkage shrink(law, spectrum, options);
    for (Eigen::Index i = 0; i < values.size(); ++i) shrunk[i] = shrink(values[i]);
    return {linalg::from_eigen(vectors, shrunk, pool), spectrum.mmse(), std::move(values), std::move(shrunk)};
}

}  // namespace bayesaim::denoisers
