// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/parts.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/denoisers/singular_values.hpp"

namespace bayesaim::denoisers {
namespace {

using linalg::Matrix;

/// The noise of R and of A, and the errors of their estimates.
struct Levels {
    double asymmetry, noise, error, reduced_noise, reduced_error;
};

Levels levels(const spectral::SpectralLaw& law, double symmetric, double antisymmetric) {
    Levels l{};
    l.noise = symmetric + antisymmetric;
    l.asymmetry = (symmetric - antisymmetric) / l.noise;
    l.error = spectral::error_point(law, l.noise).error;
    // D - c^2 (D - mmse), without the loss of digits at |c| -> 1
    const double c2 = l.asymmetry * l.asymmetry;
    l.reduced_noise = 4 * symmetric * antisymmetric / l.noise + c2 * l.error;
    l.reduced_error = spectral::error_point(law, l.reduced_noise).error;
    return l;
}

Overlap diagonal(double sum, double difference) {
    Overlap result = linalg::zero_overlap(2);
    result(0, 0) = 0.5 * (sum + difference);
    result(1, 1) = 0.5 * (sum - difference);
    return result;
}

Overlap covariance(const Levels& l) {
    return diagonal(l.reduced_error, l.asymmetry * l.error * l.reduced_error / l.reduced_noise);
}

void check_parts(const char* name, const Overlap& matrix) {
    check_size(name, matrix.rows(), 2);
    for (int part = 0; part < 2; ++part) check_positive(name, matrix(part, part));
}

}  // namespace

std::array<Matrix, 2> parts_of(const linalg::ConstMatrixRef& matrix) {
    return {Matrix(0.5 * (matrix + matrix.transpose())), Matrix(0.5 * (matrix - matrix.transpose()))};
}

Overlap parts_covariance(const spectral::SpectralLaw& law, const Overlap& precision) {
    check_parts("precision of the parts", precision);
    return covariance(levels(law, 1 / precision(0, 0), 1 / precision(1, 1)));
}

Overlap parts_bias(const spectral::SpectralLaw& law, const Overlap& precision) {
    check_parts("precision of the parts", precision);
    const Levels l = levels(law, 1 / precision(0, 0), 1 / precision(1, 1));
    const Overlap c = covariance(l);
    const double c2 = l.asymmetry * l.asymmetry,
                 gaussian = law.variance() * l.noise / (law.variance() + l.noise),
                 gain = 1 - l.error / gaussian;
    return diagonal(0.3 * gain * c2 * c2 * c.trace(), -0.6 * gain * c2 * (c(0, 0) - c(1, 1)));
}

JointlyDenoised denoise_parts(const spectral::SpectralLaw& law, std::span<const Matrix> noisy,
                              const Overlap& noise_covariance, ThreadPool& pool,
                              const DenoiseOptions& options) {
    check_size("parts of the noisy matrix", static_cast<long long>(noisy.size()), 2);
    check_parts("noise variance of the parts", noise_covariance);
    const Levels l = levels(law, noise_covariance(0, 0), noise_covariance(1, 1));
    Matrix r = noisy[0] + noisy[1];
    if (l.asymmetry != 0) {
        const Matrix noise = r - denoise_singular_values(law, r, l.noise, pool, options).estimate;
        r -= l.asymmetry * noise.transpose();
    }
    auto [symmetric, antisymmetric] =
        parts_of(denoise_singular_values(law, r, l.reduced_noise, pool, options).estimate);
    JointlyDenoised result{{}, covariance(l)};
    result.estimates.push_back(std::move(symmetric));
    result.estimates.push_back(std::move(antisymmetric));
    return result;
}

}  // namespace bayesaim::denoisers
