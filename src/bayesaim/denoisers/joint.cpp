// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/joint.hpp"

#include <algorithm>
#include <cmath>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/linalg/decompositions.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::denoisers {
namespace {

using linalg::Matrix;

void check_covariance(const char* name, const Overlap& covariance, std::size_t layers) {
    check_between("layers", static_cast<double>(layers), 1, linalg::max_layers);
    check_size(name, covariance.rows(), static_cast<long long>(layers));
    check_size(name, covariance.cols(), static_cast<long long>(layers));
    if (!linalg::positive_definite(covariance)) {
        throw_invalid(name, "positive definite", covariance.diagonal().minCoeff());
    }
}

/// A symmetric matrix without row and column k.
Overlap without(const Overlap& matrix, Eigen::Index k) {
    const Eigen::Index size = matrix.rows() - 1;
    Overlap rest(size, size);
    for (Eigen::Index i = 0; i < size; ++i) {
        for (Eigen::Index j = 0; j < size; ++j) rest(i, j) = matrix(i + (i >= k), j + (j >= k));
    }
    return rest;
}

double largest_correlation(const Overlap& covariance) {
    double largest = 0;
    for (Eigen::Index i = 0; i < covariance.rows(); ++i) {
        for (Eigen::Index j = 0; j < i; ++j) {
            largest = std::max(largest,
                               std::abs(covariance(i, j)) / std::sqrt(covariance(i, i) * covariance(j, j)));
        }
    }
    return largest;
}

/// f_l(R_l), the denoiser of each layer alone, and the innovation estimates.
struct Features {
    std::vector<Matrix> alone, innovation;
};

Features features(Laws laws, std::span<const Matrix> noisy, const Overlap& noise, ThreadPool& pool,
                  const DenoiseOptions& options) {
    const std::size_t layers = laws.size();
    const auto at = [](std::size_t i) { return static_cast<Eigen::Index>(i); };
    const Overlap precision = linalg::inverse(noise);
    Features result;
    std::vector<double> error;
    for (std::size_t l = 0; l < layers; ++l) {
        Denoised denoised = denoise(*laws[l], noisy[l], noise(at(l), at(l)), pool, options);
        result.alone.push_back(std::move(denoised.estimate));
        error.push_back(denoised.posterior_variance);
    }
    for (std::size_t k = 0; k < layers; ++k) {
        Matrix shifted = noisy[k];
        double variance = 1 / precision(at(k), at(k));
        for (std::size_t j = 0; j < layers; ++j) {
            if (j == k) continue;
            const double coupling = precision(at(k), at(j)) / precision(at(k), at(k));
            shifted += coupling * (noisy[j] - result.alone[j]);
            variance += coupling * coupling * error[j];
        }
        result.innovation.push_back(denoise(*laws[k], shifted, variance, pool, options).estimate);
    }
    return result;
}

/// 1, R_l, f_l, innovation_l, each a column of d^2 numbers.
Matrix basis(Laws laws, std::span<const Matrix> noisy, const Overlap& noise, ThreadPool& pool,
             const DenoiseOptions& options) {
    const Features found = features(laws, noisy, noise, pool, options);
    const Eigen::Index dim = noisy[0].rows();
    Matrix columns(dim * dim, 1 + 3 * static_cast<Eigen::Index>(laws.size()));
    Eigen::Map<Matrix>(columns.data(), dim, dim).setIdentity();
    Eigen::Index next = 1;
    for (const auto& group :
         {std::vector<Matrix>(noisy.begin(), noisy.end()), found.alone, found.innovation}) {
        for (const Matrix& matrix : group) columns.col(next++) = matrix.reshaped();
    }
    return columns;
}

JointlyDenoised combine(Laws laws, std::span<const Matrix> noisy, const Overlap& noise, ThreadPool& pool,
                        const JointOptions& options) {
    const auto layers = static_cast<Eigen::Index>(laws.size());
    const Eigen::Index dim = noisy[0].rows();
    const double d = static_cast<double>(dim);
    const DenoiseOptions each{options.linear_outside_support};
    const Matrix phi = basis(laws, noisy, noise, pool, each);
    const Eigen::Index size = phi.cols();

    // div_m phi = (1/d) Tr Om dphi(R + eps Om in layer m)/d eps, Om ~ GOE
    Matrix divergence(size, layers);
    for (Eigen::Index m = 0; m < layers; ++m) {
        const RandomStream stream(options.seed, Purpose::probe, static_cast<std::uint64_t>(m));
        const Matrix direction = linalg::gaussian_orthogonal_ensemble(dim, stream, pool);
        const double step = 1e-3 * std::sqrt(noise(m, m));
        std::vector<Matrix> moved(noisy.begin(), noisy.end());
        moved[static_cast<std::size_t>(m)] += step * direction;
        Matrix change = basis(laws, moved, noise, pool, each);
        moved[static_cast<std::size_t>(m)] -= 2 * step * direction;
        change -= basis(laws, moved, noise, pool, each);
        divergence.col(m) = linalg::transposed_product(change, direction.reshaped()) / (2 * step * d);
    }
    Matrix target = linalg::product(divergence, noise);
    for (Eigen::Index k = 0; k < layers; ++k) {
        target.col(k) = linalg::transposed_product(phi, noisy[static_cast<std::size_t>(k)].reshaped()) / d -
                        target.col(k);
        target(0, k) = laws[static_cast<std::size_t>(k)]->mean();
    }
    // Features are nearly dependent at little noise. Eigenvectors of the scaled Gram matrix are left out if
    // their eigenvalue is below 1e-6 of the largest.
    const Matrix gram = linalg::transposed_product(phi, phi) / d;
    const Eigen::VectorXd scale = gram.diagonal().cwiseSqrt().cwiseInverse();
    const auto [values, vectors] = linalg::symmetric_eigen(scale.asDiagonal() * gram * scale.asDiagonal());
    const Eigen::VectorXd inverse =
        (values.array() > 1e-6 * values[size - 1]).select(values.cwiseInverse(), Eigen::VectorXd::Zero(size));
    const Matrix directions = scale.asDiagonal() * vectors;
    const Matrix coefficients =
        linalg::product(directions, inverse.asDiagonal() * linalg::transposed_product(directions, target));

    JointlyDenoised result;
    result.method = JointMethod::combination;
    for (Eigen::Index k = 0; k < layers; ++k) {
        result.estimates.emplace_back(linalg::product(phi, coefficients.col(k)).reshaped(dim, dim));
    }
    const Matrix covariance = linalg::product(linalg::transposed_product(coefficients, divergence), noise);
    result.posterior_covariance = linalg::symmetric_part(covariance);
    return result;
}

}  // namespace

