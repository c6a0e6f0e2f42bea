// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/learned_laws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <boost/math/tools/minima.hpp>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/numerics/nonnegative_least_squares.hpp"
#include "bayesaim/spectral/bilinear_law.hpp"
#include "bayesaim/spectral/free_convolution.hpp"
#include "bayesaim/spectral/marchenko_pastur_law.hpp"
#include "bayesaim/spectral/scaled_law.hpp"

namespace bayesaim::spectral {
namespace {

constexpr double smallest_part = 1e-4;  // kappa2 in units of tr R^2, and D in units of kappa2

void check(const NoisySpectrum& spectrum) {
    check_at_least("number of eigenvalues", static_cast<long long>(spectrum.values.size()), 2);
    check_positive("noise variance", spectrum.noise_variance);
    for (const double value : spectrum.values) check_finite("eigenvalue", value);
    if (!std::is_sorted(spectrum.values.begin(), spectrum.values.end()))
        throw InvalidArgument("eigenvalues must be ascending");
}

double average_of_power(const NoisySpectrum& spectrum, int power) {
    double sum = 0;
    for (const double value : spectrum.values) sum += std::pow(value, power);
    return sum / static_cast<double>(spectrum.values.size());
}

/// The equidistant point number i of `count` from low to high.
double equidistant(double low, double high, int i, int count) { return low + (high - low) * i / (count - 1); }

}  // namespace

// ------------------------------------------------------------------------------------------- from moments

Moments moments_of(const NoisySpectrum& spectrum) {
    check(spectrum);
    const double d = static_cast<double>(spectrum.values.size());
    const double mean = spectrum.singular ? 0 : average_of_power(spectrum, 1);
    const double second = average_of_power(spectrum, 2);
    const double noise = spectrum.noise_variance * (spectrum.singular ? 1 : 1 + 1 / d);
    return {mean, std::max({second - noise, mean * mean, smallest_part * second, 1e-200})};
}

WishartFit wishart_from(const Moments& moments) {
    check_positive("second moment", moments.second);
    const double ratio = moments.mean * moments.mean / moments.second, x = std::clamp(ratio, 0.005, 0.98);
    const double width = x / (1 - x);
    return {width, std::sqrt(moments.second / (1 + width)), moments.mean > 0 && x == ratio};
}

WishartFit bilinear_from(const NoisySpectrum& spectrum) {
    const double second = moments_of({spectrum.values, spectrum.noise_variance, true}).second;
    const double d = static_cast<double>(spectrum.values.size()), noise = spectrum.noise_variance;
    const double fourth =
        average_of_power(spectrum, 4) - (4 + 2 / d) * noise * second - (2 + 1 / d) * noise * noise;
    const double inverse = (fourth / (second * second) - 2 - 1 / d) / (1 + 2 / d);
    const double clipped = std::clamp(inverse, 1 / 200.0, 1 / 0.005);
    return {1 / clipped, std::sqrt(second), clipped == inverse};
}

std::unique_ptr<SpectralLaw> wishart_law(const WishartFit& fit) {
    return std::make_unique<ScaledLaw>(std::make_shared<MarchenkoPasturLaw>(fit.width), fit.scale);
}

std::unique_ptr<SpectralLaw> bilinear_law(const WishartFit& fit) {
    return std::make_unique<ScaledLaw>(std::make_shared<BilinearLaw>(fit.width), fit.scale);
}

std::unique_ptr<SpectralLaw> linear_law(const Moments& moments) {
    const double variance = std::max(moments.second - moments.mean * moments.mean, 0.0);
    return std::make_unique<BumpLaw>(std::vector<Bump>{{moments.mean, 1, variance}});
}

// ------------------------------------------------------------------------------------------- least squares

namespace {

/// Least squares for the weights of bumps.
class Deconvolution {
  public:
    Deconvolution(const NoisySpectrum& spectrum, double relative_width)
        : symmetric_(spectrum.singular), moments_(moments_of(spectrum)) {
        const double top = spectrum.values.back(), bottom = symmetric_ ? -top : spectrum.values.front();
        const double span = std::max(top - bottom, std::sqrt(smallest_part * moments_.second));
        const double noise = std::max(spectrum.noise_variance, smallest_part * moments_.second);
        scale_ = std::max(std::abs(top), std::abs(bottom));
        check_positive("largest eigenvalue", scale_);
        spread_ = std::max(relative_width * std::sqrt(noise), 0.02 * span);
        for (int j = symmetric_ ? bumps / 2 : 0; j < bumps; ++j)
            centres_.push_back(equidistant(bottom, top, j, bumps));
        find_points(spectrum, noise, bottom, top, span);
    }

