// SPDX-License-Identifier: MIT
// Requests to the explorer: the first line names the command, each other line is an option, name=value, or a header (Host:,
// Origin:, Token:). Commands run, and are asked to stop after a few steps.
#include <sstream>

#include <nlohmann/json.hpp>

#include "bayesaim/core/text.hpp"

#include "explorer/guard.hpp"
#include "explorer/requests.hpp"
#include "fuzz.hpp"
#include "program/host.hpp"
#include "program/interrupt.hpp"

namespace {

using namespace bayesaim;
using namespace bayesaim::explorer;

/// The largest number of a grid; "5x" counts in units of a threshold below 1.
double largest(const std::string& grid) {
    double result = 0;
    for (const std::string_view list : split(grid, ','))
        for (std::string_view word : split(list, ':')) {
            if (word.ends_with('x')) word.remove_suffix(1);
            result = std::max(result, parse_number<double>(word).value_or(0));
        }
    return result;
}

/// Whether the command takes a moment: no large matrices, which cannot be stopped while they are made.
bool small(const Request& request, const Parameters& parameters) {
    for (const auto& [name, value] : parameters) {
        const double number = parse_number<double>(value).value_or(0);
        if (name == "dim" && request.command != "samples" && number > 20) return false;
        if ((name == "points" || name == "integration-points" || name == "trajectory") && number > 64)
            return false;
        if ((name == "tokens" || name == "key-tokens" || name == "heads") && number > 4) return false;
        if (name == "alpha" && (largest(value) > 4 || value.size() > 20)) return false;
        if (name == "width" && number > 4 && request.command == "amp") return false;
        if (name == "eigenvalues" && request.command == "spectrum" &&
            std::ranges::find(parameters, "dim", &Parameters::value_type::first) == parameters.end())
            return false;
    }
    return request.command != "amp" ||
           std::ranges::find(parameters, "dim", &Parameters::value_type::first) != parameters.end();
}

}  // namespace

FUZZ_TARGET(request) {
    static const Guard guard("secret", {"machine"});
    std::istringstream lines{std::string(fuzz::text_of(input))};
    std::string command;
    std::getline(lines, command);
    Sender sender;
    Parameters parameters;
    for (std::string line; std::getline(lines, line);) {
        const std::size_t middle = line.find_first_of(":=");
        const std::string name = line.substr(0, middle),
                          value = middle < line.size() ? line.substr(middle + 1) : "";
        if (name == "Host")
            sender.hosts.push_back(value);
        else if (name == "Origin")
            sender.origins.push_back(value);
        else if (name == "Token")
            sender.tokens.push_back(value);
        else
            parameters.emplace_back(name, value);
    }
    if (!guard.refusal(sender) && sender.tokens != std::vector<std::string>{"secret"})
        fuzz::fail("a stranger may ask");
    const Request* request = find_request(command);
    if (request == nullptr) return;
    fuzz::accepts([&] {
        auto arguments = arguments_of(*request, parameters);
        if (!small(*request, parameters)) return;
        arguments.emplace_back("--threads=1");
        int looks = 0;
        std::string text;
        const program::Host host{[&] { return ++looks > 2; }, [](const Record&) {},
                                 [&](const std::string& published) { text = published; }};
        const program::Hosting hosting(host);
        program::Program commands("bayesaim", "", "");
        request->add(commands);
        try {
            commands.run(arguments);
        } catch (const program::Interrupted&) {
            return;
        }
        if (arguments.rbegin()[2] == "--format=json" && !nlohmann::json::accept(text))
            fuzz::fail("no JSON: " + text);
    });
}