Overlap cavity_covariance(Laws laws, const Overlap& precision) {
    check_covariance("qhat", precision, laws.size());
    const Eigen::Index layers = precision.rows();
    Overlap gaussian = precision;  // posterior precision with the equivalent Gaussian priors
    for (Eigen::Index k = 0; k < layers; ++k) {
        gaussian(k, k) = 1 / spectral::mmse(*laws[static_cast<std::size_t>(k)], 1 / precision(k, k));
    }
    Overlap covariance(layers, layers);
    for (Eigen::Index k = 0; k < layers; ++k) {
        Eigen::VectorXd coupling(layers - 1);
        for (Eigen::Index i = 0; i < layers - 1; ++i) coupling[i] = precision(k, i + (i >= k));
        Eigen::VectorXd response = coupling;
        if (layers > 1) response = linalg::solve_positive(without(gaussian, k), coupling);
        const double own = spectral::mmse(*laws[static_cast<std::size_t>(k)],
                                          1 / (precision(k, k) - coupling.dot(response)));
        covariance(k, k) = own;
        for (Eigen::Index i = 0; i < layers - 1; ++i) covariance(k, i + (i >= k)) = -own * response[i];
    }
    return linalg::symmetric_part(covariance);
}

double cavity_error(Laws laws, const Overlap& precision) {
    check_covariance("qhat", precision, laws.size());
    if (laws.size() == 1) return 0;
    const Overlap noise = linalg::inverse(precision);
    const double correlation = largest_correlation(noise), rough = 0.3 * std::pow(correlation, 4);
    // Polynomials of noisy matrices that are nearly the same are nearly dependent.
    if (rough < 1e-3 || correlation > 0.999) return rough;
    const double cavity = cavity_covariance(laws, precision).trace();
    return std::min(rough, std::abs(polynomial_estimator(laws, noise, 4).error().trace() / cavity - 1));
}

JointlyDenoised denoise_jointly(Laws laws, std::span<const Matrix> noisy, const Overlap& noise_covariance,
                                ThreadPool& pool, const JointOptions& options) {
    check_covariance("noise covariance", noise_covariance, laws.size());
    check_size("number of noisy matrices", static_cast<long long>(noisy.size()),
               static_cast<long long>(laws.size()));
    for (const Matrix& matrix : noisy) {
        check_size("dimension of a noisy matrix", matrix.rows(), noisy[0].rows());
    }
    const DenoiseOptions each{options.linear_outside_support};
    if (laws.size() == 1) {
        Denoised denoised = denoise(*laws[0], noisy[0], noise_covariance(0, 0), pool, each);
        return {{std::move(denoised.estimate)}, linalg::scalar_overlap(denoised.posterior_variance)};
    }
    // With more noise than signal the problem is nearly Gaussian and the innovation good at any coupling, but
    // the divergences of the combination, which Delta multiplies, are not exact enough.
    double most_noise = 0;
    for (std::size_t l = 0; l < laws.size(); ++l) {
        const auto at = static_cast<Eigen::Index>(l);
        most_noise = std::max(most_noise, noise_covariance(at, at) / laws[l]->variance());
    }
    const bool strong = largest_correlation(noise_covariance) > strong_coupling && most_noise < 1;
    if (options.method == JointMethod::combination || (options.method == JointMethod::automatic && strong)) {
        return combine(laws, noisy, noise_covariance, pool, options);
    }
    return {features(laws, noisy, noise_covariance, pool, each).innovation,
            cavity_covariance(laws, linalg::inverse(noise_covariance))};
}

}  // namespace bayesaim::denoisers
