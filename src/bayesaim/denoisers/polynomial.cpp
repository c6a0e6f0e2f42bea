// SPDX-License-Identifier: MIT
#include "bayesaim/denoisers/polynomial.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/linalg/decompositions.hpp"

namespace bayesaim::denoisers {
namespace {

using linalg::Matrix;
using spectral::Word;

Word reversed(Word word) {
    std::reverse(word.begin(), word.end());
    return word;
}

/// Words up to a degree, one of each pair w, w*, sorted by degree.
std::vector<Word> words_up_to(int degree, int layers) {
    std::vector<Word> words{{}}, all{{}};
    std::size_t begin = 0;
    for (int n = 1; n <= degree; ++n) {
        const std::size_t end = all.size();
        for (std::size_t i = begin; i < end; ++i) {
            for (int letter = 0; letter < layers; ++letter) {
                Word word = all[i];
                word.push_back(letter);
                if (word <= reversed(word)) words.push_back(word);
                all.push_back(std::move(word));
            }
        }
        begin = end;
    }
    return words;
}

Word joined(Word first, const Word& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

/// horner(prefix) = coefficient(prefix) + sum_i x_i horner(prefix followed by i).
Matrix horner(const std::map<Word, double>& coefficients, const Word& prefix, std::size_t degree,
              std::span<const Matrix> letters) {
    const Eigen::Index dim = letters[0].rows();
    Matrix sum = Matrix::Zero(dim, dim);
    if (prefix.size() < degree) {
        for (std::size_t i = 0; i < letters.size(); ++i) {
            Word longer = prefix;
            longer.push_back(static_cast<int>(i));
            if (longer.size() == degree) {
                sum += coefficients.at(longer) * letters[i];
            } else {
                linalg::multiply(1, letters[i], linalg::Transpose::no,
                                 horner(coefficients, longer, degree, letters), linalg::Transpose::no, 1,
                                 sum);
            }
        }
    }
    sum.diagonal().array() += coefficients.at(prefix);
    return sum;
}

}  // namespace

Polynomial polynomial_estimator(Laws laws, const Overlap& noise_covariance, int degree) {
    const auto layers = static_cast<int>(laws.size());
    check_between("layers", layers, 1, linalg::max_layers);
    check_at_least("degree", degree, 1);
    check_size("rows of the noise covariance", noise_covariance.rows(), layers);
    Polynomial result;
    std::vector<std::vector<double>> cumulants;
    Overlap noise = noise_covariance;
    for (int i = 0; i < layers; ++i) {
        const spectral::SpectralLaw& law = *laws[static_cast<std::size_t>(i)];
        check_positive("noise variance", noise_covariance(i, i));
        result.means.push_back(law.mean());
        result.scales.push_back(std::sqrt(law.variance() + noise_covariance(i, i)));
        cumulants.push_back(spectral::free_cumulants(law, 2 * degree));
        double power = 1;
        for (double& kappa : cumulants.back()) kappa /= power *= result.scales.back();
        noise.row(i) /= result.scales.back();
        noise.col(i) /= result.scales.back();
    }
    const spectral::FreeMoments moments(cumulants, noise, 2 * degree);
    result.words = words_up_to(degree, layers);
    const auto count = static_cast<Eigen::Index>(result.words.size());
    Matrix gram(count, count), target(count, layers);
    for (Eigen::Index i = 0; i < count; ++i) {
        const Word &w = result.words[static_cast<std::size_t>(i)], back = reversed(w);
        // tr(w v) = tr(v* w*): two of the four products of w or w* with v or v* differ.
        for (Eigen::Index j = 0; j <= i; ++j) {
            const Word& v = result.words[static_cast<std::size_t>(j)];
            gram(i, j) = 0.5 * (moments.moment(joined(w, v)) + moments.moment(joined(back, v)));
        }
        for (int k = 0; k < layers; ++k) {
            target(i, k) = result.scales[static_cast<std::size_t>(k)] * moments.signal_moment(k, w);
        }
    }
    const auto root = linalg::cholesky(gram);
    if (!root) throw_invalid("degree", "smaller: the words are dependent", degree);
    Matrix projected = target;
    linalg::solve_lower(*root, linalg::Transpose::no, projected);
    result.coefficients = projected;
    linalg::solve_lower(*root, linalg::Transpose::yes, result.coefficients);

    Overlap error = Overlap::Zero(layers, layers);
    for (int k = 0; k < layers; ++k) error(k, k) = laws[static_cast<std::size_t>(k)]->variance();
    Eigen::Index done = 0;
    for (std::size_t n = 0; n <= static_cast<std::size_t>(degree); ++n) {
        for (; done < count && result.words[static_cast<std::size_t>(done)].size() == n; ++done) {
            error -= projected.row(done).transpose() * projected.row(done);
        }
        result.errors.push_back(error);
    }
    result.divergence = Overlap::Zero(layers, layers);
    for (Eigen::Index i = 0; i < count; ++i) {
        for (int m = 0; m < layers; ++m) {
            const double divergence = moments.divergence(m, result.words[static_cast<std::size_t>(i)]) /
                                      result.scales[static_cast<std::size_t>(m)];
            for (int k = 0; k < layers; ++k)
                result.divergence(k, m) += result.coefficients(i, k) * divergence;
        }
    }
    return result;
}

std::vector<Matrix> evaluate(const Polynomial& polynomial, std::span<const Matrix> noisy) {
    const std::size_t layers = polynomial.means.size(), degree = polynomial.errors.size() - 1;
    check_size("number of noisy matrices", static_cast<long long>(noisy.size()),
               static_cast<long long>(layers));
    std::vector<Matrix> letters(noisy.begin(), noisy.end()), estimates;
    for (std::size_t i = 0; i < layers; ++i) {
        check_size("dimension of a noisy matrix", noisy[i].rows(), noisy[0].rows());
        letters[i].diagonal().array() -= polynomial.means[i];
        letters[i] /= polynomial.scales[i];
    }
    for (std::size_t k = 0; k < layers; ++k) {
        std::map<Word, double> coefficients;
        for (std::size_t i = 0; i < polynomial.words.size(); ++i) {
            const double half =
                0.5 * polynomial.coefficients(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(k));
            coefficients[polynomial.words[i]] += half;
            coefficients[reversed(polynomial.words[i])] += half;
        }
        estimates.push_back(horner(coefficients, {}, degree, letters));
        estimates.back().diagonal().array() += polynomial.means[k];
    }
    return estimates;
}

}  // namespace bayesaim::denoisers
