// SPDX-License-Identifier: MIT
#include "explorer/requests.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "bayesaim/core/checks.hpp"
#include "bayesaim/core/text.hpp"

#include "program/commands.hpp"

namespace bayesaim::explorer {
namespace {

using enum Allowed::Kind;
using namespace std::chrono_literals;

/// How many points the text of a grid asks for; its mistakes are the command's to find.
double points_of(std::string_view text) {
    const auto parts = split(text, ':');
    if (parts.size() < 2) return 1 + static_cast<double>(std::ranges::count(text, ','));
    return parse_number<double>(parts.back()).value_or(1);
}

const std::string* find(const Parameters& parameters, std::string_view name) {
    const auto found = std::ranges::find(parameters, name, &Parameters::value_type::first);
    return found == parameters.end() ? nullptr : &found->second;
}

double number_or(const Parameters& parameters, std::string_view name, double otherwise) {
    const std::string* text = find(parameters, name);
    return text == nullptr ? otherwise : parse_number<double>(*text).value_or(otherwise);
}

void check_phase(const Parameters& parameters) {
    constexpr double most = 10'000;
    const std::string *alpha = find(parameters, "alpha"), *width = find(parameters, "width");
    if (alpha != nullptr && width != nullptr && points_of(*alpha) * points_of(*width) > most)
        throw InvalidArgument(
            fmt::format("--alpha and --width must have at most {:g} points together here; "
                        "the program in a terminal has no such bound",
                        most));
}

constexpr double most_numbers = 5e7;  // in a matrix: 400 MB

/// The weights are sampled from factors of d x r, r = width d, of each head.
void check_sample(const Parameters& parameters) {
    const double dim = number_or(parameters, "dim", 1000);
    if (dim * dim * number_or(parameters, "width", 1) * number_or(parameters, "heads", 2) > most_numbers)
        throw InvalidArgument(
            fmt::format("--dim and --width must make at most {:g} numbers of weights here; "
                        "the program in a terminal has no such bound",
                        most_numbers));
}

void check_spectrum(const Parameters& parameters) {
    if (find(parameters, "eigenvalues") != nullptr) check_sample(parameters);
}

/// The tokens are n T d numbers, of keys aspect times as many.
void check_amp(const Parameters& parameters) {
    check_sample(parameters);
    const double dim = number_or(parameters, "dim", 100), tokens = number_or(parameters, "tokens", 2),
                 aspect = std::max(number_or(parameters, "aspect", 1), 1.0);
    if (number_or(parameters, "alpha", 0) * aspect * aspect * dim * dim * dim * tokens > most_numbers)
        throw InvalidArgument(
            fmt::format("--alpha, --dim and --tokens must make at most {:g} numbers of tokens "
                        "(alpha d^3 T) here; the program in a terminal has no such bound",
                        most_numbers));
}

std::vector<Allowed> with_model(std::vector<Allowed> options, double widths = 1) {
    for (const char* text : {"channel", "prior", "attention", "seed", "format"}) options.push_back({text});
    for (const char* factor : {"beta", "label-noise", "residual", "scale"})
        options.push_back({factor, number, 1e3, 1e-3, 1e3});
    options.insert(options.end(), {{"tokens", number, 64},
                                   {"key-tokens", number, 64},
                                   {"layers", number, 4},
                                   {"heads", number, 64},
                                   {"aspect", number, 10, 0.1, 10},
                                   {"exponent", number, 5, 0.01, 5},
                                   {"cutoff", number, 10, 1e-6, 10},
                                   {"width", points, widths, 1e-3, 1e3}});
    return options;
}

const std::vector<Request>& request_table() {
    static const std::vector<Request> table = {
        {"theory", program::add_theory,
         with_model({{"alpha", points, 1000},
                     {"limit"},
                     {"estimation-only", flag},
                     {"trajectory", number, 1000},
                     {"integration-points", number, 1024}},
                    10),
         60s},
        {"threshold", program::add_threshold, with_model({}, 200), 60s},
        {"phase", program::add_phase,
         with_model({{"alpha", points, 500}, {"integration-points", number, 1024}}, 500), 60s, check_phase},
        {"spectrum", program::add_spectrum,
         with_model({{"noise-variance", number, 1e4, 1e-8, 1e4},
                     {"dim", number, 1000},
                     {"points", number, 2001},
                     {"eigenvalues", flag}}),
         30s, check_spectrum},
        {"samples", program::add_samples,
         with_model({{"target-error", number, 1e6, 1e-9, 1e6},
                     {"dim", number, 1e6},
                     {"precision"},
                     {"token-storage"}}),
         60s},
        {"amp", program::add_amp,
         with_model({{"alpha", points, 1},
                     {"dim", number, 500},
                     {"damping"},
                     {"iterations", number, 1000},
                     {"tolerance"},
                     {"initial"}}),
         300s, check_amp},
    };
    return table;
}

void check_bound(const Allowed& allowed, const std::string& value) {
    const double size = allowed.kind == points ? points_of(value) : parse_number<double>(value).value_or(0);
    if (!(size <= allowed.highest))
        throw InvalidArgument(fmt::format(
            "--{} must {} at most {:g}{} here, got {}; the program in a terminal has no such bound",
            allowed.option, allowed.kind == points ? "have" : "be", allowed.highest,
            allowed.kind == points ? " points" : "", value));
    for (const std::string_view part : split(value, ':')) {
        for (const std::string_view word : split(part, ',')) {
            const double one = std::abs(parse_number<double>(word).value_or(0));
            if (one == 0 || (one >= allowed.smallest && one <= allowed.largest)) continue;
            throw InvalidArgument(
                fmt::format("--{} must be between {:g} and {:g} here, got {}; the program in a terminal has "
                            "no such bound",
                            allowed.option, allowed.smallest, allowed.largest, value));
        }
    }
}

}  // namespace

const Request* find_request(std::string_view command) {
    const auto found = std::ranges::find(request_table(), command, &Request::command);
    return found == request_table().end() ? nullptr : &*found;
}

std::vector<std::string> arguments_of(const Request& request, const Parameters& parameters) {
    std::vector<std::string> arguments = {request.command};
    std::set<std::string> seen;
    for (const auto& [name, value] : parameters) {
        const auto allowed = std::ranges::find(request.options, name, &Allowed::option);
        if (allowed == request.options.end())
            throw InvalidArgument(
                fmt::format("the explorer's {} takes no option '{}'", request.command, name));
        if (!seen.insert(name).second) throw InvalidArgument(fmt::format("--{} is given twice", name));
        if (allowed->kind == flag) {
            arguments.push_back("--" + name);
            continue;
        }
        if (allowed->kind != text) check_bound(*allowed, value);
        arguments.push_back(fmt::format("--{}={}", name, value));
    }
    if (request.check != nullptr) request.check(parameters);
    if (!seen.contains("format")) arguments.emplace_back("--format=json");
    arguments.emplace_back("--quiet");
    return arguments;
}

}  // namespace bayesaim::explorer