    std::vector<Bump> solve() const {
        const auto atom = static_cast<Eigen::Index>(centres_.size());
        Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(2 * points + 3, atom + 1);
        Eigen::VectorXd target(2 * points + 3);
        for (Eigen::Index j = 0; j <= atom; ++j) {
            const double x = j < atom ? centres_[static_cast<std::size_t>(j)] : 0;
            const double variance = j < atom ? spread_ * spread_ : 0;
            add(matrix.col(j), x, variance, symmetric_ ? 0.5 : 1);
            if (symmetric_) add(matrix.col(j), -x, variance, 0.5);
        }
        const double row = 1 / std::sqrt(static_cast<double>(points));
        for (int k = 0; k < points; ++k) {
            target[2 * k] = row * transforms_[static_cast<std::size_t>(k)].real();
            target[2 * k + 1] = row * transforms_[static_cast<std::size_t>(k)].imag();
        }
        target.tail(3) << mass_weight, moment_weight * moments_.mean / scale_,
            moment_weight * moments_.second / (scale_ * scale_);
        return mixture(numerics::nonnegative_least_squares(matrix, target));
    }

  private:
    static constexpr int bumps = 60, points = 80;
    static constexpr double mass_weight = 30, moment_weight = 10;

    void find_points(const NoisySpectrum& spectrum, double noise, double bottom, double top, double span) {
        const double eta = span / 8 / std::cbrt(static_cast<double>(spectrum.values.size()));
        for (int k = 0; k < points; ++k) {
            const Complex z(equidistant(bottom - 2 * eta, top + 2 * eta, k, points), eta);
            Complex sum = 0;
            for (const double value : spectrum.values)
                sum += symmetric_ ? z / ((z - value) * (z + value)) : 1.0 / (z - value);
            transforms_.push_back(sum / static_cast<double>(spectrum.values.size()));
            subordinated_.push_back(z - noise * transforms_.back());
        }
    }

    /// Adds a share of the column of one bump.
    void add(Eigen::Ref<Eigen::VectorXd> column, double x, double variance, double share) const {
        const double row = share / std::sqrt(static_cast<double>(points)), radius = 2 * std::sqrt(variance);
        for (int k = 0; k < points; ++k) {
            const Complex u = subordinated_[static_cast<std::size_t>(k)] - x;
            const Complex phi = 2.0 / (u + std::sqrt(u - radius) * std::sqrt(u + radius));
            column[2 * k] += row * phi.real();
            column[2 * k + 1] += row * phi.imag();
        }
        column[2 * points] += share * mass_weight;
        column[2 * points + 1] += share * moment_weight * x / scale_;
        column[2 * points + 2] += share * moment_weight * (x * x + variance) / (scale_ * scale_);
    }

    std::vector<Bump> mixture(const Eigen::VectorXd& weights) const {
        constexpr double negligible = 1e-12;
        std::vector<Bump> result;
        double sum = 0;
        const auto push = [&](double x, double weight, double variance) {
            if (!(weight > negligible)) return;
            result.push_back({x, weight, variance});
            sum += weight;
        };
        const auto atom = static_cast<Eigen::Index>(centres_.size());
        for (Eigen::Index j = 0; j < atom; ++j) {
            const double x = centres_[static_cast<std::size_t>(j)];
            push(x, weights[j] * (symmetric_ ? 0.5 : 1), spread_ * spread_);
            if (symmetric_) push(-x, weights[j] * 0.5, spread_ * spread_);
        }
        push(0, weights[atom], 0);
        // Scaling by the root of the sum keeps sum v_j (x_j^2 + b^2), and the atom at 0.
        for (Bump& bump : result) {
            bump.weight /= sum;
            bump.centre *= std::sqrt(sum);
            bump.variance *= sum;
        }
        return result;
    }

