// SPDX-License-Identifier: MIT
#include "bayesaim/priors/spectrum_file.hpp"

#include <algorithm>
#include <fstream>
#include <mutex>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/files.hpp"
#include "bayesaim/core/hdf5_file.hpp"
#include "bayesaim/core/input_file.hpp"
#include "bayesaim/core/text.hpp"
#include "bayesaim/priors/learned_spectrum.hpp"
#include "bayesaim/priors/table.hpp"
#include "bayesaim/priors/user_spectrum.hpp"

namespace bayesaim::priors {
namespace {

using spectral::Bump;

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

/// Half of each weight at the value, half at its negative.
std::vector<Bump> both_signs(const std::vector<Bump>& bumps) {
    std::vector<Bump> result;
    for (const auto& [centre, weight, variance] : bumps) {
        check_non_negative("singular value", centre);
        result.push_back({centre, 0.5 * weight, variance});
        result.push_back({-centre, 0.5 * weight, variance});
    }
    return result;
}

std::unique_ptr<Prior> prior_of_text(const std::vector<Bump>& bumps, bool symmetric) {
    if (std::ranges::any_of(bumps, [](const Bump& bump) { return bump.variance != 0; }))
        return std::make_unique<LearnedSpectrum>(symmetric ? bumps : both_signs(bumps), symmetric);
    std::vector<double> values, weights;
    for (const Bump& bump : bumps) {
        values.push_back(bump.centre);
        weights.push_back(bump.weight);
    }
    if (symmetric) return std::make_unique<UserSpectrum>(values, weights);
    return std::make_unique<UserSingularValues>(values, weights);
}

std::unique_ptr<Prior> prior_of_estimate(const std::string& file, std::optional<bool> symmetric) {
    const Hdf5Reader reader(file, "spectrum file");
    const Attributes attributes = reader.attributes();
    const std::string attention = text_attribute(attributes, "attention").value_or("tied");
    const bool tied = attention == "tied";
    if (symmetric && *symmetric != tied)
        throw_invalid("spectrum file", *symmetric ? "of tied attention" : "of untied attention",
                      fmt::format("'{}', of {} attention", file, attention));
    if (reader.has("law")) {
        const InputArray array = reader.array("law", "(1, bumps, 3)");
        if (array.shape[0] != 1 || array.shape[2] != 3)
            throw_invalid(array.title, "an array (1, bumps, 3)", to_string(array.shape));
        std::vector<double> numbers(static_cast<std::size_t>(3 * array.shape[1]));
        read_all(array, numbers.data());
        std::vector<Bump> bumps;
        for (std::size_t i = 0; i < numbers.size(); i += 3)
            bumps.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
        return std::make_unique<LearnedSpectrum>(bumps, tied);
    }
    const std::string name = text_attribute(attributes, "prior").value_or("");
    if (name.empty() || name == "spectrum")
        throw_invalid("spectrum file", "a text, or an estimate with the dataset /law",
                      fmt::format("'{}' without it", file));
    PriorOptions options{.symmetric = tied};
    options.width = number_attribute(attributes, "width").value_or(options.width);
    options.scale = number_attribute(attributes, "scale").value_or(options.scale);
    options.aspect = number_attribute(attributes, "aspect").value_or(options.aspect);
    options.exponent = number_attribute(attributes, "exponent").value_or(options.exponent);
    options.cutoff = number_attribute(attributes, "cutoff").value_or(options.cutoff);
    const double heads = number_attribute(attributes, "heads").value_or(options.heads);
    check_between("attribute heads", heads, 1, 1e6);
    options.heads = static_cast<int>(heads);
    return std::make_unique<StoredPrior>(make_prior(name, options));
}

}  // namespace

std::vector<Bump> read_spectrum_text(const std::filesystem::path& file) {
    check_readable("spectrum file", file);
    std::ifstream in(file);
    std::vector<Bump> bumps;
    std::string line;
    std::size_t columns = 0;
    for (int number = 1; std::getline(in, line); ++number) {
        const std::string place = fmt::format("{}:{}", file.string(), number);
        const std::vector<double> numbers = parse_line(line, place);
        if (numbers.empty()) continue;
        if (numbers.size() > 3)
            throw_invalid(place, "an eigenvalue, if you like with its weight, or with weight and variance",
                          fmt::format("{} numbers", numbers.size()));
        if (columns == 0) columns = numbers.size();
        if (numbers.size() != columns)
            throw_invalid(place, fmt::format("like the lines before: {} number(s)", columns),
                          fmt::format("{} number(s)", numbers.size()));
        bumps.push_back({numbers[0], columns > 1 ? numbers[1] : 1, columns > 2 ? numbers[2] : 0});
    }
    if (bumps.empty())
        throw_invalid("spectrum file", "non-empty", fmt::format("no eigenvalue in '{}'", file.string()));
    if (columns == 1) {
        for (Bump& bump : bumps) bump.weight = 1 / static_cast<double>(bumps.size());
    }
    return bumps;
}

std::unique_ptr<Prior> read_spectrum(const std::filesystem::path& file, std::optional<bool> symmetric) {
    check_readable("spectrum file", file);
    // HDF5 is not thread-safe, and the tasks of a study read their priors side by side.
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    if (is_hdf5(file.string())) return prior_of_estimate(file.string(), symmetric);
    const std::vector<Bump> bumps = read_spectrum_text(file);
    try {
        auto prior = prior_of_text(bumps, symmetric.value_or(true));
        check_between("second moment", prior->law().second_moment(), 0, 1e20);
        return prior;
    } catch (const InvalidArgument& error) {
        throw InvalidArgument(printable(fmt::format("spectrum file '{}': {}", file.string(), error.what())));
    }
}

}  // namespace bayesaim::priors
