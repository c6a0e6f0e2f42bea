// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/parts.hpp"

#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/denoisers/singular_values.hpp"

namespace bayesaim::denoisers {
namespace {

using linalg::Matrix;

/// The noise of R and of A, and the errors of their estimates with their slopes.
struct Levels {
    double asymmetry, noise, error, slope, reduced_noise, reduced_error, reduced_slope;
};

Levels levels(const spectral::SpectralLaw& law, double symmetric, double antisymmetric) {
    Levels l{};
    l.noise = symmetric + antisymmetric;
    l.asymmetry = (symmetric - antisymmetric) / l.noise;
    const spectral::ErrorPoint first = spectral::error_point(law, l.noise);
    l.error = first.error;
    l.slope = first.slope;
    // D - c^2 (D - mmse), without the loss of digits at |c| -> 1
    const double c2 = l.asymmetry * l.asymmetry;
    l.reduced_noise = 4 * symmetric * antisymmetric / l.noise + c2 * l.error;
    const spectral::ErrorPoint second = spectral::error_point(law, l.reduced_noise);
    l.reduced_error = second.error;
    l.reduced_slope = second.slope;
    return l;
}

Overlap diagonal(double sum, double difference) {
    Overlap result = linalg::zero_overlap(2);
    result(0, 0) = 0.5 * (sum + difference);
    result(1, 1) = 0.5 * (sum - difference);
    return result;
}

/// E_s - E_a
double difference(const Levels& l) { return l.asymmetry * l.error * l.reduced_error / l.reduced_noise; }

Overlap covariance(const Levels& l) { return diagonal(l.reduced_error, difference(l)); }

Overlap bias(const spectral::SpectralLaw& law, const Levels& l) {
    const double c2 = l.asymmetry * l.asymmetry,
                 gaussian = law.variance() * l.noise / (law.variance() + l.noise),
                 gain = 1 - l.error / gaussian;
    return diagonal(0.3 * gain * c2 * c2 * l.reduced_error, -0.6 * gain * c2 * difference(l));
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
    return bias(law, levels(law, 1 / precision(0, 0), 1 / precision(1, 1)));
}

PartsPoint parts_point(const spectral::SpectralLaw& law, double symmetric_noise, double antisymmetric_noise) {
    const Levels l = levels(law, symmetric_noise, antisymmetric_noise);
    const Overlap error = covariance(l), added = bias(law, l);
    const double both = 4 * symmetric_noise * antisymmetric_noise / l.noise, c = l.asymmetry,
                 ratio = l.reduced_error / l.reduced_noise;
    PartsPoint point{{error(0, 0), error(1, 1)}, {}, {added(0, 0), added(1, 1)}};
    for (int j = 0; j < 2; ++j) {
        // d/dlog Delta_j of D, c, D_A = 4 Delta_s Delta_a/D + c^2 mmse(D), and of the sum and the difference
        const double noise = j == 0 ? symmetric_noise : antisymmetric_noise, other = l.noise - noise;
        const double asymmetry = (j == 0 ? 0.5 : -0.5) * both / l.noise, first = l.slope * noise;
        const double reduced = both * other / l.noise + 2 * c * asymmetry * l.error + c * c * first;
        const double sum = l.reduced_slope * reduced,
                     gap = (asymmetry * l.error + c * first) * ratio +
                           c * l.error * (sum - ratio * reduced) / l.reduced_noise;
        point.log_slope[0][j] = 0.5 * (sum + gap) / error(0, 0);
        point.log_slope[1][j] = 0.5 * (sum - gap) / error(1, 1);
    }
    return point;
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