    bool symmetric_;
    Moments moments_;
    double scale_ = 0, spread_ = 0;
    std::vector<double> centres_;
    std::vector<Complex> transforms_, subordinated_;  // G_k and w_k
};

}  // namespace

BumpLaw smooth_law(const NoisySpectrum& spectrum, double relative_width) {
    check(spectrum);
    check_positive("relative width of the bumps", relative_width);
    return BumpLaw(Deconvolution(spectrum, relative_width).solve());
}

// ------------------------------------------------------------------------------------------- comparisons

double spectral_misfit(const SpectralLaw& law, const NoisySpectrum& spectrum) {
    check(spectrum);
    const FreeConvolution noisy(law, spectrum.noise_variance);
    const double d = static_cast<double>(spectrum.values.size());
    double largest = 0;
    for (std::size_t i = 0; i < spectrum.values.size(); ++i) {
        double expected = noisy.cumulative(spectrum.values[i]);
        if (spectrum.singular) expected = 2 * expected - 1;  // both signs
        const double below = static_cast<double>(i) / d, above = static_cast<double>(i + 1) / d;
        largest = std::max({largest, expected - below, above - expected});
    }
    return d * largest;
}

double log_energy_distance(const SpectralLaw& law, const NoisySpectrum& spectrum) {
    check(spectrum);
    const FreeConvolution noisy(law, spectrum.noise_variance);
    double sum = 0;
    for (const double value : spectrum.values) sum += noisy.log_potential(value);
    return 2 * sum / static_cast<double>(spectrum.values.size()) - noisy.log_energy();
}

EvidenceFit wishart_by_evidence(const NoisySpectrum& spectrum, const Moments& moments) {
    check(spectrum);
    check_positive("second moment", moments.second);
    constexpr int intervals = 24;
    constexpr double step = 0.15;
    const double low = std::log(0.005), high = std::log(spectrum.singular ? 200.0 : 49.0);
    const auto fit_of = [&](double log_width) -> WishartFit {
        const double width = std::exp(log_width);
        return {width, std::sqrt(moments.second / (spectrum.singular ? 1 : 1 + width))};
    };
    const auto distance = [&](double log_width) {
        const WishartFit fit = fit_of(log_width);
        return log_energy_distance(spectrum.singular ? *bilinear_law(fit) : *wishart_law(fit), spectrum);
    };
    // The distance may have several minima: take the best point of a grid, and search next to it.
    int best = 0;
    double smallest = 0;
    for (int i = 0; i <= intervals; ++i) {
        const double value = distance(equidistant(low, high, i, intervals + 1));
        if (i > 0 && value >= smallest) continue;
        smallest = value;
        best = i;
    }
    const double below = equidistant(low, high, std::max(best - 1, 0), intervals + 1);
    const double above = equidistant(low, high, std::min(best + 1, intervals), intervals + 1);
    const auto [centre, minimum] = boost::math::tools::brent_find_minima(distance, below, above, 20);

    EvidenceFit result{fit_of(centre)};
    const double margin = 1e-3 * (high - low);
    result.fit.family_fits = centre > low + margin && centre < high - margin;
    const double curvature =
        (distance(centre + step) - 2 * minimum + distance(centre - step)) / (step * step);
    const double d = static_cast<double>(spectrum.values.size());
    const double precision = (spectrum.singular ? 1 : 0.5) * d * d * curvature;
    result.log_width_sd = precision > 0 ? 1 / std::sqrt(precision) : std::numeric_limits<double>::infinity();
    return result;
}

}  // namespace bayesaim::spectral
