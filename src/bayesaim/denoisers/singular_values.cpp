// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/singular_values.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/spectral/rectangular_law.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

namespace bayesaim::denoisers {
namespace {

/// Replaces each singular value sigma of the matrix by shrink(sigma). `scale` is the size of a singular value.
Denoised shrink_singular_values(const linalg::ConstMatrixRef& noisy, const Shrinkage& shrink, double scale,
                                double posterior_variance, ThreadPool& pool) {
    const bool high = noisy.rows() >= noisy.cols();
    auto [squares, vectors] = linalg::symmetric_eigen(high ? linalg::gram(1, noisy.transpose())  //
                                                           : linalg::gram(1, noisy));
    linalg::Vector values = squares.cwiseMax(0).cwiseSqrt();
    linalg::Vector shrunk(values.size()), ratio(values.size());
    // Below, the ratio is its value at 0 to 1e-12, and sigma is not resolved by its square.
    const double smallest = 1e-6 * scale;
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
    return {std::move(estimate), posterior_variance, std::move(values), std::move(shrunk)};
}

}  // namespace

Denoised denoise_singular_values(const spectral::SpectralLaw& law, const linalg::ConstMatrixRef& noisy,
                                 double noise_variance, ThreadPool& pool, const DenoiseOptions& options) {
    check_size("columns of the noisy matrix", noisy.cols(), law.columns(noisy.rows()));
    const double scale = std::sqrt(law.second_moment() + noise_variance);
    if (law.aspect() == 1) {
        const spectral::FreeConvolution spectrum(law, noise_variance);
        return shrink_singular_values(noisy, Shrinkage(law, spectrum, options), scale, spectrum.mmse(), pool);
    }
    if (const auto* scaled = dynamic_cast<const spectral::ScaledLaw*>(&law)) {
        const double c = scaled->factor();
        const linalg::Matrix smaller = noisy / c;
        Denoised result =
            denoise_singular_values(scaled->law(), smaller, noise_variance / (c * c), pool, options);
        result.estimate *= c;
        result.posterior_variance *= c * c;
        result.eigenvalues *= c;
        result.shrunk *= c;
        return result;
    }
    const auto* rectangular = dynamic_cast<const spectral::RectangularLaw*>(&law);
    if (rectangular == nullptr)
        throw InvalidArgument("only spectral::RectangularLaw has a denoiser of rectangular matrices");
    const spectral::RectangularCurve spectrum = rectangular->with_noise(noise_variance);
    return shrink_singular_values(noisy, Shrinkage(law, spectrum, options), scale, spectrum.error().error,
                                  pool);
}

}  // namespace bayesaim::denoisers
