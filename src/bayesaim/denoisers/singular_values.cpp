// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/singular_values.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::denoisers {

Denoised denoise_singular_values(const spectral::SpectralLaw& law, const linalg::ConstMatrixRef& noisy,
                                 double noise_variance, ThreadPool& pool, const DenoiseOptions& options) {
    check_size("columns of the noisy matrix", noisy.cols(), noisy.rows());
    const spectral::FreeConvolution spectrum(law, noise_variance);
    auto [squares, vectors] = linalg::symmetric_eigen(linalg::gram(1, noisy.transpose()));
    linalg::Vector values = squares.cwiseMax(0).cwiseSqrt();
    linalg::Vector shrunk(values.size()), ratio(values.size());
    const Shrinkage shrink(law, spectrum, options);
    // Below, the ratio is its value at 0 to 1e-12, and sigma is not resolved by its square.
    const double smallest = 1e-6 * std::sqrt(law.second_moment() + noise_variance);
    for (Eigen::Index i = 0; i < values.size(); ++i) {
        const double sigma = std::max(values[i], smallest);
        ratio[i] = shrink(sigma) / sigma;
        shrunk[i] = ratio[i] * values[i];
    }
    const linalg::Matrix map = linalg::from_eigen(vectors, ratio, pool);
    linalg::Matrix estimate(noisy.rows(), noisy.cols());
    parallel_for(pool, static_cast<std::size_t>(noisy.cols()), 64, [&](Range columns) {
        const auto first = static_cast<Eigen::Index>(columns.begin),
                   count = static_cast<Eigen::Index>(columns.size());
        linalg::multiply(1.0, noisy, linalg::Transpose::no, map.middleCols(first, count),
                         linalg::Transpose::no, 0.0, estimate.middleCols(first, count));
    });
    return {std::move(estimate), spectrum.mmse(), std::move(values), std::move(shrunk)};
}

}  // namespace bayesaim::denoisers
