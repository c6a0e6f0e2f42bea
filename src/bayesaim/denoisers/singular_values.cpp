// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/singular_values.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/spectral/rectangular_law.hpp"

namespace bayesaim::denoisers {
namespace {

Denoised denoise_rectangular(const spectral::RectangularLaw& law, const linalg::ConstMatrixRef& noisy,
                             double noise_variance, ThreadPool& pool, const DenoiseOptions& options) {
    const spectral::RectangularCurve spectrum = law.with_noise(noise_variance);
    const bool high = noisy.rows() > noisy.cols();
    auto [squares, vectors] = high ? linalg::symmetric_eigen(linalg::gram(1, noisy.transpose()))
                                   : linalg::symmetric_eigen(linalg::gram(1, noisy));
    linalg::Vector values = squares.cwiseMax(0).cwiseSqrt();
    linalg::Vector shrunk(values.size()), ratio(values.size());
    const Shrinkage shrink(law, spectrum, options);
    const double smallest = 1e-6 * std::sqrt(1 + noise_variance);  // not resolved by squares
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
        auto result = estimate.middleCols(first, count);
        if (high) {
            linalg::multiply(1.0, noisy, linalg::Transpose::no, map.middleCols(first, count),
                             linalg::Transpose::no, 0.0, result);
        } else {
            linalg::multiply(1.0, map, linalg::Transpose::no, noisy.middleCols(first, count),
                             linalg::Transpose::no, 0.0, result);
        }
    });
    return {std::move(estimate), spectrum.error().error, std::move(values), std::move(shrunk)};
}

}  // namespace

Denoised denoise_singular_values(const spectral::SpectralLaw& law, const linalg::ConstMatrixRef& noisy,
                                 double noise_variance, ThreadPool& pool, const DenoiseOptions& options) {
    check_size("columns of the noisy matrix", noisy.cols(), law.columns(noisy.rows()));
    if (law.aspect() != 1) {
        const auto* rectangular = dynamic_cast<const spectral::RectangularLaw*>(&law);
        if (rectangular == nullptr)
            throw InvalidArgument("only spectral::RectangularLaw has a denoiser of rectangular matrices");
        return denoise_rectangular(*rectangular, noisy, noise_variance, pool, options);
    }
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
