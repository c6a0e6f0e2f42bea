// SPDX-License-Identifier: MIT
#include "bayesaim/spectral/free_moments.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "bayesaim/core/checks.hpp"

namespace bayesaim::spectral {
namespace {

/// m_0 = 1, m_1 = 0, .. m_count of the centred law.
std::vector<double> centred_moments(const SpectralLaw& law, int count) {
    double radius = 0;
    for (const Interval& interval : law.centred_support()) {
        radius = std::max({radius, std::abs(interval.low), std::abs(interval.high)});
    }
    // Aliases of moment k are moments k + nodes, suppressed by (radius / circle)^nodes = 1e-27.
    constexpr int half = 128;
    const double circle = 1.28 * radius;
    std::vector<double> moments(static_cast<std::size_t>(count) + 1, 0);
    moments[0] = 1;
    if (radius == 0) return moments;
    for (int j = 0; j < half; ++j) {
        const double angle = std::numbers::pi * (j + 0.5) / half;
        const Complex direction = std::polar(1.0, angle);
        Complex value = law.moment_transform(circle * direction).value;
        for (std::size_t k = 1; k < moments.size(); ++k) {
            value *= direction;
            moments[k] += value.real() / half;
        }
    }
    double scale = 1;
    for (std::size_t k = 1; k < moments.size(); ++k) moments[k] *= scale *= circle;
    return moments;
}

}  // namespace

std::vector<double> free_cumulants(const SpectralLaw& law, int count) {
    check_at_least("number of cumulants", count, 1);
    const std::vector<double> moments = centred_moments(law, count);
    const auto size = moments.size();
    std::vector<double> cumulants(size, 0);
    // powers[s] = coefficients of (1 + sum_k m_k x^k)^s
    std::vector<std::vector<double>> powers(size, std::vector<double>(size, 0));
    powers[0][0] = 1;
    for (std::size_t s = 1; s < size; ++s) {
        for (std::size_t i = 0; i < size; ++i) {
            for (std::size_t j = 0; i + j < size; ++j) powers[s][i + j] += powers[s - 1][i] * moments[j];
        }
    }
    for (std::size_t n = 1; n < size; ++n) {
        cumulants[n] = moments[n];
        for (std::size_t s = 1; s < n; ++s) cumulants[n] -= cumulants[s] * powers[s][n - s];
    }
    cumulants[1] = law.mean();
    cumulants.erase(cumulants.begin());
    return cumulants;
}

FreeMoments::FreeMoments(std::span<const std::vector<double>> cumulants,
                         const linalg::Overlap& noise_covariance, int longest)
    : layers_(static_cast<int>(cumulants.size())), longest_(longest), noise_(noise_covariance) {
    check_between("layers", layers_, 1, linalg::max_layers);
    check_at_least("length of the words", longest, 1);
    check_size("rows of the noise covariance", noise_.rows(), layers_);
    check_size("columns of the noise covariance", noise_.cols(), layers_);
    for (const auto& kappa : cumulants) {
        check_at_least("number of cumulants", static_cast<long long>(kappa.size()), longest);
    }
    powers_.push_back(1);
    first_.push_back(0);
    constexpr std::size_t most_words = std::size_t{1} << 24;
    for (int n = 0; n < longest; ++n) {
        first_.push_back(first_.back() + powers_.back());
        powers_.push_back(powers_.back() * static_cast<std::size_t>(layers_));
        if (first_.back() + powers_.back() > most_words) {
            throw_invalid("length of the words", "smaller for this number of layers", longest);
        }
    }
    moments_.assign(first_.back() + powers_.back(), 0);
    moments_[0] = 1;
    blocks_.resize(static_cast<std::size_t>(longest) * cumulants.size());
    for (int k = 1; k <= longest; ++k) {
        for (int i = 0; i < layers_; ++i) block(k, i).resize(first_[longest - k] + powers_[longest - k]);
    }
    for (int n = 1; n <= longest; ++n) {
        // A block of k letters, followed by n - k others.
        for (int k = n; k >= 1; --k) {
            for (int i = 0; i < layers_; ++i) fill(cumulants[static_cast<std::size_t>(i)], i, k, n - k);
        }
        for (std::size_t word = 0; word < powers_[n]; ++word) {
            const int first = static_cast<int>(word / powers_[n - 1]);
            double sum = block(1, first)[position(n - 1, word % powers_[n - 1])];
            for (int p = 1; p < n; ++p) {
                const auto other = word / powers_[n - 1 - p] % static_cast<std::size_t>(layers_);
                sum += noise_(first, static_cast<Eigen::Index>(other)) * part(n, word, 1, p) *
                       part(n, word, p + 1, n);
            }
            moments_[position(n, word)] = sum;
        }
    }
}

void FreeMoments::fill(const std::vector<double>& kappa, int layer, int size, int length) {
    const auto own = static_cast<std::size_t>(layer);
    for (std::size_t rest = 0; rest < powers_[length]; ++rest) {
        double sum =
            size == 1 ? 0 : kappa[static_cast<std::size_t>(size - 1)] * moments_[position(length, rest)];
        for (int p = 0; p < length; ++p) {
            if (rest / powers_[length - 1 - p] % powers_[1] != own) continue;
            const std::size_t after = rest % powers_[length - 1 - p];
            sum += part(length, rest, 0, p) * block(size + 1, layer)[position(length - 1 - p, after)];
        }
        block(size, layer)[position(length, rest)] = sum;
    }
}

/// Moment of the letters begin .. end - 1 of a word.
double FreeMoments::part(int length, std::size_t word, int begin, int end) const {
    return moments_[position(end - begin, word / powers_[length - end] % powers_[end - begin])];
}

std::size_t FreeMoments::code(const Word& word, int longest) const {
    check_between("length of a word", static_cast<double>(word.size()), 0, longest);
    std::size_t code = 0;
    for (const int letter : word) {
        check_between("letter of a word", letter, 0, layers_ - 1);
        code = code * powers_[1] + static_cast<std::size_t>(letter);
    }
    return code;
}

double FreeMoments::moment(const Word& word) const {
    return moments_[position(static_cast<int>(word.size()), code(word, longest_))];
}

double FreeMoments::signal_moment(int layer, const Word& word) const {
    check_between("layer", layer, 0, layers_ - 1);
    return blocks_[static_cast<std::size_t>(layer)]
                  [position(static_cast<int>(word.size()), code(word, longest_ - 1))];
}

double FreeMoments::divergence(int layer, const Word& word) const {
    const int length = static_cast<int>(word.size());
    const std::size_t number = code(word, longest_);
    double sum = 0;
    for (int p = 0; p < length; ++p) {
        if (word[static_cast<std::size_t>(p)] == layer)
            sum += part(length, number, 0, p) * part(length, number, p + 1, length);
    }
    return sum;
}

}  // namespace bayesaim::spectral
