// SPDX-License-Identifier: MIT
#include "bayesaim/testing/prior_contract.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"
#include "bayesaim/numerics/statistics.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/rectangular_law.hpp"

namespace bayesaim::testing {
namespace {

using linalg::Matrix;
using priors::Prior;
using Options = PriorContractOptions;

Matrix sample(const Prior& prior, Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
              std::size_t threads = 1) {
    ThreadPool pool(threads);
    return prior.sample(dim, seed, index, pool);
}

/// d, or sqrt(d1 d2) of rectangular weights.
double size_of(const Prior& prior, const Options& options) {
    return std::sqrt(static_cast<double>(options.dim) *
                     static_cast<double>(prior.law().columns(options.dim)));
}

Violations samples_have_their_shape(const Prior& prior, const Options& options) {
    const Matrix s = sample(prior, options.dim, 1, 0);
    if (s.rows() != options.dim || s.cols() != prior.law().columns(options.dim)) {
        return {fmt::format("sample has {} x {} entries for dimension {}", s.rows(), s.cols(), options.dim)};
    }
    Violations lines;
    if (!s.allFinite()) lines.push_back("sample has entries that are not finite");
    if (prior.symmetric() && s != s.transpose()) lines.push_back("sample is not symmetric");
    return lines;
}

Violations samples_repeat(const Prior& prior, const Options& options) {
    const Matrix s = sample(prior, options.dim, 7, 3);
    for (const std::size_t threads : {1U, 2U, 3U}) {
        if (sample(prior, options.dim, 7, 3, threads) != s) {
            return {fmt::format("the same seed and index give another sample on {} thread(s)", threads)};
        }
    }
    return {};
}

Violations samples_differ(const Prior& prior, const Options& options) {
    Violations lines;
    const double d = size_of(prior, options), variance = prior.law().variance();
    const Matrix mean = prior.law().mean() * Matrix::Identity(options.dim, prior.law().columns(options.dim));
    const Matrix centred = sample(prior, options.dim, 7, 3) - mean;
    for (const auto& [seed, index] : {std::pair{7U, 4U}, std::pair{8U, 3U}}) {
        // Tr(A B)/d of free centred matrices is of order variance/d; of equal ones it is the variance.
        const double product = centred.cwiseProduct(sample(prior, options.dim, seed, index) - mean).sum() / d;
        if (!(std::abs(product) <= 10 * variance / d)) {
            lines.push_back(fmt::format("draws (7, 3) and ({}, {}) have overlap {:.4g}, above {:.4g}", seed,
                                        index, product, 10 * variance / d));
        }
    }
    return lines;
}

Violations moments(const Prior& prior, const Options& options) {
    const double d = size_of(prior, options);
    std::vector<double> first, second;
    for (int draw = 0; draw < options.draws; ++draw) {
        const Matrix s = sample(prior, options.dim, 11, static_cast<std::uint64_t>(draw));
        first.push_back(s.trace() / d);
        second.push_back(s.squaredNorm() / d);
    }
    const spectral::SpectralLaw& law = prior.law();
    Violations lines;
    const auto check = [&](const std::vector<double>& values, double expected, double scale,
                           const char* what) {
        const numerics::Estimate mean = numerics::combine(values);
        // Real matrices: E tr S^2 = kappa2 + 1/d for Wishart and Wigner.
        const double allowance = 4 * mean.standard_error + 2 / d * scale;
        if (!(std::abs(mean.value - expected) <= allowance)) {
            lines.push_back(fmt::format("{} of samples is {:.6g}, of the law {:.6g} +- {:.2g}", what,
                                        mean.value, expected, allowance));
        }
    };
    check(first, law.mean(), std::sqrt(law.second_moment()), "tr S");
    check(second, law.second_moment(), law.second_moment(), "tr S^2");
    return lines;
}

/// Largest distance between the empirical distribution of the sorted values and the integrated density. `share` is the
/// mass of the bulks.
template <class Spectrum>
double kolmogorov_distance(const linalg::Vector& values, const Spectrum& spectrum, double share = 1) {
    const auto n = static_cast<double>(values.size());
    double below = 0, worst = 0;
    Eigen::Index counted = 0;
    for (const spectral::Interval& bulk : spectrum.edges()) {
        constexpr int steps = 4000;
        for (int k = 0; k < steps; ++k) {
            const double width = (bulk.high - bulk.low) / steps, x = bulk.low + (k + 0.5) * width;
            below += width * spectrum.at(x).density / share;
            while (counted < values.size() && values[counted] < x + 0.5 * width) ++counted;
            worst = std::max(worst, std::abs(below - static_cast<double>(counted) / n));
        }
    }
    return worst;
}

/// Eigenvalues; singular values with both signs if the prior is not symmetric. Ascending.
linalg::Vector spectrum_of(const Prior& prior, const Matrix& matrix) {
    if (prior.symmetric()) return linalg::symmetric_eigenvalues(matrix);
    const linalg::Vector values =
        linalg::symmetric_eigenvalues(linalg::gram(1, matrix)).cwiseMax(0).cwiseSqrt();
    linalg::Vector both(2 * values.size());
    both << -values.reverse(), values;
    return both;
}

Violations spectrum_under_noise(const Prior& prior, const Options& options) {
    Violations lines;
    ThreadPool pool(1);
    const RandomStream stream(5, Purpose::noise);
    const double root_dim = std::sqrt(size_of(prior, options));
    const auto* rectangular = dynamic_cast<const spectral::RectangularLaw*>(&prior.law());
    const Matrix noise =
        prior.symmetric()
            ? linalg::gaussian_orthogonal_ensemble(options.dim, stream, pool)
            : Matrix(linalg::gaussian_matrix(options.dim, prior.law().columns(options.dim), stream, pool) /
                     root_dim);
    const Matrix s = sample(prior, options.dim, 5, 0);
    for (const double noise_variance : {0.05, 0.5}) {
        const Matrix noisy = s + std::sqrt(noise_variance) * noise;
        double distance = 0;
        if (rectangular != nullptr) {  // positive singular values, those of the shorter side
            const Matrix gram = noisy.rows() < noisy.cols() ? Matrix(linalg::gram(1, noisy))
                                                            : Matrix(linalg::gram(1, noisy.transpose()));
            distance = kolmogorov_distance(linalg::symmetric_eigenvalues(gram).cwiseMax(0).cwiseSqrt(),
                                           rectangular->with_noise(noise_variance), 0.5);
        } else {
            distance = kolmogorov_distance(spectrum_of(prior, noisy),
                                           spectral::FreeConvolution(prior.law(), noise_variance));
        }
        // Eigenvalues are rigid: order log(d)/d, far below the 1/sqrt(d) of independent points.
        const double allowance = 4 / static_cast<double>(std::min(s.rows(), s.cols()));
        if (!(distance <= allowance)) {
            lines.push_back(
                fmt::format("eigenvalues (or singular values) at noise variance {:g} are {:.4g} from the law "
                            "(Kolmogorov), above {:.4g}",
                            noise_variance, distance, allowance));
        }
    }
    return lines;
}

Violations mmse(const Prior& prior, const Options& options) {
    Violations lines;
    const spectral::SpectralLaw& law = prior.law();
    double last = 0, last_ratio = (1 - law.atomic_concentration()) * (1 + 1e-9);
    for (double noise = options.smallest_noise_variance; noise < 2 * options.largest_noise_variance;
         noise *= 3) {
        const auto [error, slope, mass] = [&]() -> std::array<double, 3> {
            if (const auto* rectangular = dynamic_cast<const spectral::RectangularLaw*>(&law)) {
                const spectral::RectangularCurve curve = rectangular->with_noise(noise);
                return {curve.error().error, curve.error().slope, curve.mass()};
            }
            const spectral::FreeConvolution spectrum(law, noise);
            return {spectrum.mmse(), spectrum.mmse_derivative(), spectrum.mass()};
        }();
        const double ratio = error / noise;
        const auto expect = [&, error = error](bool holds, const char* what) {
            if (!holds)
                lines.push_back(fmt::format("{} at noise variance {:g}, mmse {:.8g}", what, noise, error));
        };
        expect(error > last, "mmse does not increase");
        expect(error <= std::min(noise, law.variance()), "mmse is above noise or prior variance");
        expect(ratio < last_ratio, "mmse grows faster than the noise");
        expect(slope > 0, "slope of the mmse is not positive");
        expect(std::abs(mass - 1) <= 1e-10, "density does not integrate to 1");
        last = error;
        last_ratio = ratio;
    }
    return lines;
}

}  // namespace

const std::vector<PriorCheck>& prior_checks() {
    static const std::vector<PriorCheck> checks = {
        {"samples_have_their_shape", samples_have_their_shape},
        {"samples_repeat", samples_repeat},
        {"samples_differ", samples_differ},
        {"moments", moments},
        {"spectrum_under_noise", spectrum_under_noise},
        {"mmse", mmse},
    };
    return checks;
}

Violations check_prior(const Prior& prior, const Options& options) {
    return run_checks(prior_checks(), prior, options);
}

}  // namespace bayesaim::testing
