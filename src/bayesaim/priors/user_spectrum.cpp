// SPDX-License-Identifier: MIT
#include "bayesaim/priors/user_spectrum.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/core/random.hpp"
#include "bayesaim/core/text.hpp"
#include "bayesaim/linalg/random_matrix.hpp"
#include "bayesaim/linalg/symmetric_eigen.hpp"

namespace bayesaim::priors {
namespace {

/// The numbers of one line.
std::vector<double> parse_line(std::string line, const std::string& place) {
    line.erase(std::find(line.begin(), line.end(), '#'), line.end());
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == ',' || c == '\t' || c == '\r'; }, ' ');
    std::vector<double> numbers;
    for (const std::string_view word : split(line, ' ')) {
        if (word.empty()) continue;
        const bool plus = word.starts_with('+') && !word.starts_with("+-");
        const auto value = parse_number<double>(word.substr(plus ? 1 : 0));
        if (!value) throw_invalid(place, "a number", fmt::format("'{}'", word));
        check_finite(place, *value);
        numbers.push_back(*value);
    }
    return numbers;
}

linalg::Matrix rotation(Eigen::Index dim, std::uint64_t seed, std::uint64_t index, ThreadPool& pool) {
    check_at_least("dimension", dim, 1);
    const RandomStream stream(seed, Purpose::rotation, index);
    return linalg::haar_orthogonal(linalg::gaussian_matrix(dim, dim, stream, pool));
}

linalg::Vector quantiles(const spectral::AtomicLaw& law, Eigen::Index dim) {
    linalg::Vector values(dim);
    for (Eigen::Index i = 0; i < dim; ++i)
        values[i] = law.quantile((static_cast<double>(i) + 0.5) / static_cast<double>(dim));
    return values;
}

/// Half of each weight at the value, half at its negative.
spectral::AtomicLaw both_signs(std::span<const double> values, std::span<const double> weights) {
    std::vector<double> positions, halves;
    for (std::size_t i = 0; i < values.size(); ++i) {
        check_non_negative("singular value", values[i]);
        for (const double sign : {1.0, -1.0}) {
            positions.push_back(sign * values[i]);
            halves.push_back(0.5 * weights[i]);
        }
    }
    return {positions, halves};
}

}  // namespace

std::vector<std::pair<std::string, double>> UserSpectrum::parameters() const {
    return {{"atoms", static_cast<double>(law_.centred_support().size())},
            {"mean", law_.mean()},
            {"second_moment", law_.second_moment()}};
}

linalg::Matrix UserSpectrum::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                    ThreadPool& pool) const {
    return linalg::from_eigen(rotation(dim, seed, index, pool), quantiles(law_, dim), pool);
}

UserSingularValues::UserSingularValues(std::span<const double> values, std::span<const double> weights)
    : values_(values, weights), law_(both_signs(values, weights)) {}

std::vector<std::pair<std::string, double>> UserSingularValues::parameters() const {
    return {{"atoms", static_cast<double>(values_.centred_support().size())},
            {"mean", values_.mean()},
            {"second_moment", values_.second_moment()}};
}

linalg::Matrix UserSingularValues::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                          ThreadPool& pool) const {
    const linalg::Matrix left = rotation(dim, seed, 2 * index, pool),
                         right = rotation(dim, seed, 2 * index + 1, pool);
    linalg::Matrix result(dim, dim);
    linalg::multiply(1.0, left * quantiles(values_, dim).asDiagonal(), linalg::Transpose::no, right,
                     linalg::Transpose::yes, 0.0, result);
    return result;
}

SpectrumFile read_spectrum_file(const std::filesystem::path& file) {
    check_readable("spectrum file", file);
    std::ifstream in(file);
    std::vector<double> eigenvalues, weights;
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        const std::string place = fmt::format("{}:{}", file.string(), number);
        const std::vector<double> numbers = parse_line(line, place);
        if (numbers.empty()) continue;
        if (numbers.size() > 2) {
            throw_invalid(place, "an eigenvalue, or an eigenvalue and its weight",
                          fmt::format("{} numbers", numbers.size()));
        }
        eigenvalues.push_back(numbers[0]);
        if (numbers.size() == 2) weights.push_back(numbers[1]);
        if (!weights.empty() && weights.size() != eigenvalues.size()) {
            throw_invalid(place, "like the lines before: weights on every line or on none",
                          fmt::format("{} number(s)", numbers.size()));
        }
    }
    if (eigenvalues.empty()) {
        throw_invalid("spectrum file", "non-empty", fmt::format("no eigenvalue in '{}'", file.string()));
    }
    if (weights.empty()) weights.assign(eigenvalues.size(), 1 / static_cast<double>(eigenvalues.size()));
    return {std::move(eigenvalues), std::move(weights)};
}

UserSpectrum read_spectrum(const std::filesystem::path& file) {
    const SpectrumFile content = read_spectrum_file(file);
    return {content.values, content.weights};
}

}  // namespace bayesaim::priors
