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

}  // namespace

std::vector<std::pair<std::string, double>> UserSpectrum::parameters() const {
    return {{"atoms", static_cast<double>(law_.centred_support().size())},
            {"mean", law_.mean()},
            {"second_moment", law_.second_moment()}};
}

linalg::Matrix UserSpectrum::sample(Eigen::Index dim, std::uint64_t seed, std::uint64_t index,
                                    ThreadPool& pool) const {
    check_at_least("dimension", dim, 1);
    const RandomStream stream(seed, Purpose::rotation, index);
    const linalg::Matrix rotation = linalg::haar_orthogonal(linalg::gaussian_matrix(dim, dim, stream, pool));
    linalg::Vector values(dim);
    for (Eigen::Index i = 0; i < dim; ++i) {
        values[i] = law_.quantile((static_cast<double>(i) + 0.5) / static_cast<double>(dim));
    }
    return linalg::from_eigen(rotation, values, pool);
}

UserSpectrum read_spectrum(const std::filesystem::path& file) {
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
    return weights.empty() ? UserSpectrum(eigenvalues) : UserSpectrum(eigenvalues, weights);
}

}  // namespace bayesaim::priors
